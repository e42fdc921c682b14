//! A server that dies (contract §7, §9; C05, C19, C20, C39, C80): what waits for it is told, nothing is
//! asked twice, and the next call finds a new one.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::json::member;
use support::{Answer, Entry, Line, Peer, SOON, Setup, TOOLS_CHANGED, eventually, process, tools};

const UNKNOWN: &str = "outcome unknown: check before you repeat it";
/// What a call in flight may take to fail (§9), and a busy machine on top.
const IN_TIME: Duration = Duration::from_millis(2000);

/// What the last server process was told, from its start on.
fn told(peer: &Peer) -> Vec<Entry> {
    let last = *peer.started().last().expect("there was a server");
    let entries = peer.journal().into_iter();
    entries.filter(|entry| entry.pid == last && entry.event.is_empty()).collect()
}

fn methods(entries: &[Entry]) -> Vec<String> {
    entries.iter().filter_map(Entry::method).collect()
}

fn kill_server(peer: &Peer) {
    process::signal(*peer.started().last().expect("there was a server"), Signal::SIGKILL);
}

/// Kills the server and waits until the proxy knows that it ended.
async fn lose_server(peer: &Peer) {
    kill_server(peer);
    noticed(peer).await;
}

/// Waits until the proxy has noticed the end of all servers so far.
async fn noticed(peer: &Peer) {
    let is_end = |line: &&str| line.contains("WARN") && line.contains("the server ");
    let look = || async {
        let ends = peer.stderr().lines().filter(is_end).count();
        (ends == peer.started().len()).then_some(())
    };
    if eventually(look).await.is_none() {
        peer.fail("the end of the server is not noticed");
    }
}

fn assert_lost(answer: &Answer, cause: &str) {
    assert!(answer.is_error(), "{}", answer.raw);
    let text = answer.text();
    assert!(text.contains(UNKNOWN) && text.contains(cause), "{text}");
}

// What was in flight.

#[tokio::test]
async fn c05_a_dead_server_is_never_asked_twice() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.slow_call("exit", json!({"ms": 800, "code": 3})).await;
    let end = peer.finish(handle).await;
    assert_eq!(end.status(), "failed");
    assert_lost(&end, "code 3");
    peer.assert_works().await;
    assert_eq!(peer.calls_of("exit").len(), 1);
    assert_eq!(peer.started().len(), 2);
}

#[tokio::test]
async fn c19_a_call_in_flight_fails_within_a_second_with_exit_code_and_stderr() {
    let peer = Peer::open(&[]).await;
    let steps = json!([{"stderr": "disk full\n"}, {"sleep": 200}, {"exit": 3}]);
    let start = Instant::now();
    let answer = peer.script(steps).await;
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    assert_lost(&answer, "code 3");
    assert!(answer.text().contains("disk full"), "{}", answer.text());
    assert_eq!(peer.calls_of("script").len(), 1);
}

#[tokio::test]
async fn s9_a_server_that_is_killed_is_named_by_its_signal() {
    let peer = Peer::open(&[]).await;
    let id = peer.start("sleep", json!({"ms": 60_000})).await;
    peer.arrived("sleep", 1).await;
    kill_server(&peer);
    assert_lost(&peer.answer(&id).await, "signal 9");
}

#[tokio::test]
async fn s9_a_request_that_is_no_call_gets_the_error_32603_with_the_cause() {
    let peer = Peer::open_to(&["--block"]).await;
    let call = peer.start("exit", json!({"ms": 300, "code": 5})).await;
    peer.arrived("exit", 1).await;
    let list = peer.request("prompts/list", json!({})).await;
    let answer = peer.answer(&list).await;
    assert_eq!(answer.error_code(), -32603);
    assert!(answer.raw_error().contains("code 5"), "{}", answer.raw);
    assert_lost(&peer.answer(&call).await, "code 5");
}

#[tokio::test]
async fn s9_calls_that_wait_in_line_survive() {
    let setup = Setup::proxied().config("[tools.wait_file]\nmax_concurrent = 1\n");
    let peer = Peer::opened(setup).await;
    let args = |path: &str| json!({"path": peer.path(path), "text": path});
    peer.create("there");
    // Several times: which call is looked at first is a matter of chance.
    for round in 1..=6 {
        let running = peer.start("wait_file", args("never")).await;
        let waiting = peer.start("wait_file", args("there")).await;
        let arrived =
            || async { (peer.calls_of("wait_file").len() == 2 * round - 1).then_some(()) };
        eventually(arrived).await.expect("the first of them runs");
        kill_server(&peer);
        assert_lost(&peer.answer(&running).await, "signal 9");
        assert_eq!(peer.answer(&waiting).await.text(), "there");
        assert_eq!(peer.calls_of("wait_file").len(), 2 * round);
    }
}

#[tokio::test]
async fn s9_a_job_that_waits_in_line_survives() {
    let toml = "[defaults]\nanswer_within = \"300ms\"\n[tools.wait_file]\nmax_concurrent = 1\n";
    let peer = Peer::opened(Setup::proxied().config(toml)).await;
    let args = |path: &str| json!({"path": peer.path(path), "text": path});
    let running = peer.call("wait_file", args("never")).await;
    let waiting = peer.call("wait_file", args("there")).await;
    kill_server(&peer);
    assert_lost(&peer.finish(running).await, "signal 9");
    peer.create("there");
    assert_eq!(peer.finish(waiting).await.text(), "there");
}

#[tokio::test]
async fn s9_a_thousand_calls_in_flight_fail_together() {
    let peer = Peer::open_to(&["--block"]).await;
    let mark = peer.mark();
    for _ in 0..1000 {
        peer.start("sleep", json!({"ms": 60_000})).await;
    }
    // Answered by the proxy, after all that came before it.
    peer.ask("ping", json!({})).await;
    let (mark, start) = (mark + 1, Instant::now());
    kill_server(&peer);
    let last = std::cell::Cell::new(0);
    peer.wait_line_from(mark, |_| last.replace(last.get() + 1) == 999).await;
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    let answers: Vec<Answer> =
        peer.lines()[mark..].iter().map(|line| Answer::new(&line.text)).collect();
    answers.iter().for_each(|answer| assert_lost(answer, "signal 9"));
    let ids: std::collections::BTreeSet<&str> = answers.iter().map(Answer::raw_id).collect();
    assert_eq!((answers.len(), ids.len()), (1000, 1000));
    peer.assert_works().await;
}

// Other ways to be gone.

#[tokio::test]
async fn s9_a_server_that_closes_its_stdout_is_gone_though_it_lives() {
    let peer = Peer::open_to(&["--ignore-eof", "--ignore-sigterm"]).await;
    let start = Instant::now();
    let answer = peer.call("close_stdout", json!({})).await;
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    assert_lost(&answer, "closed its stdout");
    peer.assert_works().await;
    process::wait_gone(peer.started()[0]).await;
}

#[tokio::test]
async fn s9_a_server_that_closes_its_stdout_with_much_to_read_is_gone_though_it_lives() {
    // The first process reads nothing after `initialize`; the second is the fake server.
    let first = r#"mkdir was_here 2>/dev/null || exec "$@"; read -r _
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
        until [ -e close ]; do sleep 0.01; done; exec >&-; sleep 600"#;
    let peer = Peer::opened(Setup::proxied().server_through(first)).await;
    let text = "x".repeat(10 << 20);
    let big = format!(
        r#"{{"jsonrpc":"2.0","id":"big","method":"x/echo_params","params":{{"text":"{text}"}}}}"#
    );
    let mut sent = std::pin::pin!(peer.send_raw(&big));
    // As much of it as goes into a server that does not read.
    let sooner = tokio::time::timeout(Duration::from_secs(2), &mut sent).await;
    peer.create("close");
    if sooner.is_err() {
        sent.await;
    }
    peer.answer("\"big\"").await;
    peer.assert_works().await;
    let start = Instant::now();
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_a_server_that_closes_its_stdin_is_gone_though_it_lives() {
    // The first process answers `initialize` and closes its stdin; the second is the fake server.
    let first = r#"mkdir was_here 2>/dev/null || exec "$@"; read -r _
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
        exec <&-; sleep 600"#;
    let peer = Peer::opened(Setup::proxied().server_through(first)).await;
    // The first write after the close may go unnoticed in the pipe, no later one can.
    let answer = peer.call("echo", json!({"text": "well"})).await;
    if answer.is_error() {
        assert_lost(&answer, "closed its stdin");
    }
    peer.assert_works().await;
    peer.wait_stderr(|line| line.contains("closed its stdin")).await;
}

#[tokio::test]
async fn s9_half_a_line_before_the_exit_does_no_harm() {
    let peer = Peer::open(&[]).await;
    let half = r#"{"jsonrpc":"2.0","id":$ID,"result":{"cont"#;
    assert_lost(&peer.script(json!([{"write": half}, {"exit": 4}])).await, "code 4");
    peer.assert_works().await;
    peer.lines().iter().for_each(Line::assert_protocol);
}

#[tokio::test]
async fn s9_a_whole_answer_before_the_exit_is_delivered() {
    let peer = Peer::open(&[]).await;
    let result = r#"{"content":[{"type":"text","text":"last words"}]}"#;
    for line_end in ["\n", ""] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}{line_end}"#);
        let answer = peer.script(json!([{"write": answer}, {"exit": 4}])).await;
        assert_eq!(answer.text(), "last words");
        noticed(&peer).await;
    }
}

// The next server.

#[tokio::test]
async fn c20_between_calls_the_session_outlives_the_server() {
    let peer = Peer::open(&[]).await;
    let before = peer.ask("tools/list", json!({})).await;
    lose_server(&peer).await;
    let after = peer.ask("tools/list", json!({})).await;
    assert_eq!(after.raw_result(), before.raw_result());
    peer.assert_works().await;
    assert_eq!(peer.started().len(), 2);
}

#[tokio::test]
async fn c39_the_first_call_after_a_crash_starts_the_server_and_all_are_served() {
    let peer = Peer::open(&[]).await;
    assert_lost(&peer.call("exit", json!({"code": 3})).await, "code 3");
    for _ in 0..3 {
        peer.assert_works().await;
    }
    assert_eq!(peer.started().len(), 2);
    assert_eq!(methods(&told(&peer)).iter().filter(|m| *m == "initialize").count(), 1);
}

#[tokio::test]
async fn s9_a_new_server_hears_the_clients_own_words_in_order() {
    let peer = Peer::open(&[]).await;
    let opening = peer.journal_method("initialize").await;
    for level in ["debug", "error"] {
        peer.ask("logging/setLevel", json!({"level": level})).await;
    }
    for uri in ["file:///a", "file:///b"] {
        peer.ask("resources/subscribe", json!({"uri": uri})).await;
    }
    peer.ask("resources/unsubscribe", json!({"uri": "file:///a"})).await;
    peer.assert_works().await;
    let mark = peer.mark();
    lose_server(&peer).await;
    peer.assert_works().await;

    let told = told(&peer);
    assert_eq!(
        methods(&told)[..5],
        [
            "initialize",
            "notifications/initialized",
            "logging/setLevel",
            "resources/subscribe",
            "tools/call"
        ]
    );
    assert_eq!(told[0].raw_params(), opening.raw_params());
    assert_eq!(told[2].raw_params(), Some(r#"{"level":"error"}"#));
    assert_eq!(told[3].raw_params(), Some(r#"{"uri":"file:///b"}"#));
    peer.settle().await;
    assert_eq!(peer.lines().len(), mark + 2, "the client sees nothing of it: {:?}", peer.lines());
}

#[tokio::test]
async fn s9_answers_to_questions_of_a_dead_server_do_not_reach_the_next() {
    let peer = Peer::open(&[]).await;
    let call = peer.start("ask", json!({})).await;
    let question = peer.wait_method("elicitation/create").await;
    kill_server(&peer);
    assert_lost(&peer.answer(&call).await, "signal 9");
    peer.assert_works().await;
    peer.respond(&question, r#"{"action":"cancel"}"#).await;
    peer.settle().await;
    assert!(told(&peer).iter().all(|entry| !entry.line.contains("action")));
}

#[tokio::test]
async fn c39_a_crash_loop_backs_off_and_says_so_at_once() {
    let setup = Setup::proxied();
    let state = setup.path("state_file").display().to_string();
    let peer = Peer::opened(setup.flags(&["--state-file", &state, "--crash-first", "1000"])).await;
    let (start, mut refused) = (Instant::now(), 0);
    while refused < 20 {
        let asked = Instant::now();
        let text = peer.call("echo", json!({})).await.text().to_owned();
        assert!(asked.elapsed() < IN_TIME, "{:?}", asked.elapsed());
        assert!(text.contains("code 3"), "{text}");
        if !text.contains(UNKNOWN) {
            refused += 1;
            assert!(text.contains("was not started") && text.contains("in a row"), "{text}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    // Pauses of 100, 200, 400 … ms: twenty refusals take 0.4 s, which is room for few starts.
    let most = 4 + usize::try_from(start.elapsed().as_millis() / 100).expect("a small number");
    assert!(peer.started().len() <= most.min(12), "{} starts", peer.started().len());
    assert_eq!(peer.calls_of("echo").len(), peer.started().len());
}

#[tokio::test]
async fn c39_a_server_that_fails_to_start_again_is_tried_again() {
    let setup = Setup::proxied().server_through(
        r#"echo . >> starts; [ $(wc -l < starts) = 2 ] && { echo "no licence" >&2; exit 9; }; exec "$@""#,
    );
    let peer = Peer::opened(setup).await;
    assert_lost(&peer.call("exit", json!({"code": 3})).await, "code 3");
    let failed = peer.call("echo", json!({})).await;
    assert!(failed.is_error(), "{}", failed.raw);
    for part in ["was not started", "code 9", "no licence", "may be called again"] {
        assert!(failed.text().contains(part), "no {part:?} in {}", failed.text());
    }
    let well = eventually(|| async {
        let answer = peer.call("echo", json!({"text": "well"})).await;
        (!answer.is_error()).then_some(answer)
    });
    assert_eq!(well.await.expect("it starts").text(), "well");
}

#[tokio::test]
async fn s9_a_new_server_that_never_answers_initialize_fails_what_waits_for_it() {
    let setup = Setup::proxied().config("[upstream]\nstart_timeout = \"1s\"\n").server_through(
        r#"echo . >> starts; [ $(wc -l < starts) = 2 ] && exec sleep 600; exec "$@""#,
    );
    let peer = Peer::opened(setup).await;
    assert_lost(&peer.call("exit", json!({"code": 3})).await, "code 3");
    let id = peer.start("echo", json!({"text": "well"})).await;
    // While the server starts, a ping is answered by the proxy (§1.1.5).
    peer.ask("ping", json!({})).await.result();
    assert!(peer.answers(&id).is_empty());
    let answer = peer.answer(&id).await;
    assert!(answer.is_error() && answer.text().contains("was not started"), "{}", answer.raw);
    assert!(answer.text().contains("start_timeout"), "{}", answer.text());
    peer.assert_works().await;
}

// Lists.

fn changes(peer: &Peer) -> usize {
    let is_change = |line: &Line| line.has_method(TOOLS_CHANGED);
    peer.notifications().iter().filter(|line| is_change(line)).count()
}

#[tokio::test]
async fn c80_a_new_server_with_the_same_tools_is_no_news() {
    let peer = Peer::opened_and_listed(Setup::proxied().tools(&tools(&["echo"]).to_string())).await;
    lose_server(&peer).await;
    peer.assert_works().await;
    peer.settle().await;
    assert!(methods(&told(&peer)).contains(&"tools/list".to_owned()), "nobody has looked");
    assert_eq!(peer.notifications(), []);
}

#[tokio::test]
async fn c80_a_new_server_with_other_tools_is_told_once() {
    let peer = Peer::opened_and_listed(Setup::proxied().tools(&tools(&["echo"]).to_string())).await;
    peer.change_tools(&tools(&["echo", "other"]).to_string());
    for _ in 0..2 {
        lose_server(&peer).await;
        peer.assert_works().await;
        peer.settle().await;
        assert_eq!(changes(&peer), 1);
        let list = peer.ask("tools/list", json!({})).await;
        assert!(list.raw_result().contains("\"other\""));
    }
    assert_eq!(peer.notifications().len(), 1);
}

#[tokio::test]
async fn c80_the_servers_own_list_changed_is_passed_on_once() {
    let peer = Peer::open(&SOON).await;
    let list = peer.ask("tools/list", json!({})).await;
    assert_eq!(list.raw_result().matches(r#""name":"job_get""#).count(), 1);
    let handle = peer.call("sleep", json!({"ms": 600})).await;
    peer.finish(handle).await;
    assert_eq!(peer.notifications(), [], "jobs are no change of the tools");
    let line = format!(r#"{{"jsonrpc":"2.0","method":"{TOOLS_CHANGED}"}}"#);
    peer.script(json!([{"send": line}, {"result": "{\"content\":[]}"}])).await;
    let notifications = peer.notifications();
    assert_eq!(notifications.iter().map(|n| n.text.clone()).collect::<Vec<_>>(), [line]);
}

// The modern era, and which era it is.

#[tokio::test]
async fn s9_a_modern_server_is_started_again_without_a_handshake() {
    let peer = Peer::proxied(&[], &["--modern"]);
    assert_lost(&peer.modern_call("exit", json!({"code": 3})).await, "code 3");
    let answer = peer.modern_call("echo", json!({"text": "well"})).await;
    assert_eq!((answer.text(), &answer.result()["resultType"]), ("well", &json!("complete")));
    assert!(!methods(&peer.journal()).iter().any(|method| method == "initialize"));
}

#[tokio::test]
async fn s9_a_handshake_that_the_server_refused_is_not_repeated() {
    // A client that tries the legacy way first, and a server that knows the modern one only.
    let peer = Peer::proxied(&[], &["--modern"]);
    assert_eq!(peer.ask("initialize", json!({})).await.error_code(), -32022);
    assert_lost(&peer.modern_call("exit", json!({"code": 3})).await, "code 3");
    let answer = peer.modern_call("echo", json!({"text": "well"})).await;
    assert!(!answer.is_error(), "{}", answer.text());
    assert!(!methods(&told(&peer)).iter().any(|method| method == "initialize"));
}

#[tokio::test]
async fn s9_a_subscription_is_sent_again_and_acknowledged_once() {
    let peer = Peer::opened_modern(Setup::proxied());
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let listen = peer.request("subscriptions/listen", wanted).await;
    let acknowledged = peer.wait_method("notifications/subscriptions/acknowledged").await;
    assert_eq!(
        acknowledged.json()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
            .to_string(),
        listen
    );
    assert_lost(&peer.call("exit", json!({"code": 3})).await, "code 3");
    let answer = peer.call("echo", json!({"text": "well"})).await;
    assert_eq!(answer.text(), "well");
    let sent: Vec<Entry> = peer.journal().into_iter().filter(is_listen).collect();
    assert_eq!((sent.len(), sent[0].line == sent[1].line), (2, true));
    assert_ne!(sent[0].pid, sent[1].pid);

    let news = format!(
        r#"{{"jsonrpc":"2.0","method":"{TOOLS_CHANGED}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{listen}}}}}}}"#
    );
    peer.script(
        json!([{"send": news}, {"result": "{\"content\":[],\"resultType\":\"complete\"}"}]),
    )
    .await;
    let texts: Vec<String> = peer.notifications().into_iter().map(|line| line.text).collect();
    assert_eq!(texts, [acknowledged.text, news]);
    assert!(peer.answers(&listen).is_empty());
}

#[tokio::test]
async fn s9_a_subscription_that_starts_the_server_again_reaches_it_once() {
    let peer = Peer::proxied(&[], &["--modern"]);
    peer.modern_call("echo", json!({})).await;
    lose_server(&peer).await;
    peer.request("subscriptions/listen", json!({"notifications": {}})).await;
    peer.wait_method("notifications/subscriptions/acknowledged").await;
    peer.settle().await;
    assert_eq!(told(&peer).iter().filter(|entry| is_listen(entry)).count(), 1);
    assert_eq!(peer.notifications().len(), 1);
    assert_eq!(peer.started().len(), 2);
}

fn is_listen(entry: &Entry) -> bool {
    entry.has_method("subscriptions/listen")
}

/// How a dual-era client fares: it asks in the modern way and, refused, in the legacy one.
async fn era(setup: Setup, flags: &[&str]) -> (Value, Value) {
    let peer = setup.flags(flags).spawn();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let discovered = peer.ask("server/discover", json!({"_meta": meta})).await;
    if discovered.is_rpc_error() {
        let opened = peer.initialize().await;
        return (discovered.error()["code"].clone(), opened.result()["protocolVersion"].clone());
    }
    let answer = peer.modern_call("echo", json!({})).await;
    (discovered.result()["supportedVersions"].clone(), answer.result()["resultType"].clone())
}

#[tokio::test]
async fn s1_2_a_dual_era_client_ends_on_the_same_era_as_without_the_proxy() {
    for flags in [&[][..], &["--modern"], &["--dual"]] {
        let (with, without) = (Setup::proxied(), Setup::direct());
        assert_eq!(era(with, flags).await, era(without, flags).await, "{flags:?}");
    }
}

#[tokio::test]
async fn s1_2_a_modern_request_to_a_dual_server_is_no_handshake_of_a_legacy_one() {
    let peer = Peer::open_to(&["--dual"]).await;
    assert!(peer.call("echo", json!({})).await.result().get("resultType").is_none());
    lose_server(&peer).await;
    assert!(peer.call("echo", json!({})).await.result().get("resultType").is_none());
    assert_eq!(methods(&told(&peer))[0], "initialize");
}

#[tokio::test]
async fn s1_2_a_legacy_server_that_dies_of_discover_is_started_again_for_initialize() {
    let peer = Peer::proxied(&[], &["--discover-dies"]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let refused = peer.ask("server/discover", json!({"_meta": meta})).await;
    assert_eq!(refused.error_code(), -32603);
    assert!(refused.raw_error().contains("code 3"), "{}", refused.raw);
    let opened = peer.initialize().await;
    assert_eq!(opened.result()["protocolVersion"], "2025-11-25");
    peer.assert_works().await;
    let openings = told(&peer).into_iter().filter(|e| e.has_method("initialize"));
    let openings: Vec<Entry> = openings.collect();
    assert_eq!(openings.len(), 1, "one handshake for one server: {openings:?}");
    assert_eq!(member(&openings[0].line, "id"), Some(opened.raw_id()));
    let initialized = |method: &&String| **method == "notifications/initialized";
    assert_eq!(methods(&told(&peer)).iter().filter(initialized).count(), 1);
}
