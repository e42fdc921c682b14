//! No process remains, none is needed twice, and each sees the world it should (contract §2, §9; C35,
//! C77).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use support::{Peer, Setup, eventually, process};

/// From the end of input to the end of everything (§9), and a busy machine on top.
const IN_TIME: Duration = Duration::from_millis(4000);
/// A server that nothing but SIGKILL ends, with a grandchild that holds its pipes.
const STUBBORN: &[&str] = &["--ignore-eof", "--ignore-sigterm", "--child"];

/// All processes of a peer, the reaper too, which does not carry the mark.
fn family(peer: &Peer) -> Vec<u32> {
    let marked = peer.processes();
    let children = marked.iter().flat_map(|pid| process::children_of(*pid)).collect::<Vec<_>>();
    marked.into_iter().chain(children).collect::<BTreeSet<u32>>().into_iter().collect()
}

async fn all_gone(peer: &Peer, family: &[u32]) {
    peer.all_gone().await;
    for pid in family {
        process::wait_gone(*pid).await;
    }
}

/// The proxy itself, where the peer was started through a shell.
fn proxy_of(peer: &Peer) -> u32 {
    process::children_of(peer.pid())[0]
}

// The end.

#[tokio::test]
async fn c35_nothing_remains_when_stdin_closes() {
    for flags in [&[][..], &["--child"], &["--ignore-eof"], STUBBORN] {
        let peer = Peer::opened(Setup::proxied().flags(flags)).await;
        let family = family(&peer);
        assert!(family.len() >= 3, "proxy, server and reaper: {family:?}");
        let start = Instant::now();
        peer.close_stdin().await;
        assert_eq!(peer.exit().await.code(), Some(0));
        assert!(start.elapsed() < IN_TIME, "{flags:?}: {:?}", start.elapsed());
        all_gone(&peer, &family).await;
    }
}

#[tokio::test]
async fn c35_nothing_remains_when_stdin_closes_in_a_call() {
    let peer = Peer::opened(Setup::proxied().flags(STUBBORN)).await;
    peer.start("sleep", json!({"ms": 60_000, "ignore_cancel": true})).await;
    peer.journal_method("tools/call").await;
    let (family, start) = (family(&peer), Instant::now());
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    all_gone(&peer, &family).await;
}

#[tokio::test]
async fn c35_nothing_remains_when_the_proxy_is_killed() {
    for flags in [&[][..], &["--child"], &["--ignore-eof"], STUBBORN] {
        let peer = Peer::opened(Setup::proxied().flags(flags)).await;
        let family = family(&peer);
        peer.kill();
        all_gone(&peer, &family).await;
    }
}

#[tokio::test]
async fn c35_nothing_remains_when_the_client_is_killed() {
    // The client is `cat`: the proxy's parent, and the only one that holds its stdin open.
    let client = r#"mkfifo in; "$@" <in & exec 3>in; exec cat >&3"#;
    for flags in [&[][..], STUBBORN] {
        let peer = Peer::opened(Setup::proxied().through(client).flags(flags)).await;
        let family = family(&peer);
        assert!(family.len() >= 4, "client, proxy, server and reaper: {family:?}");
        peer.kill();
        all_gone(&peer, &family).await;
    }
}

#[tokio::test]
async fn s9_a_signal_to_the_whole_group_leaves_nothing() {
    // A terminal's ^C reaches every process of its group; the server and the reaper have their own.
    let peer = Peer::opened(Setup::proxied().through(r#""$@"; exit 0"#).flags(STUBBORN)).await;
    let family = family(&peer);
    process::signal(proxy_of(&peer), Signal::SIGINT);
    peer.signal(Signal::SIGINT);
    all_gone(&peer, &family).await;
}

#[tokio::test]
async fn s9_what_a_dead_server_left_behind_goes_with_it() {
    let peer = Peer::opened(Setup::proxied().flags(&["--child"])).await;
    let child = peer.journal_wait(|entry| entry.event == "child").await;
    assert!(peer.call("exit", json!({"code": 3})).await.is_error());
    let child = u32::try_from(child.json["child"].as_u64().expect("a pid")).expect("a pid");
    process::wait_gone(child).await;
    peer.assert_works().await;
}

// Whatever is killed, whenever.

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Before,
    During,
    AfterTheHandle,
}

const TIMES: [When; 3] = [When::Before, When::During, When::AfterTheHandle];

/// A session in which a call has got this far; its raw id.
async fn with_call(when: When) -> (Peer, String) {
    let peer = Peer::opened(Setup::proxied().options(&["--answer-within", "400ms"])).await;
    if when == When::Before {
        return (peer, String::new());
    }
    let id = peer.start("wait_file", json!({"path": peer.path("never")})).await;
    peer.arrived("wait_file", 1).await;
    if when == When::AfterTheHandle {
        assert!(peer.answer(&id).await.is_handle());
    }
    (peer, id)
}

#[tokio::test]
async fn c05_a_killed_server_costs_one_call_at_the_most_and_leaves_nothing() {
    for when in TIMES {
        let (peer, id) = with_call(when).await;
        let server = peer.journal()[0].pid;
        process::signal(server, Signal::SIGKILL);
        peer.wait_stderr(|line| line.contains("the server was killed by signal 9")).await;
        if when == When::Before {
            peer.create("there");
            let answer = peer.call("wait_file", json!({"path": peer.path("there")})).await;
            assert_eq!(answer.text(), "there");
        } else {
            let end = peer.finish(peer.answer(&id).await).await;
            assert!(end.is_error() && end.text().contains("outcome unknown"), "{}", end.raw);
            assert_eq!(peer.answers(&id).len(), 1, "{when:?}");
            peer.settle().await;
        }
        assert_eq!(peer.calls_of("wait_file").len(), 1, "{when:?}");
        let family = family(&peer);
        peer.close_stdin().await;
        all_gone(&peer, &family).await;
    }
}

#[tokio::test]
async fn c35_a_killed_proxy_leaves_nothing_and_repeats_nothing() {
    for when in TIMES {
        let (peer, _) = with_call(when).await;
        let family = family(&peer);
        peer.kill();
        all_gone(&peer, &family).await;
        let calls = usize::from(when != When::Before);
        assert_eq!(peer.calls_of("wait_file").len(), calls, "{when:?}");
    }
}

#[tokio::test]
async fn c35_a_server_that_dies_with_the_proxy_leaves_nothing() {
    let peer = Peer::opened(Setup::proxied().flags(STUBBORN)).await;
    let (family, server) = (family(&peer), peer.journal()[0].pid);
    process::signal(server, Signal::SIGKILL);
    peer.kill();
    all_gone(&peer, &family).await;
}

// The world of the server.

#[tokio::test]
async fn c77_a_missing_command_is_named_with_the_path_that_was_searched() {
    let setup = Setup::proxied().server("no-such-server").env("PATH", "/nowhere:/else");
    let peer = setup.spawn();
    let start = Instant::now();
    let refused = peer.ask("initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!(refused.error_code(), -32603);
    assert_eq!(peer.exit().await.code(), Some(69));
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    peer.stderr_ended().await;
    peer.stdout_ended().await;
    for text in [refused.raw_error(), &peer.stderr()] {
        assert!(text.contains("no-such-server"), "no command in {text}");
        assert!(text.contains("PATH=/nowhere:/else"), "no PATH in {text}");
    }
    assert_eq!(peer.lines().len(), 1);
    assert!(peer.processes().is_empty());
}

#[tokio::test]
async fn c77_a_missing_command_waits_a_second_for_somebody_to_tell() {
    for closed in [false, true] {
        let peer = Setup::proxied().server("no-such-server").spawn();
        let start = Instant::now();
        if closed {
            peer.close_stdin().await;
        }
        assert_eq!(peer.exit().await.code(), Some(69), "stdin closed: {closed}");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        peer.wait_stderr(|line| line.contains("no-such-server")).await;
        assert_eq!(peer.lines(), []);
    }
}

#[tokio::test]
async fn c77_a_command_that_is_no_program_is_named_too() {
    let setup = Setup::proxied();
    let file = setup.path("server.txt");
    std::fs::write(&file, "hello").expect("a file");
    let peer = setup.server(&file.display().to_string()).spawn();
    let refused = peer.ask("initialize", json!({})).await;
    assert!(refused.raw_error().contains("server.txt"), "{}", refused.raw);
    assert_eq!(peer.exit().await.code(), Some(69));
}

#[tokio::test]
async fn c77_the_configured_environment_and_directory_reach_the_server() {
    let setup = Setup::proxied();
    let directory = setup.path("work");
    std::fs::create_dir(&directory).expect("a directory");
    let toml = format!(
        "[upstream]\ncwd = {directory:?}\nenv = {{ CONFIGURED = \"${{SECRET}}!\", SHARED = \"file\" }}\n"
    );
    let setup = setup.config(&toml).env("SECRET", "s3cr3t").env("INHERITED", "yes");
    let setup = setup.env("UNHURRY_DEFAULTS__ANSWER_WITHIN", "3s").env("UNHURRY_OTHER", "1");
    let options = ["--env", "FLAG=${SECRET}?", "--env", "SHARED=flag"];
    let peer = Peer::opened(setup.options(&options)).await;

    let server = peer.journal()[0].pid;
    let variables = std::fs::read(format!("/proc/{server}/environ")).expect("its environment");
    let variables = String::from_utf8(variables).expect("UTF-8");
    let variables: Vec<&str> = variables.split('\0').collect();
    for wanted in ["CONFIGURED=s3cr3t!", "FLAG=s3cr3t?", "SHARED=flag", "INHERITED=yes"] {
        assert!(variables.contains(&wanted), "no {wanted} in {variables:?}");
    }
    let ours = |variable: &&&str| variable.starts_with("UNHURRY_") || variable.contains("=file");
    assert_eq!(variables.iter().filter(ours).count(), 0, "{variables:?}");
    let cwd = std::fs::read_link(format!("/proc/{server}/cwd")).expect("its directory");
    assert_eq!(cwd, directory.canonicalize().expect("a path"));
    // The secret is in no process list.
    let line = std::fs::read_to_string(format!("/proc/{}/cmdline", peer.pid())).expect("a line");
    assert!(!line.contains("s3cr3t"));
}

#[tokio::test]
async fn s9_the_server_has_a_group_of_its_own_and_our_directory() {
    let peer = Peer::opened(Setup::proxied()).await;
    let server = peer.journal()[0].pid;
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).expect("its state");
    let group = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(2));
    assert_eq!(group, Some(&*server.to_string()));
    let cwd = |pid: u32| std::fs::read_link(format!("/proc/{pid}/cwd")).expect("a directory");
    assert_eq!(cwd(server), cwd(peer.pid()));
}

#[tokio::test]
async fn s9_a_long_life_leaves_no_files_open() {
    let peer = Peer::opened(Setup::proxied()).await;
    let open = || std::fs::read_dir(format!("/proc/{}/fd", peer.pid())).map_or(0, Iterator::count);
    peer.call("echo", json!({})).await;
    let before = open();
    for _ in 0..20 {
        assert!(peer.call("exit", json!({"code": 3})).await.is_error());
        let well = || async {
            let answer = peer.call("echo", json!({"text": "well"})).await;
            (!answer.is_error()).then_some(())
        };
        eventually(well).await.expect("it is started again");
    }
    assert!(open() <= before, "{} open files, {before} before", open());
    let family = family(&peer);
    assert_eq!(family.len(), 3, "proxy, server and reaper: {family:?}");
}
