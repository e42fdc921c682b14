//! Clients over HTTP that hang up and come back, and calls that stand in line meanwhile (contract §6):
//! a stream is resumed where it was cut, and its answer comes on it.

use std::time::Duration;

use serde_json::json;
use support::{HttpPeer, Peer, Setup, eventually, until};

const ALICE: &str = "alice";
const CANCELLED: &str = "notifications/cancelled";

fn serve(options: &[&str]) -> Peer {
    Setup::proxied().served().options(options).spawn()
}

fn serve_with(toml: &str) -> Peer {
    Setup::proxied().served().config(toml).spawn()
}

/// A call's stream breaks after its first event; the id of that.
async fn cut_after_progress(client: &HttpPeer) -> String {
    let stream = client.stream_until("go").await;
    stream.last_event_id.clone().expect("events have ids")
}

/// With the answer of this, the server has all that was sent to it before.
async fn settle(client: &HttpPeer) {
    client.assert_works().await;
}

#[tokio::test]
async fn s6_the_job_of_a_client_that_left_outlives_its_session() {
    let peer = serve(&[]);
    let client = peer.legacy_as(ALICE).await;
    peer.hung_up(&client, "go").await;
    let job = client.newest_becomes("working").await;
    assert_eq!(client.delete().await.status, 204);
    let again = peer.legacy_as(ALICE).await;
    peer.create("go");
    assert_eq!(again.call("job_get", json!({"job_id": job})).await.text(), "go");
}

#[tokio::test]
async fn s6_a_call_in_line_goes_on_in_line_when_its_client_leaves() {
    let peer = serve_with("[tools.wait_file]\nmax_concurrent = 1");
    let client = peer.legacy_as(ALICE).await;
    let first = client.park("first").await;
    let second = client.call("wait_file", until("second"));
    let left = tokio::time::timeout(Duration::from_millis(300), second).await;
    assert!(left.is_err(), "answered: {left:?}");
    let both = || async { (client.jobs().await.len() == 2).then_some(()) };
    eventually(both).await.expect("it becomes a job");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
    ["first", "second"].iter().for_each(|gate| peer.create(gate));
    assert_eq!(client.finish(first).await.text(), "first");
    let job = client.newest_becomes("completed").await;
    assert_eq!(client.look(&job).await.text(), "second");
}

#[tokio::test]
async fn s6_a_client_that_resumes_gets_the_answer_on_the_resumed_stream() {
    let peer = serve(&[]);
    let client = peer.legacy_as(ALICE).await;
    let last = cut_after_progress(&client).await;
    client.newest_becomes("working").await;
    let mut resumed = client.resume(&last).await;
    peer.create("go");
    assert_eq!(resumed.answer().await.text(), "done");
    assert_eq!(resumed.message().await, None, "the stream ends with it");
    assert_eq!(peer.calls_of("script").len(), 1);
}

#[tokio::test]
async fn s6_a_client_that_resumes_at_once_gets_the_answer_too() {
    let peer = serve(&[]);
    let client = peer.legacy().await;
    let last = cut_after_progress(&client).await;
    let mut resumed = client.resume(&last).await;
    peer.create("go");
    assert_eq!(resumed.answer().await.text(), "done");
}

#[tokio::test]
async fn s6_a_client_that_resumes_after_the_end_gets_the_result() {
    let peer = serve(&[]);
    let client = peer.legacy_as(ALICE).await;
    let last = cut_after_progress(&client).await;
    client.newest_becomes("working").await;
    peer.create("go");
    client.newest_becomes("completed").await;
    assert_eq!(client.resume(&last).await.answer().await.text(), "done");
}

#[tokio::test]
async fn s6_a_client_that_resumes_gets_the_handle_at_the_end_of_its_budget() {
    let peer = serve(&["--answer-within", "2s"]);
    let client = peer.legacy_as(ALICE).await;
    let last = cut_after_progress(&client).await;
    let job = client.newest_becomes("working").await;
    let handle = client.resume(&last).await.answer().await;
    assert!(handle.is_handle(), "{}", handle.raw);
    assert_eq!(handle.job_id(), job);
    peer.create("go");
    assert_eq!(client.finish(handle).await.text(), "done");
}

#[tokio::test]
async fn s6_a_modern_client_that_leaves_the_line_is_never_known_to_the_server() {
    let peer = serve_with("[tools.wait_file]\nmax_concurrent = 1");
    let client = peer.modern_as(ALICE).await;
    let first = client.park("first").await;
    let second = client.call("wait_file", until("second"));
    let left = tokio::time::timeout(Duration::from_millis(300), second).await;
    assert!(left.is_err(), "answered: {left:?}");
    settle(&client).await;
    peer.create("first");
    assert_eq!(client.finish(first).await.text(), "first");
    peer.create("third");
    assert_eq!(client.call("wait_file", until("third")).await.text(), "third");
    assert_eq!((peer.calls_of("wait_file").len(), peer.told(CANCELLED)), (2, 0));
}

#[tokio::test]
async fn s7_a_joined_call_whose_client_leaves_does_not_end_the_job() {
    let peer = serve(&[]);
    let client = peer.modern_as(ALICE).await;
    let handle = client.park("go").await;
    let again = client.call("wait_file", until("go"));
    let left = tokio::time::timeout(Duration::from_millis(300), again).await;
    assert!(left.is_err(), "answered: {left:?}");
    settle(&client).await;
    assert_eq!(client.look(handle.job_id()).await.status(), "working");
    peer.create("go");
    assert_eq!(client.finish(handle).await.text(), "go");
    assert_eq!((peer.calls_of("wait_file").len(), peer.told(CANCELLED)), (1, 0));
}
