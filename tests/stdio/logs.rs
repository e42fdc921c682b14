//! What is logged, and what never is (contract §2, §10): stderr has one readable line for each thing that
//! matters, stdout protocol lines only.

use serde_json::{Value, json};
use support::{Answer, Line, Peer, SOON, Setup, eventually};

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];
/// A secret that stands wherever one can stand.
const SECRET: &str = "hunter2";

/// A log line of the proxy.
fn is_ours(line: &str) -> bool {
    ["ERROR", " WARN", " INFO", "DEBUG", "TRACE"].iter().any(|level| {
        line.get(..40).is_some_and(|start| start.starts_with("20") && start.contains(level))
    })
}

async fn proxied(options: &[&str]) -> Peer {
    Peer::opened(Setup::proxied().options(&SOON).options(options)).await
}

/// A call that became a job, and its end.
async fn job(peer: &Peer, tool: &str, args: Value) -> (String, Answer) {
    let handle = peer.slow_call(tool, args).await;
    (handle.job_id().to_owned(), peer.finish(handle).await)
}

/// Ends the session; all that was logged.
async fn logged(peer: &Peer) -> String {
    peer.close_stdin().await;
    peer.exit().await;
    peer.stderr_ended().await;
    peer.stdout_ended().await;
    peer.stderr()
}

/// The lines with all these parts; there must be one.
fn one_line<'a>(log: &'a str, parts: &[&str]) -> &'a str {
    let fits = |line: &&str| parts.iter().all(|part| line.contains(part));
    let lines: Vec<&str> = log.lines().filter(fits).collect();
    assert_eq!(lines.len(), 1, "lines with {parts:?} in\n{log}");
    assert!(is_ours(lines[0]), "no log line: {}", lines[0]);
    lines[0]
}

/// A session in which everything happens that is logged, a secret in each message.
async fn eventful(peer: &Peer) {
    peer.ask("tools/list", json!({"x": SECRET})).await;
    job(peer, "sleep", json!({"ms": 500, "text": SECRET})).await;
    job(peer, "fail", json!({"ms": 500, "text": SECRET})).await;
    job(peer, "rpc_error", json!({"ms": 500, "message": SECRET})).await;
    let handle = peer.call("sleep", json!({"ms": 60_000, "text": SECRET})).await;
    peer.call("job_cancel", json!({"job_id": handle.job_id(), "x": SECRET})).await;
    let id = peer.start("sleep", json!({"ms": 60_001, "text": SECRET})).await;
    peer.cancel(&id, "Request timed out").await;
    let id = peer.start("sleep", json!({"ms": 60_002, "text": SECRET})).await;
    peer.cancel(&id, &format!("the user's {SECRET}")).await;
    peer.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":1,"params":{{"{SECRET}":"#)).await;
    peer.send_raw(&format!(r#"{{"{SECRET}":"{SECRET}"}}"#)).await;
    peer.request_as(&format!("{{\"id\":\"{SECRET}\"}}"), "x/echo_params", json!({})).await;
    peer.call("job_get", json!({"job_id": SECRET})).await;
    assert!(peer.call("exit", json!({"code": 3, "text": SECRET})).await.is_error());
    let well = || async {
        let answer = peer.call("echo", json!({"text": SECRET})).await;
        (!answer.is_error()).then_some(())
    };
    eventually(well).await.expect("it is started again");
}

#[tokio::test]
async fn s2_stdout_carries_protocol_lines_only_at_every_level_and_in_every_format() {
    for format in ["text", "json"] {
        for level in LEVELS {
            let options = ["--log-level", level, "--log-format", format];
            let peer = proxied(&options).await;
            peer.send_raw("junk").await;
            job(&peer, "sleep", json!({"ms": 500})).await;
            let junk = r#"{"level":"info","msg":"junk"}"#;
            peer.script(json!([{"send": junk}, {"exit": 3}])).await;
            logged(&peer).await;
            peer.lines().iter().for_each(Line::assert_protocol);
        }
    }
}

#[tokio::test]
async fn s10_tokens_and_arguments_are_not_logged_at_info() {
    let toml = "[upstream]\nenv = { API_TOKEN = \"hunter2\" }\n";
    let setup = Setup::proxied().config(toml).options(&SOON);
    let peer = Peer::opened(setup.options(&["--env", "OTHER=hunter2"])).await;
    eventful(&peer).await;
    let log = logged(&peer).await;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(lines.is_empty(), "the secret is logged: {lines:#?}");
    assert!(log.contains("job started"), "{log}");
}

#[tokio::test]
async fn s10_job_ids_are_logged_by_their_first_eight_characters() {
    let peer = proxied(&[]).await;
    let (id, end) = job(&peer, "sleep", json!({"ms": 500, "text": "done"})).await;
    assert_eq!((end.text(), id.len()), ("done", 36));
    let log = logged(&peer).await;
    assert!(log.contains(&id[..8]) && !log.contains(&id[..9]), "{log}");
}

#[tokio::test]
async fn every_job_has_one_line_for_its_start_and_one_for_its_end() {
    let peer = proxied(&[]).await;
    for (tool, status) in
        [("sleep", "completed"), ("fail", "failed"), ("rpc_error", "failed"), ("exit", "failed")]
    {
        let (id, end) = job(&peer, tool, json!({"ms": 500, "code": 3})).await;
        assert_eq!(end.status(), status);
        let ended = format!("job {status} after");
        peer.wait_stderr(|line| line.contains(&ended) && line.contains(&id[..8])).await;
        let log = peer.stderr();
        one_line(&log, &[" INFO", "job started", &id[..8], tool]);
        one_line(&log, &[" INFO", &ended, &id[..8], tool]);
        assert_eq!(log.matches(&id[..8]).count(), 2, "{log}");
    }
    let handle = peer.call("sleep", json!({"ms": 60_000})).await;
    peer.call("job_cancel", json!({"job_id": handle.job_id()})).await;
    let log = logged(&peer).await;
    one_line(&log, &[" INFO", "job cancelled after", &handle.job_id()[..8]]);
}

#[tokio::test]
async fn a_job_that_the_end_of_the_session_interrupts_is_logged() {
    let peer = proxied(&[]).await;
    let handle = peer.call("sleep", json!({"ms": 60_000})).await;
    one_line(&logged(&peer).await, &[" INFO", "job failed after", &handle.job_id()[..8]]);
}

#[tokio::test]
async fn a_crash_is_one_line_and_the_servers_stderr_comes_once() {
    let peer = proxied(&[]).await;
    let steps = json!([{"stderr": "disk full\ngiving up\n"}, {"exit": 3}]);
    let answer = peer.script(steps).await;
    assert!(answer.text().contains("disk full"), "{}", answer.text());
    let log = logged(&peer).await;
    one_line(&log, &[" WARN", "the server exited with code 3"]);
    let others: Vec<&str> = log.lines().filter(|line| !is_ours(line)).collect();
    assert_eq!(others, ["disk full", "giving up"]);
}

#[tokio::test]
async fn starts_of_the_server_are_one_line_each() {
    let peer = proxied(&[]).await;
    peer.call("exit", json!({"code": 3})).await;
    peer.call("echo", json!({})).await;
    let log = logged(&peer).await;
    for part in ["server started", "server started again"] {
        let lines = log
            .lines()
            .filter(|line| line.ends_with(part) || line.contains(&format!("{part} pid")));
        assert_eq!(lines.count(), 1, "{part:?} in\n{log}");
    }
}

#[tokio::test]
async fn s6_a_learned_budget_is_one_warning() {
    let peer = Peer::opened(Setup::proxied()).await;
    for ms in [60_000, 60_001] {
        let id = peer.start("sleep", json!({"ms": ms})).await;
        peer.cancel(&id, "McpError: MCP error -32001: Request timed out").await;
    }
    peer.settle().await;
    let log = logged(&peer).await;
    one_line(&log, &[" WARN", "test-client", "from now on it is answered within 0.5 s"]);
}

#[tokio::test]
async fn debug_follows_a_message_through() {
    let peer = proxied(&["--log-level", "debug"]).await;
    let id = r#""a-message-to-follow""#;
    let mark = peer.mark();
    peer.request_as(id, "tools/call", json!({"name": "echo", "arguments": {"text": SECRET}})).await;
    peer.answer_from(mark, id).await;
    let log = logged(&peer).await;
    let steps: Vec<&str> =
        log.lines().filter(|line| line.contains("a-message-to-follow")).collect();
    assert_eq!(steps.len(), 3, "{log}");
    for (step, part) in steps.iter().zip(["from=\"client\"", "from=\"server\"", "to=\"client\""]) {
        assert!(step.contains(part) && step.contains("bytes="), "no {part} in {step}");
    }
    assert!(steps[0].contains("tools/call"), "{}", steps[0]);
    assert!(!log.contains(SECRET), "the text of a message is logged");
}

#[tokio::test]
async fn nothing_is_logged_about_a_session_without_events() {
    let peer = proxied(&["--log-level", "warn"]).await;
    peer.call("echo", json!({})).await;
    assert_eq!(logged(&peer).await, "");
}

#[tokio::test]
async fn with_log_format_json_every_line_is_json() {
    for level in ["info", "debug"] {
        let peer = proxied(&["--log-level", level, "--log-format", "json"]).await;
        eventful(&peer).await;
        let log = logged(&peer).await;
        for line in log.lines() {
            let entry: Value =
                serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            assert!(entry["level"].is_string() && entry["timestamp"].is_string(), "{line}");
        }
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let jobs: Vec<Value> = entries.filter(|entry| entry["fields"]["job"].is_string()).collect();
        assert!(jobs.iter().all(|job| job["fields"]["job"].as_str().map(str::len) == Some(8)));
        assert!(jobs.iter().any(|job| job["fields"]["tool"] == "sleep"), "{log}");
    }
}

#[tokio::test]
async fn the_servers_stderr_is_passed_on_line_by_line() {
    let peer = proxied(&[]).await;
    peer.script(
        json!([{"stderr": "one\ntw"}, {"sleep": 20}, {"stderr": "o\nlast"}, {"result": "{}"}]),
    )
    .await;
    let log = logged(&peer).await;
    let others: Vec<&str> = log.lines().filter(|line| !is_ours(line)).collect();
    assert_eq!(others, ["one", "two", "last"]);
}
