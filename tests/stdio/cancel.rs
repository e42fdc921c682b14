//! Clients that give up, and users who change their minds (contract §6).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Entry, Peer, Setup, call_params, until};
use tokio::time::sleep;

const TIME_OUT: &str = "McpError: MCP error -32001: Request timed out";

/// The one job there is, which must be of this tool and still run.
async fn the_job(peer: &Peer, tool: &str) -> Answer {
    let jobs = peer.jobs().await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!((&jobs[0]["tool"], &jobs[0]["status"]), (&json!(tool), &json!("working")));
    peer.look(jobs[0]["job_id"].as_str().expect("an id")).await
}

// A user's cancel.

#[tokio::test]
async fn c03_nothing_is_sent_for_a_cancelled_call_whatever_the_server_does() {
    let peer = Peer::open(&[]).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    let steps = json!([{"wait_file": "go"}, {"send": note}, {"result": "{}"}]);
    let mut params = call_params("script", json!({"steps": steps, "ignore_cancel": true}));
    params["_meta"] = json!({"progressToken": "t"});
    peer.request_as("7", "tools/call", params).await;
    let other = peer.start_until("other").await;
    peer.cancel("7", "the user").await;
    assert_eq!(peer.cancelled().await, peer.calls_of("script")[0].raw_id());

    let mark = peer.mark();
    peer.create("go");
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.settle().await;
    peer.create("other");
    assert_eq!(peer.answer(&other).await.text(), "other");
    assert_eq!(peer.lines().len() - mark, 2, "what settled, and the other call");
    assert!(peer.jobs().await.is_empty());
}

#[tokio::test]
async fn c52_a_cancel_ends_one_call_and_neither_the_server_nor_the_other() {
    let peer = Peer::open(&[]).await;
    let ids = [peer.start_until("a").await, peer.start_until("b").await];
    peer.cancel(&ids[0], "the user").await;
    assert_eq!(peer.cancelled().await, peer.calls_of("wait_file")[0].raw_id());
    peer.create("b");
    assert_eq!(peer.answer(&ids[1]).await.text(), "b");
    assert!(peer.answers(&ids[0]).is_empty());
    let starts = peer.journal().into_iter().filter(|entry| entry.event == "start");
    assert_eq!(starts.count(), 1, "the server lives");
}

async fn is_the_users(cancel: &str) {
    let peer = Peer::open(&[]).await;
    let id = peer.start_until("go").await;
    let line = cancel.replace("$ID", &id);
    peer.send_raw(&line).await;
    let received = peer.journal_method("notifications/cancelled").await;
    assert_eq!(received.line, line, "forwarded as it is");
    assert!(peer.jobs().await.is_empty());
}

#[tokio::test]
async fn s6_any_other_reason_or_none_is_the_users() {
    let cancel = |rest: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":$ID{rest}}}}}"#
        )
    };
    is_the_users(&cancel("")).await;
    is_the_users(&cancel(r#" , "reason":null, "x":1.10"#)).await;
    is_the_users(&cancel(r#","reason":"AbortError: This operation was aborted""#)).await;
}

// Time-outs.

async fn detaches(reason: &str) {
    let peer = Peer::open(&[]).await;
    let id = peer.start_until("go").await;
    peer.cancel(&id, reason).await;
    let job = the_job(&peer, "wait_file").await;
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
    assert!(peer.received("notifications/cancelled").is_empty(), "the server is not told");
    assert!(peer.answers(&id).is_empty(), "nothing is sent for the id that was given up");
}

macro_rules! time_outs {
    ($($test:ident: $reason:literal,)*) => {
        $(#[tokio::test] async fn $test() { detaches($reason).await; })*
    };
}

time_outs! {
    s6_a_time_out_of_the_typescript_sdk_detaches: "McpError: MCP error -32001: Request timed out",
    s6_a_time_out_of_the_typescript_sdk_2_detaches: "SdkError: Request timed out",
    s6_a_time_out_of_the_rust_sdk_detaches: "request timeout",
    s6_a_time_out_of_the_python_clients_detaches: "timed out after 5s",
    s6_a_time_out_of_the_go_sdk_detaches: "context deadline exceeded",
}

#[tokio::test]
async fn s6_nothing_is_sent_any_more_for_a_call_that_timed_out() {
    let peer = Peer::open(&[]).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    let steps = json!([{"wait_file": "go"}, {"send": note}, {"result": "{}"}]);
    let mut params = call_params("script", json!({"steps": steps}));
    params["_meta"] = json!({"progressToken": "t"});
    let id = peer.request("tools/call", params).await;
    peer.cancel(&id, TIME_OUT).await;
    let job = the_job(&peer, "script").await;
    peer.create("go");
    let result = peer.finish(job).await;
    assert_eq!(result.status(), "completed");
    assert!(peer.answers(&id).is_empty() && peer.notifications().is_empty());
    peer.cancel(&id, TIME_OUT).await;
    peer.settle().await;
    assert!(peer.received("notifications/cancelled").is_empty(), "nor is it cancelled again");
}

#[tokio::test]
async fn s6_detach_takes_every_cancel_as_a_time_out() {
    let peer = Peer::open_with("[tools.wait_file]\non_client_cancel = \"detach\"").await;
    let id = peer.start_until("go").await;
    peer.cancel(&id, "the user").await;
    let job = the_job(&peer, "wait_file").await;
    let other = peer.start("sleep", json!({"ms": 60_000})).await;
    peer.cancel(&other, "the user").await;
    assert_eq!(peer.cancelled().await, other, "only the tool that is named detaches");
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
}

#[tokio::test]
async fn s6_cancel_takes_every_cancel_as_the_users() {
    let peer = Peer::open_with("[tools.wait_file]\non_client_cancel = \"cancel\"").await;
    let id = peer.start_until("go").await;
    peer.cancel(&id, TIME_OUT).await;
    assert_eq!(peer.cancelled().await, id);
    assert!(peer.jobs().await.is_empty());
}

#[tokio::test]
async fn s6_a_silent_cancel_within_5_percent_of_a_time_out_is_one() {
    let peer = Peer::open_with("[tools.wait_file]\nanswer_within = \"never\"").await;
    let (begin, ages) = (Instant::now(), [2000, 2150, 2300].map(Duration::from_millis));
    let ids =
        [peer.start_until("a").await, peer.start_until("b").await, peer.start_until("c").await];
    let silent = peer.start_until("silent").await;
    for (id, age) in ids.iter().zip(ages) {
        sleep(age.saturating_sub(begin.elapsed())).await;
        peer.cancel(id, TIME_OUT).await;
        if age == ages[1] {
            // Later than the first by more than 5 % at most, and the last is still to come.
            peer.cancel(&silent, "").await;
        }
    }
    let early = peer.start_until("early").await;
    peer.cancel(&early, "").await;
    assert_eq!(peer.cancelled().await, early, "too early for a time-out");
    assert_eq!(peer.jobs().await.len(), 4, "one more than said so");
    assert_eq!(peer.received("notifications/cancelled").len(), 1);
}

// What is learned.

/// A client that has given up a call at once; its budget is 0.5 s now.
async fn impatient(config: &str, flags: &[&str]) -> Peer {
    let peer = Peer::opened(Setup::proxied().config(config).flags(flags)).await;
    give_up(&peer).await;
    peer
}

async fn give_up(peer: &Peer) {
    let id = peer.start_until("never").await;
    peer.cancel(&id, TIME_OUT).await;
}

#[tokio::test]
async fn s6_the_learned_budget_is_80_percent_of_the_time_out() {
    let peer = Peer::open(&[]).await;
    let before = Instant::now();
    let id = peer.start("wait_file", until("a")).await;
    sleep(Duration::from_millis(2500)).await;
    peer.cancel(&id, TIME_OUT).await;
    let at_most = before.elapsed();
    let begin = Instant::now();
    assert!(peer.call("wait_file", until("b")).await.is_handle());
    let budget = begin.elapsed();
    assert!(budget >= Duration::from_millis(2000), "{budget:?}");
    assert!(budget < at_most, "{budget:?} is not below {at_most:?}");
}

#[tokio::test]
async fn s6_the_learned_budget_holds_from_the_next_call_on_and_is_not_below_half_a_second() {
    let peer = Peer::open(&[]).await;
    let earlier = peer.start_until("earlier").await;
    give_up(&peer).await;
    let begin = Instant::now();
    peer.slow_call("wait_file", until("next")).await;
    assert!(begin.elapsed() >= Duration::from_millis(500), "{:?}", begin.elapsed());
    assert!(peer.answers(&earlier).is_empty(), "a call keeps the budget that it began with");
    peer.create("earlier");
    assert_eq!(peer.answer(&earlier).await.text(), "earlier");
}

#[tokio::test]
async fn s6_a_lesson_is_logged_once_as_a_warning() {
    let peer = Peer::open(&[]).await;
    let (older, newer) = (peer.start_until("a").await, peer.start_until("b").await);
    peer.cancel(&newer, TIME_OUT).await;
    peer.cancel(&older, TIME_OUT).await;
    peer.settle().await;
    peer.wait_stderr(|line| line.contains("WARN") && line.contains("test-client")).await;
    let log = peer.stderr();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
}

#[tokio::test]
async fn s6_a_lesson_holds_for_calls_that_poll_too() {
    let peer = impatient("", &[]).await;
    let handle = peer.call("wait_file", until("go")).await;
    let begin = Instant::now();
    assert!(peer.follow(&handle).await.is_handle(), "job_get waits no longer than the client");
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn s6_neither_a_tool_nor_the_caller_may_ask_for_more_than_was_learned() {
    let peer = impatient("[tools.wait_file]\nanswer_within = \"10m\"", &[]).await;
    let wish = json!({"unhurry/answer_within": 600});
    assert!(peer.call_with_meta("wait_file", until("a"), wish).await.is_handle());
}

#[tokio::test]
async fn s6_a_tool_that_is_never_deferred_is_exempt() {
    let peer = impatient("[tools.script]\nanswer_within = \"never\"", &[]).await;
    let steps = json!([{"wait_file": "go"}, {"result": "{}"}]);
    let exempt = peer.start("script", json!({"steps": steps})).await;
    assert!(peer.call("wait_file", until("b")).await.is_handle());
    assert!(peer.answers(&exempt).is_empty());
    peer.create("go");
    assert_eq!(peer.answer(&exempt).await.raw_result(), "{}");
}

/// A call of a modern client of this name and version; its id.
async fn start_as(peer: &Peer, name: &str, version: &str, file: &str) -> String {
    let mut params = call_params("wait_file", until(file));
    params["_meta"] =
        json!({"io.modelcontextprotocol/clientInfo": {"name": name, "version": version}});
    let before = peer.calls_of("wait_file").len();
    let id = peer.request("tools/call", params).await;
    peer.arrived("wait_file", before + 1).await;
    id
}

#[tokio::test]
async fn s6_a_lesson_holds_for_one_client_name_and_version() {
    let peer = Peer::proxied(&[], &["--modern"]);
    peer.become_modern("any", json!({}));
    let id = start_as(&peer, "hasty", "1", "a").await;
    peer.cancel(&id, TIME_OUT).await;
    let other_name = start_as(&peer, "calm", "1", "b").await;
    let other_version = start_as(&peer, "hasty", "2", "c").await;
    let same = start_as(&peer, "hasty", "1", "d").await;
    assert!(peer.answer(&same).await.is_handle());
    assert!(peer.answers(&other_name).is_empty() && peer.answers(&other_version).is_empty());
}

// Cancels of what is no running call.

#[tokio::test]
async fn s4_3_a_late_cancel_of_a_handle_is_ignored() {
    let peer = Peer::open(&[]).await;
    let handle = peer.park("go").await;
    peer.cancel(handle.raw_id(), "the user").await;
    peer.settle().await;
    assert_eq!(peer.look(handle.job_id()).await.status(), "working");
    peer.create("go");
    assert_eq!(peer.finish(handle.clone()).await.text(), "go");
    peer.cancel(handle.raw_id(), "the user").await;
    peer.settle().await;
    assert!(peer.received("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn s5_1_a_cancel_of_a_waiting_job_get_ends_the_wait_and_not_the_job() {
    let peer = Peer::open(&[]).await;
    let handle = peer.park("go").await;
    let wait = peer.start("job_get", json!({"job_id": handle.job_id()})).await;
    peer.cancel(&wait, TIME_OUT).await;
    peer.settle().await;
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go");
    assert!(peer.answers(&wait).is_empty());
    assert!(peer.received("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn s6_a_cancel_of_any_other_request_is_forwarded() {
    let peer = Peer::open_to(&["--unanswered", "resources/read"]).await;
    let id = peer.request("resources/read", json!({"uri": "x:y"})).await;
    peer.cancel(&id, TIME_OUT).await;
    assert_eq!(peer.cancelled().await, id);
    let late = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    peer.script(json!([{"send": late}, {"result": "{}"}])).await;
    assert!(peer.answers(&id).is_empty() && peer.jobs().await.is_empty());
}

async fn one_at_a_time() -> (Peer, String, String) {
    let peer = Peer::open_with("[tools.wait_file]\nmax_concurrent = 1").await;
    let first = peer.start_until("first").await;
    let second = peer.start("wait_file", until("second")).await;
    (peer, first, second)
}

/// The texts of the calls of `wait_file` that the server got.
fn files(peer: &Peer) -> Vec<Value> {
    let text = |call: &Entry| {
        let params: Value = serde_json::from_str(call.raw_params().expect("params")).expect("JSON");
        params["arguments"]["path"].clone()
    };
    peer.calls_of("wait_file").iter().map(text).collect()
}

#[tokio::test]
async fn s6_a_call_that_is_cancelled_in_line_never_reaches_the_server() {
    let (peer, first, second) = one_at_a_time().await;
    let third = peer.start("wait_file", until("third")).await;
    peer.cancel(&second, "the user").await;
    ["first", "second", "third"].iter().for_each(|file| peer.create(file));
    assert_eq!(peer.answer(&third).await.text(), "third");
    assert_eq!(files(&peer), ["first", "third"]);
    assert!(peer.answers(&second).is_empty() && peer.answers(&first).len() == 1);
    assert!(peer.received("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn s6_a_call_that_times_out_in_line_runs_as_a_job() {
    let (peer, first, second) = one_at_a_time().await;
    peer.cancel(&second, TIME_OUT).await;
    let job = the_job(&peer, "wait_file").await;
    ["first", "second"].iter().for_each(|file| peer.create(file));
    assert_eq!(peer.finish(job).await.text(), "second");
    assert_eq!(files(&peer), ["first", "second"]);
    assert!(peer.answers(&second).is_empty() && peer.answers(&first).len() == 1);
}

#[tokio::test]
async fn s6_initialize_cannot_be_cancelled() {
    let peer = Peer::proxied(&[], &["--slow-start", "300"]);
    let id = peer.request("initialize", json!({"protocolVersion": "2025-11-25"})).await;
    peer.cancel(&id, TIME_OUT).await;
    assert_eq!(peer.answer(&id).await.result()["protocolVersion"], "2025-11-25");
    peer.assert_works().await;
}

#[tokio::test]
async fn s6_a_cancel_that_names_nothing_is_passed_on_and_harms_nobody() {
    let peer = Peer::open(&[]).await;
    let id = peer.start_until("go").await;
    for params in [r#"{"requestId":"unknown"}"#, r#"{"requestId":null}"#, r#"{"reason":"x"}"#] {
        let line =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        peer.send_raw(&line).await;
        peer.journal_wait(|entry| entry.line == line).await;
    }
    peer.create("go");
    assert_eq!(peer.answer(&id).await.text(), "go");
}

#[tokio::test]
async fn s6_a_poll_that_times_out_teaches_the_smaller_budget_too() {
    let peer = Peer::open(&[]).await;
    let job = peer.park("never").await;
    let asked = Instant::now();
    let poll = peer.start("job_get", json!({"job_id": job.job_id()})).await;
    sleep(Duration::from_millis(1500)).await;
    let patience = asked.elapsed();
    peer.cancel(&poll, TIME_OUT).await;
    let asked = Instant::now();
    assert_eq!(peer.job_get(json!({"job_id": job.job_id()})).await.status(), "working");
    assert!(asked.elapsed() < patience, "{:?}", asked.elapsed());
    assert!(peer.answers(&poll).is_empty());
}
