//! Silence over HTTP (contract §9, C44): no intermediary cuts a request that waits, and a client that
//! takes no stream gets none. The tests wait as long as the contract does, all at once.

use std::time::{Duration, Instant};

use serde_json::json;
use support::http::Response;
use support::{Answer, HttpPeer, Peer};

/// After so much silence a stream is opened.
const SILENCE: Duration = Duration::from_secs(10);
/// A comment comes so often at the least.
const BEAT: Duration = Duration::from_secs(15);
/// A busy machine.
const LATE: Duration = Duration::from_secs(4);

async fn patient() -> (Peer, HttpPeer) {
    let peer = Peer::serve("defaults.answer_within = \"50s\"", &[]);
    let client = peer.legacy().await;
    (peer, client)
}

/// Reads a stream to its message; each comment comes in time, and no event is empty. Returns how many
/// there were, and the message.
async fn comments_until_message(response: &mut Response) -> (usize, String) {
    let mut comments = 0;
    loop {
        let start = Instant::now();
        let event = response.event().await.expect("the stream goes on to its answer");
        assert!(start.elapsed() < BEAT + LATE, "silent for {:?}", start.elapsed());
        if event.is_message() {
            return (comments, event.data.unwrap_or_default());
        }
        assert_eq!(event.data, None, "an event without a message");
        assert!(event.comment.is_some(), "{event:?}");
        comments += 1;
    }
}

#[tokio::test]
async fn s9_a_silent_request_gets_its_stream_and_comments() {
    let (_peer, client) = patient().await;
    let start = Instant::now();
    let mut response = client.start("sleep", json!({"ms": 28_000})).await;
    assert!(response.is_events());
    assert_eq!(response.header("x-accel-buffering"), "no");
    assert!(
        start.elapsed() >= SILENCE && start.elapsed() < SILENCE + LATE,
        "{:?}",
        start.elapsed()
    );
    assert!(comments_until_message(&mut response).await.0 >= 2);
}

#[tokio::test]
async fn c44_a_job_get_that_is_held_for_40_s_is_answered_intact() {
    let (_peer, client) = patient().await;
    let handle = client.defer("sleep", json!({"ms": 40_000, "text": "slept"})).await;
    let job = json!({"job_id": handle.job_id(), "wait_seconds": 50});
    let mut response = client.start("job_get", job).await;
    let (comments, answer) = comments_until_message(&mut response).await;
    assert!(comments >= 2);
    let answer = Answer::new(&answer);
    assert!(!answer.is_handle() && !answer.is_error(), "{}", answer.raw);
}

#[tokio::test]
async fn s9_a_client_that_takes_no_stream_gets_json_however_late() {
    let (_peer, client) = patient().await;
    client.set_accept("application/json");
    let mut response = client.start("sleep", json!({"ms": 12_000})).await;
    assert_eq!((response.status, response.header("content-type")), (200, "application/json"));
    assert!(response.json().await["result"].is_object());
}

#[tokio::test]
async fn s9_the_standing_stream_has_comments_too() {
    let (_peer, client) = patient().await;
    let mut stream = client.get_stream().await;
    for _ in 0..2 {
        let start = Instant::now();
        let event = stream.event().await.expect("the stream stays open");
        assert!(event.comment.is_some() && event.data.is_none(), "{event:?}");
        assert!(start.elapsed() < BEAT + LATE);
    }
}

#[tokio::test]
async fn s9_an_answer_in_time_is_plain_json() {
    let (_peer, client) = patient().await;
    let mut response = client.start("sleep", json!({"ms": 1_000})).await;
    assert_eq!((response.status, response.header("content-type")), (200, "application/json"));
    assert!(response.json().await["result"].is_object());
}
