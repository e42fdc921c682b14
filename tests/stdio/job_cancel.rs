//! `job_cancel` (contract §5.2).

use serde_json::{Value, json};
use support::json::member;
use support::{Peer, SOON, assert_text_says_all};

#[tokio::test]
async fn s5_2_a_cancel_tells_the_server_and_is_final() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("never").await;
    let answer = peer.job_cancel(handle.job_id()).await;
    assert!(!answer.is_error(), "{}", answer.raw);
    assert_eq!((answer.job_id(), answer.status()), (handle.job_id(), "cancelled"));
    assert_text_says_all(&answer);
    let told = peer.journal_method("notifications/cancelled").await;
    let called = &peer.calls_of("wait_file")[0];
    let id = member(&called.line, "id").expect("a request has an id");
    assert_eq!(member(told.raw_params().expect("params"), "requestId"), Some(id));
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    let end = peer.look(handle.job_id()).await;
    assert!(end.is_error() && end.status() == "cancelled", "{}", end.raw);
    assert!(end.text().contains("there is no result"), "{}", end.raw);
}

#[tokio::test]
async fn s5_2_a_late_result_is_dropped_and_the_progress_stays() {
    let peer = Peer::open(&SOON).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":3}}"#;
    let args = json!({"ignore_cancel": true, "steps": [{"send": note}, {"wait_file": peer.path("go")}, {"result": r#"{"content":[]}"#}]});
    let handle = peer.call_with_meta("script", args, json!({"progressToken": 1})).await;
    let answer = peer.job_cancel(handle.job_id()).await;
    assert_eq!(answer.structured()["progress"], json!({"progress": 3}));
    let mark = peer.mark();
    peer.create("go");
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.settle().await;
    let end = peer.look(handle.job_id()).await;
    assert_eq!(
        (end.status(), &end.structured()["progress"]),
        ("cancelled", &json!({"progress": 3}))
    );
    assert_eq!(peer.lines()[mark..].len(), 2, "nothing but our own two answers");
}

#[tokio::test]
async fn s5_2_on_a_finished_job_nothing_changes() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("go").await;
    peer.create("go");
    let end = peer.finish(handle).await;
    let answer = peer.job_cancel(end.job_id()).await;
    assert!(!answer.is_error() && answer.status() == "completed", "{}", answer.raw);
    let message = answer.structured()["message"].as_str().expect("a message");
    assert!(message.contains("had already ended (completed)"), "{message}");
    assert_text_says_all(&answer);
    assert_eq!(peer.look(end.job_id()).await.raw_result(), end.raw_result());
    assert_eq!(peer.told("notifications/cancelled"), 0);
}

#[tokio::test]
async fn s5_2_a_second_cancel_changes_nothing() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("never").await;
    for _ in 0..3 {
        assert_eq!(peer.job_cancel(handle.job_id()).await.status(), "cancelled");
    }
    peer.settle().await;
    assert_eq!(peer.told("notifications/cancelled"), 1);
}

#[tokio::test]
async fn s5_2_a_cancel_takes_a_prefix_and_leaves_other_jobs_alone() {
    let peer = Peer::open(&SOON).await;
    let (first, second) = (peer.job("one").await, peer.job("two").await);
    let answer = peer.job_cancel(&first.job_id()[..8].to_uppercase()).await;
    assert_eq!((answer.job_id(), answer.status()), (first.job_id(), "cancelled"));
    peer.create("two");
    assert_eq!(peer.finish(second).await.text(), "two is open");
}

#[tokio::test]
async fn s5_2_a_missing_job_id_is_explained() {
    let peer = Peer::open(&SOON).await;
    for params in [
        json!({"name": "job_cancel"}),
        json!({"name": "job_cancel", "arguments": {}}),
        json!({"name": "job_cancel", "arguments": {"job_id": null}}),
        json!({"name": "job_cancel", "arguments": []}),
    ] {
        let answer = peer.ask("tools/call", params).await;
        assert!(answer.is_error(), "{}", answer.raw);
        assert_eq!(answer.structured()["message"], "job_id is missing: name the call to stop");
    }
}

#[tokio::test]
async fn s5_2_a_wrong_job_id_gets_the_words_of_job_get() {
    let peer = Peer::open(&SOON).await;
    peer.job("never").await;
    let same_list = |mut body: Value| {
        body["jobs"][0]["age_seconds"] = 0.into();
        body
    };
    for name in [json!("nope"), json!(""), json!(12), json!("3f0c9a56-1111-4222-8333-444455556666")]
    {
        let answer = peer.call("job_cancel", json!({"job_id": name})).await;
        let known = peer.job_get(json!({"job_id": name})).await;
        assert!(answer.is_error(), "{}", answer.raw);
        assert_eq!(same_list(answer.structured().clone()), same_list(known.structured().clone()));
    }
    assert_eq!(peer.jobs().await[0]["status"], "working");
}
