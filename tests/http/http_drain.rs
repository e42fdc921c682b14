//! The end of the sidecar (contract §9): what runs goes on for `drain_timeout`, then whoever waits is
//! told, and no process remains.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use support::{Peer, Setup, call_params, eventually, until};

fn draining(timeout: &str) -> Peer {
    Peer::serve(&format!("server.drain_timeout = \"{timeout}\""), &[])
}

#[tokio::test]
async fn s9_a_call_that_ends_in_time_is_answered_and_nothing_new_is_taken() {
    let peer = draining("20s");
    let client = peer.legacy().await;
    let message = client.request("tools/call", call_params("wait_file", until("end")));
    let (mut answered, ()) = tokio::join!(client.post(&message), async {
        peer.arrived("wait_file", 1).await;
        peer.signal(Signal::SIGTERM);
        peer.wait_stderr(|line| line.contains("ending")).await;
        let other = peer.http().await;
        let refused = eventually(|| async {
            let answer = other.try_send("GET", "/healthz", &[], "").await;
            answer.is_err().then_some(())
        });
        assert!(refused.await.is_some(), "a new connection is taken");
        peer.create("end");
    });
    let answer = answered.json().await;
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert_eq!(peer.exit().await.code(), Some(0));
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_after_the_drain_callers_are_told_that_the_outcome_is_unknown() {
    let peer = draining("500ms");
    let client = peer.legacy().await;
    let handle = client.park("neither").await;
    let poll = json!({"job_id": handle.job_id(), "wait_seconds": 20});
    let waits = client.request("tools/call", call_params("wait_file", until("never")));
    let (mut called, mut polled, ()) =
        tokio::join!(client.post(&waits), client.start("job_get", poll), async {
            peer.arrived("wait_file", 2).await;
            peer.signal(Signal::SIGTERM);
        });
    let called = called.json().await;
    assert_eq!(called["result"]["isError"], true, "{called}");
    let text = called["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("outcome unknown: check before you repeat it"), "{called}");
    let polled = polled.json().await.to_string();
    assert!(polled.contains("interrupted") && polled.contains("failed"), "{polled}");
    assert_eq!(peer.exit().await.code(), Some(0));
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_a_second_signal_ends_the_wait_and_still_answers() {
    let peer = draining("1h");
    let client = peer.legacy().await;
    let waits = client.request("tools/call", call_params("wait_file", until("never")));
    let (mut called, ()) = tokio::join!(client.post(&waits), async {
        peer.arrived("wait_file", 1).await;
        peer.signal(Signal::SIGTERM);
        peer.wait_stderr(|line| line.contains("ending")).await;
        peer.signal(Signal::SIGTERM);
    });
    let called = called.json().await.to_string();
    assert!(called.contains("outcome unknown"), "{called}");
    assert_eq!(peer.exit().await.code(), Some(0));
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_streams_that_stand_open_hold_nothing_up() {
    let peer = draining("1h");
    let legacy = peer.legacy().await;
    let mut standing = legacy.get_stream().await;
    let modern = peer.modern().await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let message = modern.request("subscriptions/listen", params);
    let listened = support::json::member(&message, "id").expect("an id").to_owned();
    let mut listens = modern.post(&message).await;
    listens.until_method("notifications/subscriptions/acknowledged").await;
    let start = Instant::now();
    peer.signal(Signal::SIGTERM);
    standing.ended().await;
    let last = listens.answer().await;
    assert_eq!(last.raw_id(), listened, "{}", last.raw);
    let key = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(last.result()["_meta"][key].to_string(), listened, "{}", last.raw);
    listens.ended().await;
    assert!(!standing.was_cut && !listens.was_cut, "streams end, and are not cut");
    assert_eq!(peer.exit().await.code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_a_subscription_that_outlasts_the_drain_has_ended_and_not_failed() {
    let peer = Peer::serve("server.drain_timeout = \"300ms\"", &["--dual"]);
    let modern = peer.modern().await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut listens = modern.open("subscriptions/listen", params).await;
    listens.until_method("notifications/subscriptions/acknowledged").await;
    let (mut called, ()) = tokio::join!(modern.start("wait_file", until("never")), async {
        peer.arrived("wait_file", 1).await;
        peer.signal(Signal::SIGTERM);
    });
    let last = listens.answer().await;
    assert!(!last.is_rpc_error(), "{}", last.raw);
    assert!(called.answer().await.raw.contains("outcome unknown"));
    assert_eq!(peer.exit().await.code(), Some(0));
    peer.all_gone().await;
}

#[tokio::test]
async fn s9_an_idle_sidecar_ends_at_once() {
    let peer = Setup::proxied().served().spawn();
    peer.http().await;
    peer.signal(Signal::SIGTERM);
    assert_eq!(peer.exit().await.code(), Some(0));
}
