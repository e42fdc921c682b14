//! JSON-RPC batches: understood under 2025-03-26, untouched under any other revision (contract §1.1).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::json::{elements, member};
use support::{Answer, Line, Peer, call_message, until};

async fn open(protocol: &str) -> Peer {
    let peer = Peer::proxied(&[], &[]);
    peer.initialize_under(protocol).await;
    peer
}

fn request(id: &str, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A call that goes to the background.
fn deferred(id: &str, file: &str) -> Value {
    let mut call = call_message(id, "wait_file", until(file));
    call["params"]["_meta"] = json!({"unhurry/answer_within": 0.5});
    call
}

/// Sends a batch and waits for the array that answers it.
async fn ask(peer: &Peer, batch: Value) -> Vec<Answer> {
    let mark = peer.mark();
    peer.send_raw(&batch.to_string()).await;
    array(peer, mark).await
}

async fn array(peer: &Peer, mark: usize) -> Vec<Answer> {
    let line = peer.wait_line_from(mark, |line| line.text.starts_with('[')).await;
    line.assert_protocol();
    elements(&line.text).expect("an array").into_iter().map(Answer::new).collect()
}

fn to<'a>(answers: &'a [Answer], id: &str) -> &'a Answer {
    let id = json!(id).to_string();
    answers.iter().find(|answer| answer.raw_id() == id).expect("an answer to this id")
}

#[tokio::test]
async fn batch_the_answers_come_as_one_array() {
    let peer = open("2025-03-26").await;
    let batch = json!([
        call_message("a", "sleep", json!({"ms": 100, "text": "slow"})),
        request("b", "x/echo_params", json!({"n": 1})),
        request("c", "x/none", json!({})),
        call_message("d", "job_get", json!({})),
        request("e", "ping", json!({})),
    ]);
    let answers = ask(&peer, batch).await;
    assert_eq!(answers.len(), 5);
    assert_eq!(to(&answers, "a").text(), "slow");
    assert_eq!(to(&answers, "b").raw_result(), r#"{"n":1}"#);
    assert_eq!(to(&answers, "c").error_code(), -32601);
    assert!(to(&answers, "d").result()["content"].is_array());
    assert_eq!(to(&answers, "e").raw_result(), "{}");
    assert_eq!(peer.lines().len(), 2, "the greeting and the array");
}

#[tokio::test]
async fn batch_requests_notifications_and_responses_may_be_mixed() {
    let peer = open("2025-03-26").await;
    let steps =
        json!([{"request": {"method": "roots/list", "id": "\"q\""}}, {"result": "[$ANSWER]"}]);
    let id = peer.start("script", json!({"steps": steps})).await;
    peer.wait_method("roots/list").await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "q", "result": {"roots": []}},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        call_message("a", "echo", json!({"text": "hi"})),
    ]);
    let answers = ask(&peer, batch).await;
    assert_eq!((answers.len(), answers[0].text()), (1, "hi"));
    assert_eq!(peer.answer(&id).await.raw_result(), r#"[{"roots":[]}]"#);
    let note = peer.journal_wait(|entry| entry.line.contains("roots/list_changed")).await;
    assert!(note.line.starts_with('{'), "a message by itself: {}", note.line);
}

#[tokio::test]
async fn batch_a_call_over_its_budget_has_its_handle_in_the_array_at_the_budget() {
    let peer = open("2025-03-26").await;
    let begin = Instant::now();
    let answers =
        ask(&peer, json!([deferred("a", "go"), call_message("b", "echo", json!({"text": "hi"}))]))
            .await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!((answers.len(), to(&answers, "b").text()), (2, "hi"));
    let handle = to(&answers, "a").clone();
    assert!(handle.is_handle());
    assert!(handle.structured().is_null(), "this revision has no structured content");
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go");
    assert_eq!(peer.answers("\"a\"").len(), 1);
}

#[tokio::test]
async fn batch_the_answers_that_are_there_leave_at_the_budget() {
    let peer = Peer::proxied(&["--answer-within", "1s"], &["--unanswered", "resources/read"]);
    peer.initialize_under("2025-03-26").await;
    let read = request("b", "resources/read", json!({"uri": "file:///x"}));
    let begin = Instant::now();
    let answers = ask(&peer, json!([call_message("a", "echo", json!({"text": "hi"})), read])).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!((answers.len(), to(&answers, "a").text()), (1, "hi"));

    let mark = peer.mark();
    let late = r#"{"jsonrpc":"2.0","id":"b","result":{"contents":[]}}"#;
    peer.script(json!([{"send": late}, {"result": "{}"}])).await;
    let answers = array(&peer, mark).await;
    assert_eq!((answers.len(), to(&answers, "b").raw_result()), (1, r#"{"contents":[]}"#));
}

#[tokio::test]
async fn batch_of_notifications_alone_is_not_answered() {
    let peer = open("2025-03-26").await;
    let note = |n: u8| json!({"jsonrpc": "2.0", "method": "x/note", "params": {"n": n}});
    peer.send_raw(&json!([note(1), note(2)]).to_string()).await;
    peer.settle().await;
    assert_eq!(peer.lines().len(), 2, "the greeting and what settled");
    assert_eq!(peer.received("x/note").len(), 2);
}

#[tokio::test]
async fn batch_a_cancelled_call_leaves_the_array_of_the_others() {
    let peer = open("2025-03-26").await;
    let batch = json!([
        call_message("a", "wait_file", until("never")),
        call_message("b", "wait_file", until("go"))
    ]);
    let mark = peer.mark();
    peer.send_raw(&batch.to_string()).await;
    peer.arrived("wait_file", 2).await;
    peer.create("go");
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.settle().await;
    assert!(!peer.lines()[mark..].iter().any(|line| line.text.starts_with('[')));
    peer.cancel("\"a\"", "the user").await;
    let answers = array(&peer, mark).await;
    assert_eq!((answers.len(), answers[0].text()), (1, "go"));
}

#[tokio::test]
async fn batch_with_a_cancel_of_its_only_call_is_not_answered() {
    let peer = open("2025-03-26").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}});
    peer.send_raw(&json!([call_message("a", "wait_file", until("never")), cancel]).to_string())
        .await;
    peer.settle().await;
    assert_eq!(peer.lines().len(), 2, "the greeting and what settled");
    assert_eq!(peer.received("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn batch_a_poll_that_is_cancelled_does_not_hold_the_others() {
    let peer = open("2025-03-26").await;
    let job = peer.park("go").await;
    let mark = peer.mark();
    let poll = call_message("a", "job_get", json!({"job_id": job.job_id()}));
    peer.send_raw(&json!([poll, call_message("b", "echo", json!({"text": "hi"}))]).to_string())
        .await;
    peer.settle().await;
    peer.cancel("\"a\"", "the user").await;
    let answers = array(&peer, mark).await;
    assert_eq!((answers.len(), answers[0].text()), (1, "hi"));
}

#[tokio::test]
async fn batch_with_initialize_is_refused_for_that_element() {
    let peer = open("2025-03-26").await;
    let initialize = request("a", "initialize", json!({"protocolVersion": "2025-03-26"}));
    let answers =
        ask(&peer, json!([initialize, request("b", "x/echo_params", json!({"n": 1}))])).await;
    assert_eq!(to(&answers, "a").error_code(), -32600);
    assert_eq!(to(&answers, "b").raw_result(), r#"{"n":1}"#);
    assert_eq!(peer.received("initialize").len(), 1, "the one that opened the session");
}

#[tokio::test]
async fn batch_elements_that_are_no_messages_are_refused_one_by_one() {
    let peer = open("2025-03-26").await;
    let answers =
        ask(&peer, json!([1, {"x": 1}, call_message("a", "echo", json!({"text": "hi"}))])).await;
    assert_eq!(to(&answers, "a").text(), "hi");
    let refused = answers.iter().filter(|answer| answer.raw_id() == "null");
    assert!(refused.clone().all(|answer| answer.error_code() == -32600));
    assert_eq!((answers.len(), refused.count()), (3, 2));
}

#[tokio::test]
async fn batch_of_one_is_answered_by_an_array_of_one() {
    let peer = open("2025-03-26").await;
    let answers = ask(&peer, json!([call_message("a", "echo", json!({"text": "hi"}))])).await;
    assert_eq!((answers.len(), answers[0].text()), (1, "hi"));
}

// Batches of the server.

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"x/note","params":{"n": 1.10}}"#;

/// Calls a script that answers itself in a batch with a notification and with progress.
async fn let_batch(peer: &Peer, meta: Value) -> Answer {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    let result = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[], "x":1.10}}"#;
    let line = format!("[ {NOTE}, {progress} ,{result}]");
    let args = json!({"steps": [{"wait_file": "go"}, {"send": line}]});
    peer.call_with_meta("script", args, meta).await
}

#[tokio::test]
async fn batch_of_the_server_is_understood() {
    let peer = open("2025-03-26").await;
    peer.create("go");
    let answer = let_batch(&peer, json!({"progressToken": "t"})).await;
    assert_eq!(answer.raw_result(), r#"{"content":[], "x":1.10}"#);
    peer.wait_line(|line| line.messages().contains(&NOTE)).await;
    let progress = peer.wait_line(|line| line.text.contains("notifications/progress")).await;
    assert!(progress.text.contains(r#""progressToken":"t""#));
    assert!(peer.lines().iter().all(|line| line.text.starts_with('{')), "each by itself");
}

#[tokio::test]
async fn batch_of_the_server_that_ends_a_job_is_understood() {
    let peer = open("2025-03-26").await;
    let meta = json!({"progressToken": "t", "unhurry/answer_within": 0});
    let job = let_batch(&peer, meta).await;
    peer.create("go");
    let answer = peer.finish(job).await;
    assert_eq!(answer.result()["x"], 1.1);
    peer.wait_line(|line| line.messages().contains(&NOTE)).await;
    assert!(!peer.lines().iter().any(|line| line.text.contains("notifications/progress")));
}

// Other revisions.

async fn is_untouched(protocol: &str) {
    let peer = open(protocol).await;
    let line = r#"[ {"jsonrpc":"2.0", "id":"a","method":"x/echo_params"},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"echo","_meta":{"unhurry/answer_within":0}}} ]"#;
    peer.send_raw(line).await;
    peer.journal_wait(|entry| entry.line == line).await;
    let answer = format!(r#"[{NOTE}, {{"jsonrpc":"2.0","id":"unknown","result":{{}}}} ]"#);
    peer.script(json!([{"send": answer}, {"result": "{}"}])).await;
    peer.wait_line(|line: &Line| line.text == answer).await;
}

#[tokio::test]
async fn batch_under_any_other_revision_goes_through_untouched() {
    for protocol in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        is_untouched(protocol).await;
    }
}

#[tokio::test]
async fn batch_that_is_empty_is_the_servers_to_judge() {
    let peer = open("2025-03-26").await;
    peer.send_raw("[ ]").await;
    peer.journal_wait(|entry| entry.line == "[ ]").await;
    assert_eq!(member(&peer.lines()[0].text, "id"), Some("1"));
}
