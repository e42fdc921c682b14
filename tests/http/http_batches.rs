//! Arrays of messages over HTTP, which 2025-03-26 alone allows (contract §1.1).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, HttpPeer, Peer, call_message, until};

async fn open(peer: &Peer) -> HttpPeer {
    let client = peer.http().await;
    client.initialize_under("2025-03-26").await;
    client
}

/// All answers in a body, be it one array or arrays and single messages on a stream.
async fn answers(client: &HttpPeer, batch: Value) -> Vec<Answer> {
    let mut response = client.post(&batch.to_string()).await;
    assert_eq!(response.status, 200);
    let mut all = vec![];
    while let Some(line) = response.message().await {
        all.extend(line.messages().into_iter().map(Answer::new));
    }
    all
}

fn of<'a>(answers: &'a [Answer], raw_id: &str) -> &'a Answer {
    let found = answers.iter().find(|answer| answer.raw_id() == raw_id);
    found.unwrap_or_else(|| panic!("no answer to {raw_id} in {answers:?}"))
}

#[tokio::test]
async fn s1_1_an_array_is_answered_by_one_array_with_each_clients_own_ids() {
    let peer = Peer::serve("", &[]);
    let client = open(&peer).await;
    let batch = json!([
        call_message(1, "echo", json!({"text": "number"})),
        {"jsonrpc": "2.0", "method": "x/note"},
        call_message("1", "echo", json!({"text": "string"})),
        {"jsonrpc": "2.0", "id": 2, "method": "x/none"},
    ]);
    let mut response = client.post(&batch.to_string()).await;
    assert_eq!((response.status, response.header("content-type")), (200, "application/json"));
    let array = response.json().await;
    let answers: Vec<Answer> =
        array.as_array().expect("an array").iter().map(|a| Answer::new(&a.to_string())).collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(of(&answers, "1").text(), "number");
    assert_eq!(of(&answers, "\"1\"").text(), "string");
    assert_eq!(of(&answers, "2").error_code(), -32601);
    peer.journal_method("x/note").await;
}

#[tokio::test]
async fn s1_1_an_array_leaves_at_the_budget_with_the_handles_of_what_runs() {
    let peer = Peer::serve("defaults.answer_within = \"1s\"\n", &[]);
    let client = open(&peer).await;
    let start = Instant::now();
    let batch = json!([
        call_message(1, "wait_file", until("go")),
        call_message(2, "echo", json!({"text": "hi"}))
    ]);
    let answers = answers(&client, batch).await;
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!((answers.len(), of(&answers, "2").text()), (2, "hi"));
    let handle = of(&answers, "1").clone();
    assert!(handle.is_handle(), "{}", handle.raw);
    peer.create("go");
    assert_eq!(client.finish(handle).await.text(), "go");
}

#[tokio::test]
async fn s1_1_what_is_answered_late_does_not_hold_up_the_array() {
    let peer = Peer::serve("defaults.answer_within = \"1s\"\n", &["--unanswered", "x/never"]);
    let client = open(&peer).await;
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "x/never"}, call_message(2, "echo", json!({"text": "hi"}))]);
    let mut response = client.post(&batch.to_string()).await;
    assert!(response.is_events());
    let first = response.message().await.expect("the array");
    assert_eq!(Answer::new(first.response_to("2").expect("its answer")).text(), "hi");
}

#[tokio::test]
async fn s1_1_an_array_without_requests_is_accepted() {
    let peer = Peer::serve("", &[]);
    let client = open(&peer).await;
    let batch = json!([{"jsonrpc": "2.0", "method": "x/a"}, {"jsonrpc": "2.0", "id": "q", "result": {}}, {"jsonrpc": "2.0", "method": "x/b"}]);
    let mut response = client.post(&batch.to_string()).await;
    assert_eq!((response.status, response.text().await.as_str()), (202, ""));
    peer.journal_method("x/a").await;
    peer.journal_method("x/b").await;
}

#[tokio::test]
async fn s1_1_arrays_are_refused_under_any_other_revision() {
    let peer = Peer::serve("", &[]);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for version in ["2025-06-18", "2025-11-25"] {
        let client = peer.http().await;
        client.initialize_under(version).await;
        let mut response = client.post(&json!([ping]).to_string()).await;
        assert_eq!((response.status, response.code().await), (400, -32600), "{version}");
    }
    let modern = peer.modern().await;
    let request: Value =
        serde_json::from_str(&modern.request("tools/list", json!({}))).expect("JSON");
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    assert_eq!(modern.post_with(&json!([request]).to_string(), &headers).await.status, 400);
    assert!(peer.received("tools/list").is_empty());
}

#[tokio::test]
async fn s1_1_arrays_with_nothing_in_them_or_with_an_opening_are_refused() {
    let peer = Peer::serve("", &[]);
    let client = open(&peer).await;
    assert_eq!(client.post("[]").await.status, 400);
    let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let answers = answers(&client, json!([opening, 7])).await;
    assert_eq!(of(&answers, "1").error_code(), -32600);
    assert_eq!(of(&answers, "null").error_code(), -32600);
    client.set_session(None);
    assert_eq!(client.post(&json!([opening]).to_string()).await.status, 400);
}

#[tokio::test]
async fn s6_a_client_that_leaves_an_array_finds_its_calls_among_the_jobs() {
    let peer = Peer::serve("", &[]);
    let client = peer.known_as("a").await;
    client.initialize_under("2025-03-26").await;
    let batch =
        json!([call_message(1, "wait_file", until("a")), call_message(2, "wait_file", until("b"))]);
    let text = batch.to_string();
    tokio::select! {
        _ = client.try_post(&text) => panic!("answered"),
        () = peer.arrived("wait_file", 2) => {}
    }
    client.until_jobs(2).await;
    peer.create("a");
    peer.create("b");
    peer.ended("wait_file", 2).await;
    assert!(peer.received("notifications/cancelled").is_empty());
}
