//! Many clients that use the same ids, and one that uses ids of two types (C08, C10).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::json::member;
use support::{Answer, HttpPeer, Peer, call_params};
use tokio::task::JoinSet;

/// Calls a tool under this raw id.
async fn call_as(client: &HttpPeer, id: &str, tool: &str, args: Value) -> Answer {
    let message = client.request("tools/call", call_params(tool, args));
    let own = member(&message, "id").expect("a request has an id").to_owned();
    let message = message.replacen(&format!(r#""id":{own}"#), &format!(r#""id":{id}"#), 1);
    client.post(&message).await.answer().await
}

/// What the server knows the calls of `tool` by, with the process that has them.
fn names_inside(peer: &Peer, tool: &str) -> BTreeSet<(u32, String)> {
    peer.calls_of(tool).iter().map(|call| (call.pid, call.raw_id().to_owned())).collect()
}

async fn two_clients(first: HttpPeer, second: HttpPeer) {
    let (a, b) = tokio::join!(
        call_as(&first, "1", "sleep", json!({"ms": 300, "text": "a"})),
        call_as(&second, "1", "echo", json!({"text": "b"})),
    );
    assert_eq!((a.text(), a.raw_id(), b.text(), b.raw_id()), ("a", "1", "b", "1"));
}

#[tokio::test]
async fn c08_two_clients_that_send_id_1_at_once_each_get_their_own_answer() {
    let peer = Peer::serve("", &["--dual"]);
    two_clients(peer.legacy().await, peer.legacy().await).await;
    two_clients(peer.legacy_as("a").await, peer.legacy_as("a").await).await;
    two_clients(peer.modern_as("a").await, peer.modern_as("a").await).await;
    two_clients(peer.modern().await, peer.modern().await).await;
    two_clients(peer.modern_as("a").await, peer.legacy_as("a").await).await;
}

async fn two_types(peer: &Peer, first: &HttpPeer, second: &HttpPeer) {
    let before = peer.calls_of("sleep").len();
    let args = |text: &str| json!({"ms": 300, "text": text});
    let (number, text, fraction) = tokio::join!(
        call_as(first, "1", "sleep", args("number")),
        call_as(second, "\"1\"", "sleep", args("string")),
        call_as(second, "\"a \\u0031\"", "sleep", args("escaped")),
    );
    assert_eq!((number.raw_id(), number.text()), ("1", "number"));
    assert_eq!((text.raw_id(), text.text()), ("\"1\"", "string"));
    assert_eq!((fraction.raw_id(), fraction.text()), ("\"a \\u0031\"", "escaped"));
    assert_eq!(peer.calls_of("sleep").len(), before + 3);
    assert_eq!(names_inside(peer, "sleep").len(), before + 3, "no name is used twice inside");
}

#[tokio::test]
async fn c10_ids_keep_their_type_when_clients_share_a_server() {
    let peer = Peer::serve("", &["--dual"]);
    let (a, b) = (peer.modern_as("a").await, peer.modern_as("a").await);
    two_types(&peer, &a, &b).await;
    let legacy = peer.legacy().await;
    two_types(&peer, &legacy, &legacy).await;
}

async fn fifty(peer: &Peer, clients: Vec<HttpPeer>) {
    let before = peer.calls_of("echo").len();
    let count = clients.len();
    let mut calls = JoinSet::new();
    for (number, client) in clients.into_iter().enumerate() {
        calls.spawn(async move {
            let text = format!("client {number}");
            let answer = call_as(&client, "1", "echo", json!({"text": text})).await;
            assert_eq!((answer.text(), answer.raw_id()), (text.as_str(), "1"));
        });
    }
    let ended = calls.join_all().await;
    assert_eq!(ended.len(), count);
    assert_eq!(peer.calls_of("echo").len(), before + count, "each ran once");
}

#[tokio::test(flavor = "multi_thread")]
async fn c08_fifty_modern_clients_that_all_use_id_1() {
    let peer = Peer::serve("", &["--dual"]);
    let mut clients = vec![];
    for number in 0..50 {
        clients.push(peer.modern_as(if number % 2 == 0 { "a" } else { "b" }).await);
    }
    fifty(&peer, clients).await;
    assert_eq!(peer.started().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn c08_fifty_legacy_clients_that_all_use_id_1() {
    let peer = Peer::serve("", &[]);
    let mut clients = vec![];
    for _ in 0..50 {
        clients.push(peer.legacy_as("a").await);
    }
    fifty(&peer, clients).await;
    assert_eq!(peer.started().len(), 50);
}

#[tokio::test]
async fn s4_an_id_may_be_used_again_while_its_job_runs() {
    let peer = Peer::serve("", &["--dual"]);
    for client in [peer.legacy_as("a").await, peer.modern_as("a").await] {
        let file = client.session().map_or("modern", |_| "legacy");
        let handle = client.park(file).await;
        let id = handle.raw_id().to_owned();
        assert_eq!(call_as(&client, &id, "echo", json!({"text": "again"})).await.text(), "again");
        peer.create(file);
        assert_eq!(client.finish(handle).await.text(), file);
    }
}
