//! Calls in the background whose modern server asks for input (contract §8.4, MCP 2026-07-28).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::json::path;
use support::{Answer, Peer, Setup, call_params, until};

/// A modern client whose call of `ask` is in the background, with its question shown by `job_get`.
async fn questioned(config: &str) -> (Peer, Answer) {
    let config = format!("[defaults]\nanswer_within = \"300ms\"\n{config}");
    let peer = Setup::proxied().config(&config).flags(&["--modern"]).spawn();
    peer.become_modern("test-client", json!({"elicitation": {"form": {}}}));
    let handle = peer.slow_call("ask", json!({"ms": 400})).await;
    let question = peer.follow(&handle).await;
    (peer, question)
}

/// What an SDK does with a question: the same call again, with the answers.
async fn answered(peer: &Peer, job_id: &str) -> Answer {
    let responses = json!({"choice": {"action": "accept", "content": {"choice": "blue"}}});
    let params = json!({
        "name": "job_get", "arguments": {"job_id": job_id},
        "inputResponses": responses, "requestState": "asked",
    });
    peer.ask("tools/call", params).await
}

#[tokio::test]
async fn s8_4_a_question_is_shown_by_job_get_as_the_server_put_it() {
    let (peer, question) = questioned("").await;
    assert_eq!(question.result()["resultType"], "input_required");
    assert_eq!(question.result()["requestState"], "asked");
    assert_eq!(question.job()["status"], "input_required");
    assert_eq!(question.job()["done"], false);
    assert_eq!(peer.jobs().await[0]["status"], "input_required");
}

#[tokio::test]
async fn s8_4_the_answers_go_to_the_server_with_the_original_call() {
    let (peer, question) = questioned("").await;
    let id = question.job()["job_id"].as_str().expect("an id").to_owned();
    let end = peer.finish(answered(&peer, &id).await).await;
    assert!(end.text().contains("blue"), "{}", end.raw);
    assert_eq!(*end.job(), json!({"job_id": id, "status": "completed", "done": true}));
    let calls = peer.calls_of("ask");
    assert_eq!(calls.len(), 2, "once for the question, once with the answers");
    let member = |call: usize, name: &str| path(&calls[call].line, &["params", name]);
    assert_eq!(member(0, "arguments"), member(1, "arguments"));
    assert_eq!(member(1, "requestState"), Some("\"asked\""));
    assert!(member(1, "inputResponses").is_some_and(|responses| responses.contains("blue")));
}

#[tokio::test]
async fn s8_4_a_question_that_nobody_answers_ends_with_max_runtime() {
    let (peer, _) = questioned("max_runtime = \"1500ms\"").await;
    peer.newest_becomes("failed").await;
    let id = peer.jobs().await[0]["job_id"].as_str().expect("an id").to_owned();
    assert!(peer.look(&id).await.text().contains("nobody answered within max_runtime"));
}

#[tokio::test]
async fn s8_4_a_job_that_waits_for_input_can_be_cancelled() {
    let (peer, question) = questioned("").await;
    let id = question.job()["job_id"].as_str().expect("an id").to_owned();
    assert_eq!(peer.job_cancel(&id).await.status(), "cancelled");
    assert!(answered(&peer, &id).await.text().contains("CANCELLED"), "answers come too late");
    peer.settle().await;
    assert_eq!(peer.calls_of("ask").len(), 1);
    assert_eq!(peer.told("notifications/cancelled"), 0, "there is nothing to cancel");
}

#[tokio::test]
async fn s5_2_the_cancel_of_a_job_that_waits_for_input_spares_the_call_under_its_id() {
    let (peer, question) = questioned("").await;
    let id = peer.calls_of("ask")[0].raw_id().to_owned();
    let mark = peer.mark();
    let mut params = call_params("wait_file", until("go"));
    params["_meta"] = json!({"unhurry/answer_within": 60});
    peer.request_as(&id, "tools/call", params).await;
    peer.arrived("wait_file", 1).await;
    assert_eq!(peer.job_cancel(question.job_id()).await.status(), "cancelled");
    peer.settle().await;
    peer.create("go");
    assert_eq!(peer.answer_from(mark, &id).await.text(), "go");
    assert_eq!(peer.told("notifications/cancelled"), 0);
}

#[tokio::test]
async fn s8_4_a_call_that_is_asked_again_has_a_token_of_ours_in_its_meta() {
    let config = "[defaults]\nanswer_within = \"300ms\"\nask_progress = true\n";
    for wish in ["", r#","unhurry/answer_within":0"#] {
        let peer = Setup::proxied().config(config).flags(&["--modern"]).spawn();
        peer.become_modern("test-client", json!({"elicitation": {"form": {}}}));
        let meta = format!(r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"{wish}}}"#);
        peer.send_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"name":"ask","arguments":{{"ms":400}},"_meta":{meta}}}}}"#
        ))
        .await;
        let question = peer.follow(&peer.answer("\"a\"").await).await;
        let end = peer.finish(answered(&peer, question.job_id()).await).await;
        assert!(end.text().contains("blue"), "{}", end.raw);
        let calls = peer.calls_of("ask");
        assert_eq!(calls.len(), 2);
        for call in calls {
            let meta = path(&call.line, &["params", "_meta"]).expect("the call has a _meta");
            let meta: Value = serde_json::from_str(meta).expect("it is JSON");
            assert!(meta["progressToken"].is_number(), "{meta}");
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            assert_eq!(meta.as_object().map(|meta| meta.len()), Some(2), "{meta}");
        }
    }
}

#[tokio::test]
async fn s5_1_envelopes_of_a_job_that_waits_for_input_are_spread() {
    let peer = Peer::proxied(&[], &["--modern"]);
    peer.become_modern("test-client", json!({"elicitation": {"form": {}}}));
    let handle = peer.defer("ask", json!({"ms": 400})).await;
    let question = peer.follow(&handle).await;
    let poll = json!({"job_id": question.job_id(), "envelope": true, "wait_seconds": 0});
    let start = Instant::now();
    for _ in 0..2 {
        let answer = peer.job_get(poll.clone()).await;
        assert_eq!(answer.structured()["status"], "input_required", "{}", answer.raw);
    }
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}
