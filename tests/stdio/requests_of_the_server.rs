//! What the server asks of the client, while calls wait and while they run in the background
//! (contract §1.1, §8.4).

use serde_json::{Value, json};
use support::json::{member, path};
use support::{Answer, Line, Peer, call_params, until};

/// A script that waits for `go`, asks the client under this raw id, and ends with the answer.
fn asking(method: &str, id: &str) -> Value {
    let question = json!({"method": method, "id": id, "params": {"n": 1}});
    let result = r#"{"content":[{"type":"text","text":"done"}],"answer":$ANSWER}"#;
    json!({"steps": [{"wait_file": "go"}, {"request": question}, {"result": result}]})
}

fn is_request(line: &Line, method: &str) -> bool {
    line.has_method(method) && line.id().is_some()
}

async fn question(peer: &Peer, method: &str) -> Line {
    peer.wait_line(|line| is_request(line, method)).await
}

fn answer_of(result: &Answer) -> &str {
    path(result.raw_result(), &["answer"]).expect("the answer is in the result")
}

#[tokio::test]
async fn c47_a_question_under_the_id_of_the_waiting_call_and_its_answer_reach_their_sides() {
    let peer = Peer::open(&[]).await;
    peer.request_as("7", "tools/call", call_params("script", asking("elicitation/create", "$ID")))
        .await;
    peer.create("go");
    let question = question(&peer, "elicitation/create").await;
    assert_eq!(question.id(), Some("7"), "the server has chosen the id of the call");
    assert_eq!(member(&question.text, "params"), Some(r#"{"n":1}"#));
    peer.respond(&question, r#"{"action": "accept", "content":{"n":1.10}}"#).await;
    let result = peer.answer("7").await;
    assert_eq!(answer_of(&result), r#"{"action": "accept", "content":{"n":1.10}}"#);
}

#[tokio::test]
async fn c47_a_question_of_a_background_call_reaches_the_client_and_its_answer_the_server() {
    let peer = Peer::open(&[]).await;
    let job = peer.defer("script", asking("elicitation/create", "$ID")).await;
    peer.create("go");
    let question = question(&peer, "elicitation/create").await;
    assert_eq!(question.id(), Some(job.raw_id()), "the id of the call, which has its handle");
    peer.respond(&question, r#"{"action":"decline"}"#).await;
    let result = peer.finish(job).await;
    assert_eq!(answer_of(&result), r#"{"action":"decline"}"#);
}

#[tokio::test]
async fn c47_a_question_under_the_id_of_another_request_of_the_client() {
    let peer = Peer::open_to(&["--unanswered", "x/slow"]).await;
    peer.request_as("7", "x/slow", json!({})).await;
    let job = peer.defer("script", asking("roots/list", "7")).await;
    peer.create("go");
    peer.respond(&question(&peer, "roots/list").await, r#"{"roots":[]}"#).await;
    assert_eq!(answer_of(&peer.finish(job).await), r#"{"roots":[]}"#);
    peer.cancel("7", "the user").await;
    let cancel = peer.journal_method("notifications/cancelled").await;
    assert!(cancel.line.contains(r#""requestId":7"#), "the client's own request is still known");
}

#[tokio::test]
async fn c47_a_question_while_the_client_reuses_the_id_of_the_background_call() {
    let peer = Peer::open(&[]).await;
    let job = peer.defer("script", asking("elicitation/create", "$ID")).await;
    let (id, mark) = (job.raw_id().to_owned(), peer.mark());
    peer.request_as(&id, "tools/call", call_params("wait_file", until("end"))).await;
    peer.arrived("wait_file", 1).await;
    peer.create("go");
    let question = question(&peer, "elicitation/create").await;
    peer.respond(&question, r#"{"action":"accept"}"#).await;
    assert_eq!(answer_of(&peer.finish(job).await), r#"{"action":"accept"}"#);
    peer.create("end");
    assert_eq!(peer.answer_from(mark, &id).await.text(), "end");
}

#[tokio::test]
async fn c47_questions_at_once_get_their_answers_in_whatever_order() {
    let peer = Peer::open(&[]).await;
    let ids = ["1", "\"1\"", "\"b\""];
    let mut jobs = Vec::new();
    for id in ids {
        jobs.push(peer.defer("script", asking("elicitation/create", id)).await);
    }
    peer.create("go");
    for id in ids.iter().rev() {
        let wanted = |line: &Line| is_request(line, "elicitation/create") && line.id() == Some(id);
        let question = peer.wait_line(wanted).await;
        peer.respond(&question, &format!("[{id}]")).await;
    }
    for (job, id) in jobs.into_iter().zip(ids) {
        assert_eq!(answer_of(&peer.finish(job).await), format!("[{id}]"));
    }
}

async fn refuses(job: Option<Answer>, peer: &Peer, waiting: &str) {
    peer.create("go");
    let question = question(peer, "sampling/createMessage").await;
    let error = r#"{"code":-32601,"message":"no sampling", "data":1.10}"#;
    let id = question.id().expect("a request has an id");
    peer.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)).await;
    let result = match job {
        Some(job) => peer.finish(job).await,
        None => peer.answer(waiting).await,
    };
    assert_eq!(answer_of(&result), error);
}

#[tokio::test]
async fn c48_the_refusal_of_a_client_without_the_capability_reaches_the_server() {
    let peer = Peer::proxied(&[], &[]);
    peer.initialize_with("c", "1", "2025-11-25", json!({})).await;
    let id = peer.start("script", asking("sampling/createMessage", "\"s\"")).await;
    refuses(None, &peer, &id).await;
}

#[tokio::test]
async fn c48_the_refusal_reaches_the_server_of_a_background_call_too() {
    let peer = Peer::proxied(&[], &[]);
    peer.initialize_with("c", "1", "2025-11-25", json!({})).await;
    let job = peer.defer("script", asking("sampling/createMessage", "\"s\"")).await;
    refuses(Some(job), &peer, "").await;
}

#[tokio::test]
async fn s1_1_an_unknown_request_and_a_ping_of_the_server_reach_the_client() {
    let peer = Peer::open(&[]).await;
    peer.create("go");
    for method in ["x/ask", "ping"] {
        let job = peer.start("script", asking(method, "\"q\"")).await;
        let mark = peer.mark();
        let question = peer.wait_line_from(mark, |line| is_request(line, method)).await;
        peer.respond(&question, "{}").await;
        assert_eq!(answer_of(&peer.answer_from(mark, &job).await), "{}");
    }
}

#[tokio::test]
async fn s1_1_a_question_that_the_server_takes_back() {
    let peer = Peer::open(&[]).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q", "reason":"r"}}"#;
    let ask = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
    peer.script(json!([{"send": ask}, {"send": cancel}, {"result": "{}"}])).await;
    assert_eq!(peer.wait_method("notifications/cancelled").await.text, cancel);
}

/// Lets the server die while it waits for an answer, and starts it anew; the open question.
async fn orphaned(id: &str) -> (Peer, Line) {
    let peer = Peer::open(&[]).await;
    let job = peer.defer("script", asking("roots/list", id)).await;
    peer.create("go");
    let question = question(&peer, "roots/list").await;
    peer.call("exit", json!({"code": 3})).await;
    peer.listed_as(job.job_id(), "failed").await;
    peer.assert_works().await;
    (peer, question)
}

#[tokio::test]
async fn s9_an_answer_to_a_server_that_has_died_since_is_dropped() {
    let (peer, question) = orphaned("\"q\"").await;
    peer.respond(&question, r#"{"roots":[]}"#).await;
    peer.settle().await;
    assert!(!peer.journal().iter().any(|entry| entry.line.contains(r#"{"roots":[]}"#)));
}

#[tokio::test]
async fn s9_a_question_of_the_new_server_is_taken_back_under_the_id_that_the_client_knows() {
    let (peer, _) = orphaned("7").await;
    let (mark, id) = (peer.mark(), "7");
    let ask = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
    let cancel = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    );
    peer.script(json!([{"send": ask}, {"send": cancel}, {"result": "{}"}])).await;
    let question = peer.wait_line_from(mark, |line| is_request(line, "roots/list")).await;
    let taken_back = peer.wait_method("notifications/cancelled").await;
    assert_eq!(path(&taken_back.text, &["params", "requestId"]), question.id());
}

#[tokio::test]
async fn s9_an_answer_to_the_new_server_under_the_same_id_arrives() {
    let (peer, old) = orphaned("\"q\"").await;
    let mark = peer.mark();
    let mut args = asking("roots/list", "\"q\"");
    args["again"] = json!(true);
    let id = peer.start("script", args).await;
    let new = peer.wait_line_from(mark, |line| is_request(line, "roots/list")).await;
    assert_ne!(old.id(), new.id(), "the client may have both in hand");
    peer.respond(&old, r#"{"roots":["old"]}"#).await;
    peer.respond(&new, r#"{"roots":["new"]}"#).await;
    assert_eq!(answer_of(&peer.answer(&id).await), r#"{"roots":["new"]}"#);
}
