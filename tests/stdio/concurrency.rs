//! Many things at a time (C26, C27, C28, C76): nothing waits for what it has nothing to do with.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Peer, Setup};

/// At once, on a busy machine.
const AT_ONCE: Duration = Duration::from_millis(1000);
/// A list that the server leaves unanswered is repeated after this (§1.1.5).
const LIST_PATIENCE: Duration = Duration::from_secs(2);

/// Starts a call that ends when the file is created; its raw id.
async fn wait_for(peer: &Peer, file: &str) -> String {
    let id = peer.start("wait_file", json!({"path": peer.path(file), "text": file})).await;
    peer.journal_wait(|entry| entry.is_call_of("wait_file") && entry.line.contains(file)).await;
    id
}

/// A call whose handle goes out early, by the caller's own wish.
async fn background(peer: &Peer, file: &str) -> Answer {
    let args = json!({"path": peer.path(file), "text": file});
    let wish = json!({"unhurry/answer_within": 0.3});
    let handle = peer.call_with_meta("wait_file", args, wish).await;
    assert!(handle.is_handle(), "{}", handle.raw);
    handle
}

async fn asked_at_once(peer: &Peer, method: &str, params: Value) -> Answer {
    let start = Instant::now();
    let answer = peer.ask(method, params).await;
    assert!(start.elapsed() < AT_ONCE, "{method}: {:?}", start.elapsed());
    answer
}

#[tokio::test]
async fn c26_a_slow_call_holds_nothing_else_up() {
    let peer = Peer::open(&[]).await;
    let slow = wait_for(&peer, "slow").await;
    asked_at_once(&peer, "ping", json!({})).await.result();
    asked_at_once(&peer, "tools/list", json!({})).await.result();
    let echo = json!({"name": "echo", "arguments": {"text": "fast"}});
    assert_eq!(asked_at_once(&peer, "tools/call", echo).await.text(), "fast");
    assert!(peer.answers(&slow).is_empty());
    peer.create("slow");
    assert_eq!(peer.answer(&slow).await.text(), "slow");
}

#[tokio::test]
async fn c26_a_server_blocked_by_its_own_tool_still_seems_alive() {
    let peer = Peer::open_to(&["--block"]).await;
    let known = peer.ask("tools/list", json!({})).await;
    let slow = wait_for(&peer, "slow").await;

    let second = peer.start("echo", json!({"text": "second"})).await;
    assert_eq!(asked_at_once(&peer, "ping", json!({})).await.raw_result(), "{}");
    let start = Instant::now();
    let list = peer.ask("tools/list", json!({})).await;
    assert!(start.elapsed() >= LIST_PATIENCE, "the server had {:?}", start.elapsed());
    assert_eq!(list.raw_result(), known.raw_result());
    assert!(peer.answers(&slow).is_empty() && peer.answers(&second).is_empty());

    peer.create("slow");
    assert_eq!(peer.answer(&slow).await.text(), "slow");
    assert_eq!(peer.answer(&second).await.text(), "second");
    peer.settle().await;
    assert_eq!(peer.answers(list.raw_id()).len(), 1, "the server's late list is dropped");
}

#[tokio::test]
async fn c26_a_list_that_was_never_answered_waits_for_the_server() {
    let peer = Peer::open_to(&["--block"]).await;
    peer.ask("tools/list", json!({})).await;
    let slow = wait_for(&peer, "slow").await;
    // `prompts/list` has no last answer; when `tools/list`, sent after it, is given again, the time
    // of both is over.
    let prompts = peer.request("prompts/list", json!({})).await;
    peer.ask("tools/list", json!({})).await.result();
    assert!(peer.answers(&prompts).is_empty());
    peer.create("slow");
    assert_eq!(peer.answer(&prompts).await.raw_result(), r#"{"prompts":[]}"#);
    peer.answer(&slow).await;
}

#[tokio::test]
async fn s1_1_5_a_ping_outside_of_calls_is_the_servers_to_answer() {
    let peer = Peer::open_to(&["--answer", r#"ping={"from":"the server"}"#]).await;
    let answer = peer.ask("ping", json!({})).await;
    assert_eq!(answer.raw_result(), r#"{"from":"the server"}"#);
}

#[tokio::test]
async fn c27_a_waiting_job_get_holds_nothing_up_and_ends_with_its_job() {
    let peer = Peer::open(&["--answer-within", "15s"]).await;
    let handle = background(&peer, "slow").await;
    let id = handle.job_id().to_owned();
    let wait = peer.start("job_get", json!({"job_id": id, "wait_seconds": 15})).await;
    asked_at_once(&peer, "ping", json!({})).await.result();
    assert!(peer.answers(&wait).is_empty(), "it waits");
    let cancel = json!({"name": "job_cancel", "arguments": {"job_id": id}});
    assert_eq!(asked_at_once(&peer, "tools/call", cancel).await.status(), "cancelled");
    let start = Instant::now();
    assert_eq!(peer.answer(&wait).await.status(), "cancelled");
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    peer.journal_method("notifications/cancelled").await;
}

#[tokio::test]
async fn c27_many_may_wait_for_one_job() {
    let peer = Peer::open(&["--answer-within", "15s"]).await;
    let handle = background(&peer, "slow").await;
    let args = json!({"job_id": handle.job_id(), "wait_seconds": 15});
    let mut waits = Vec::new();
    for _ in 0..20 {
        waits.push(peer.start("job_get", args.clone()).await);
    }
    peer.settle().await;
    assert!(waits.iter().all(|wait| peer.answers(wait).is_empty()));
    peer.create("slow");
    for wait in &waits {
        assert_eq!(peer.answer(wait).await.text(), "slow");
        assert_eq!(peer.answers(wait).len(), 1);
    }
}

#[tokio::test]
async fn c28_answers_out_of_order_reach_their_calls_and_a_lost_one_ends() {
    let toml = "[defaults]\nanswer_within = \"15s\"\n\
                [tools.script]\nanswer_within = \"300ms\"\nmax_runtime = \"1s\"\n";
    let peer = Peer::opened(Setup::proxied().config(toml)).await;
    let lost = peer.start("script", json!({"steps": []})).await;
    let (second, third) = (wait_for(&peer, "second").await, wait_for(&peer, "third").await);
    for (file, id) in [("third", &third), ("second", &second)] {
        peer.create(file);
        assert_eq!(peer.answer(id).await.text(), file);
    }
    let handle = peer.answer(&lost).await;
    assert!(handle.is_handle(), "{}", handle.raw);
    let end = peer.finish(handle).await;
    assert_eq!((end.status(), end.is_error()), ("failed", true));
    assert!(end.text().contains("max_runtime"), "{}", end.text());
    assert_eq!(peer.calls_of("script").len(), 1);
}

#[tokio::test]
async fn c28_an_answer_given_twice_or_to_nobody_is_passed_on_once_or_never() {
    let peer = Peer::open(&[]).await;
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#;
    let nobody = r#"{"jsonrpc":"2.0","id":"nobody","result":{"content":[]}}"#;
    let steps = json!([{"send": nobody}, {"send": answer}, {"send": answer}]);
    let first = peer.script(steps).await;
    peer.settle().await;
    assert_eq!(peer.answers(first.raw_id()).len(), 1);
    assert!(peer.answers(r#""nobody""#).is_empty());
}

#[tokio::test]
async fn c76_twenty_calls_need_one_handshake_and_one_list() {
    for lists in [0, 1] {
        let peer = Peer::open(&[]).await;
        for _ in 0..lists {
            peer.ask("tools/list", json!({})).await.result();
        }
        for number in 0..20 {
            let text = format!("call {number}");
            assert_eq!(peer.call("echo", json!({"text": text})).await.text(), text);
        }
        let journal = peer.journal();
        let count = |method: &str| journal.iter().filter(|entry| entry.has_method(method)).count();
        assert_eq!((count("initialize"), count("notifications/initialized")), (1, 1));
        assert_eq!((count("tools/list"), count("tools/call")), (1, 20));
        assert_eq!(journal.iter().filter(|entry| entry.event == "start").count(), 1);
    }
}
