//! How a session ends (contract §9; C37): answers in flight leave, signals skip the wait, stdin may be
//! anything.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{Answer, Line, Peer, SOON, Setup};

/// Everything after the end of input (§9), and a busy machine on top.
const IN_TIME: Duration = Duration::from_millis(4000);
/// An end at once: a server that obeys, and a busy machine on top.
const AT_ONCE: Duration = Duration::from_millis(1500);

/// How long answers in flight have to leave (§9).
const LAST_ANSWERS: Duration = Duration::from_millis(900);

fn request(id: usize, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#) + "\n"
}

/// `initialize` and five calls, each with its own answer.
fn six_requests(tool: &str, ms: u64) -> String {
    let info = json!({"name": "c", "version": "1"});
    let opening = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let mut text = request(0, "initialize", &opening);
    text += "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    for id in 1..=5 {
        let args = json!({"ms": ms, "text": format!("answer {id}")});
        text += &request(id, "tools/call", &json!({"name": tool, "arguments": args}));
    }
    text
}

/// Waits for the end, and finds the answers to the six requests and nothing more.
async fn ends_with_six_answers(peer: &Peer) {
    peer.stdout_ended().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    let lines = peer.lines();
    let answer = |id: usize| {
        let found = lines.iter().find_map(|line| line.response_to(&id.to_string()));
        found.map(Answer::new).unwrap_or_else(|| panic!("no answer to {id}: {lines:?}"))
    };
    assert_eq!(answer(0).result()["protocolVersion"], "2025-11-25");
    for id in 1..=5 {
        assert_eq!(answer(id).text(), format!("answer {id}"));
    }
    assert_eq!(lines.len(), 6, "{lines:?}");
    lines.iter().for_each(Line::assert_protocol);
    peer.all_gone().await;
}

#[tokio::test]
async fn c37_answers_in_flight_leave_before_the_end() {
    for (tool, ms) in [("echo", 0), ("sleep", 200)] {
        let peer = Peer::proxied(&[], &[]);
        peer.send_bytes(six_requests(tool, ms).as_bytes()).await;
        peer.close_stdin().await;
        ends_with_six_answers(&peer).await;
    }
}

#[tokio::test]
async fn c37_a_last_line_without_its_end_counts() {
    let peer = Peer::proxied(&[], &[]);
    peer.send_bytes(six_requests("echo", 0).trim_end().as_bytes()).await;
    peer.close_stdin().await;
    ends_with_six_answers(&peer).await;
}

#[tokio::test]
async fn c37_a_large_answer_in_flight_leaves_whole() {
    let peer = Peer::open(&[]).await;
    let id = peer.start("big", json!({"bytes": 4 << 20, "ms": 100})).await;
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    peer.stdout_ended().await;
    assert_eq!(peer.answers(&id)[0].text().len(), 4 << 20);
}

#[tokio::test]
async fn c37_the_wait_for_answers_is_bounded() {
    let peer = Peer::open(&SOON).await;
    peer.slow_call("sleep", json!({"ms": 60_000, "text": "job"})).await;
    let options = json!({"unhurry/answer_within": 60});
    let params = json!({"name": "sleep", "arguments": {"ms": 60_000}, "_meta": options});
    let call = peer.request("tools/call", params).await;
    peer.arrived("sleep", 2).await;
    let start = Instant::now();
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    assert!(peer.answers(&call).iter().all(|answer| answer.is_handle()));
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_running_jobs_alone_hold_nothing_up() {
    let peer = Peer::open(&SOON).await;
    assert!(peer.call("sleep", json!({"ms": 60_000})).await.is_handle());
    let start = Instant::now();
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_signals_skip_the_wait() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let peer = Peer::open_to(&["--child"]).await;
        peer.start("sleep", json!({"ms": 60_000})).await;
        peer.arrived("sleep", 1).await;
        let start = Instant::now();
        peer.signal(signal);
        assert_eq!(peer.exit().await.code(), Some(0), "{signal}");
        assert!(start.elapsed() < AT_ONCE, "{signal}: {:?}", start.elapsed());
        peer.all_gone().await;
    }
}

#[tokio::test]
async fn s9_a_signal_ends_a_stubborn_server_too() {
    let peer = Peer::open_to(&["--ignore-eof", "--ignore-sigterm", "--child"]).await;
    let start = Instant::now();
    peer.signal(Signal::SIGTERM);
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_a_signal_after_the_end_of_input_skips_what_is_left_of_the_wait() {
    let peer = Peer::open(&["--log-level", "debug"]).await;
    peer.start("sleep", json!({"ms": 60_000})).await;
    peer.arrived("sleep", 1).await;
    peer.close_stdin().await;
    peer.wait_stderr(|line| line.contains("the client closed stdin")).await;
    let start = Instant::now();
    peer.signal(Signal::SIGTERM);
    assert_eq!(peer.exit().await.code(), Some(0), "an orderly end, not one by the signal");
    assert!(start.elapsed() < LAST_ANSWERS, "{:?}", start.elapsed());
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_a_server_is_asked_before_it_is_killed() {
    let peer = Peer::open_to(&["--ignore-eof"]).await;
    peer.close_stdin().await;
    peer.exit().await;
    let events: Vec<String> = peer.journal().into_iter().map(|entry| entry.event).collect();
    assert_eq!(events.last().map(String::as_str), Some("sigterm"), "{events:?}");
    assert!(events.contains(&"eof".to_owned()), "{events:?}");
}

#[tokio::test]
async fn s9_a_client_that_no_longer_reads_ends_the_session() {
    // `head` takes one line, closes the pipe and is gone; stdin stays open.
    let peer = Setup::proxied().through(r#"mkfifo out; head -n 1 <out & exec "$@" >out"#).spawn();
    peer.ask("initialize", json!({"protocolVersion": "2025-11-25"})).await;
    peer.stdout_ended().await;
    let start = Instant::now();
    let _ = peer.start("echo", json!({})).await;
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    peer.all_gone().await;
}

// stdin and stdout of every kind.

#[tokio::test]
async fn s9_stdin_may_be_a_file() {
    let setup = Setup::proxied().through(r#"exec "$@" <requests"#);
    std::fs::write(setup.path("requests"), six_requests("sleep", 50)).expect("a file");
    ends_with_six_answers(&setup.spawn()).await;
}

#[tokio::test]
async fn s9_stdout_may_be_a_file() {
    let setup = Setup::proxied().through(r#""$@" <requests >answers; exec cat answers"#);
    std::fs::write(setup.path("requests"), six_requests("sleep", 50)).expect("a file");
    ends_with_six_answers(&setup.spawn()).await;
}

#[tokio::test]
async fn s9_stdin_and_stdout_may_be_sockets() {
    let peer = Setup::proxied().sockets().spawn();
    peer.send_bytes(six_requests("sleep", 100).as_bytes()).await;
    peer.close_stdin().await;
    ends_with_six_answers(&peer).await;
}

#[tokio::test]
async fn s9_large_messages_pass_through_sockets_both_ways() {
    let peer = Peer::opened(Setup::proxied().sockets()).await;
    let text = "x".repeat(3 << 20);
    assert_eq!(peer.call("echo", json!({"text": text})).await.text(), text);
}

#[tokio::test]
async fn s9_a_session_of_nothing_ends_in_order() {
    let peer = Setup::proxied().through(r#"exec "$@" </dev/null"#).spawn();
    assert_eq!(peer.exit().await.code(), Some(0));
    assert_eq!(peer.lines(), []);
    peer.all_gone().await;
}

// What holds nothing up.

#[tokio::test]
async fn s9_an_open_subscription_holds_nothing_up() {
    let peer = Peer::opened_modern(Setup::proxied());
    peer.request("subscriptions/listen", json!({"notifications": {}})).await;
    peer.wait_method("notifications/subscriptions/acknowledged").await;
    let start = Instant::now();
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < LAST_ANSWERS, "{:?}", start.elapsed());
    peer.all_gone().await;
}

/// A server that reads nothing after `initialize`, and of 10 MiB for it as much as anybody takes.
async fn much_to_read(setup: Setup) -> Peer {
    let server = r#"read -r _
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
        exec sleep 600"#;
    let peer = Peer::opened(setup.server_through(server)).await;
    let text = json!({"text": "x".repeat(10 << 20)});
    let sent = peer.request_as("\"big\"", "x/echo_params", text);
    let _ = tokio::time::timeout(Duration::from_secs(3), sent).await;
    peer
}

#[tokio::test]
async fn s9_a_server_that_does_not_read_holds_nothing_up() {
    let peer = much_to_read(Setup::proxied()).await;
    let start = Instant::now();
    peer.close_stdin().await;
    peer.exit().await;
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_a_server_that_does_not_read_goes_with_a_client_that_is_killed() {
    // The client is two processes, one for each way.
    let client = r#"mkfifo in out; exec 3<&0 4>&1
        cat <&3 >in & echo $! >>client; cat <out >&4 & echo $! >>client
        exec "$@" <in >out 3<&- 4>&-"#;
    let peer = much_to_read(Setup::proxied().through(client)).await;
    let pids = std::fs::read_to_string(peer.path("client")).expect("the pids of the client");
    let start = Instant::now();
    for pid in pids.lines() {
        support::process::signal(pid.parse().expect("a pid"), Signal::SIGKILL);
    }
    peer.exit().await;
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    peer.all_gone().await;
}
