//! Many clients that hang up at once (CONTRACT §6): nobody else notices.
#![forbid(unsafe_code)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use support::{HttpPeer, Peer, Setup, eventually, process, until};
use tokio::task::JoinSet;

const CANCELLED: &str = "notifications/cancelled";

/// How many lines of the log say this.
fn logged(peer: &Peer, words: &str) -> usize {
    peer.stderr().lines().filter(|line| line.contains(words)).count()
}

async fn logged_so_often(peer: &Peer, words: &str, wanted: usize) {
    let seen = || async { (logged(peer, words) >= wanted).then_some(()) };
    if eventually(seen).await.is_none() {
        peer.fail(&format!("{words:?} is not logged {wanted} times"));
    }
    assert_eq!(logged(peer, words), wanted);
}

/// So many calls of the client, all hung up 100 ms after the server has the last of them.
async fn storm(peer: &Peer, client: &Arc<HttpPeer>, calls: usize) {
    let mut storm = JoinSet::new();
    for number in 0..calls {
        let client = Arc::clone(client);
        let mut args = until("go");
        args["number"] = json!(number);
        storm.spawn(async move { client.call("wait_file", args).await });
    }
    peer.arrived("wait_file", calls).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    storm.abort_all();
    while let Some(call) = storm.join_next().await {
        assert!(call.is_err(), "answered: {call:?}");
    }
}

/// Calls one after the other until it is told to stop, every one of which must be answered.
async fn goes_on(client: HttpPeer, mut stop: tokio::sync::watch::Receiver<bool>) -> usize {
    let mut count = 0;
    while !*stop.borrow_and_update() {
        let text = format!("call {count}");
        assert_eq!(client.call("echo", json!({"text": text})).await.text(), text);
        count += 1;
    }
    count
}

/// The storm, while another client of the same kind works.
async fn weather(peer: &Peer, client: &Arc<HttpPeer>, other: HttpPeer, calls: usize) {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let work = tokio::spawn(goes_on(other, stopped));
    storm(peer, client, calls).await;
    assert_eq!(client.call("echo", json!({"text": "after"})).await.text(), "after");
    stop.send(true).expect("the other client works");
    let count = work.await.expect("all its calls are answered");
    assert!(count > 0);
    let echoes = peer.calls_of("echo").len();
    assert_eq!(echoes, count + 1, "each of its calls ran once");
    assert!(process::alive(peer.pid()));
    let starts = peer.calls_of("wait_file");
    let distinct: BTreeSet<_> = starts.iter().map(|call| &call.line).collect();
    assert_eq!((starts.len(), distinct.len()), (calls, calls), "every call ran once");
}

async fn c21_legacy(calls: usize) {
    let peer = Setup::proxied().served().spawn();
    let client = Arc::new(peer.legacy_http(Some("alice")).await);
    let other = peer.legacy_http(Some("bob")).await;
    weather(&peer, &client, other, calls).await;
    logged_so_often(&peer, "job started", calls).await;
    assert_eq!(client.jobs().await.len(), calls.min(20));
    peer.create("go");
    logged_so_often(&peer, "job completed", calls).await;
    for job in client.jobs().await {
        assert_eq!(client.job_get(json!({"job_id": job["job_id"]})).await.text(), "go");
    }
    assert_eq!((peer.calls_of("wait_file").len(), peer.told(CANCELLED)), (calls, 0));
}

#[tokio::test]
async fn c21_20_aborts_leave_20_jobs_and_all_else_goes_on() {
    c21_legacy(20).await;
}

#[tokio::test]
async fn c21_100_aborts_leave_100_jobs_and_all_else_goes_on() {
    c21_legacy(100).await;
}

#[tokio::test]
async fn c21_100_aborts_of_a_modern_client_are_100_cancels_and_all_else_goes_on() {
    let peer = Setup::proxied().served().spawn();
    let client = Arc::new(peer.modern_http(Some("alice")).await);
    let other = peer.modern_http(Some("alice")).await;
    weather(&peer, &client, other, 100).await;
    let cancelled = || async { (peer.told(CANCELLED) >= 100).then_some(()) };
    eventually(cancelled).await.expect("all are cancelled");
    let ended = || async {
        let entries = peer.journal().into_iter();
        (entries.filter(|entry| entry.event == "call_ended").count() >= 100).then_some(())
    };
    eventually(ended).await.expect("all end");
    assert!(client.jobs().await.is_empty());
    assert_eq!(peer.told(CANCELLED), 100);
}
