//! The lives of sessions and of their children (contract §3, §9, and the issue of the sidecar).

use std::time::Duration;

use serde_json::json;
use support::http::Response;
use support::{Peer, eventually, process, until};
use tokio::time::sleep;

const IDLE: &str = "server.session_idle = \"600ms\"\n";

async fn unavailable(mut response: Response) {
    let text = response.text().await;
    assert_eq!(response.status, 503, "{text}");
    assert!(text.contains("max_sessions"), "{text}");
    assert_ne!(response.header("retry-after"), "");
}

// A child for each session.

#[tokio::test]
async fn s9_every_legacy_session_has_a_child_of_its_own_and_keeps_it() {
    let peer = Peer::serve("", &[]);
    let clients = [peer.legacy_as("a").await, peer.legacy_as("a").await, peer.legacy().await];
    for client in &clients {
        for _ in 0..2 {
            client.call("echo", json!({})).await;
        }
    }
    assert_eq!((peer.started().len(), peer.running().len()), (3, 3));
    let pids: Vec<u32> = peer.calls_of("echo").iter().map(|call| call.pid).collect();
    assert!(pids.chunks(2).all(|pair| pair[0] == pair[1]), "{pids:?}");
    clients[0].delete().await;
    peer.until_running(2).await;
    clients[1].call("echo", json!({})).await;
}

#[tokio::test]
async fn s9_a_child_that_dies_is_started_again_for_its_own_session_alone() {
    let peer = Peer::serve("", &[]);
    let (one, two) = (peer.legacy().await, peer.legacy().await);
    let lost = one.call("exit", json!({"code": 3})).await;
    assert!(lost.is_error() && lost.text().contains("outcome unknown"), "{}", lost.raw);
    one.assert_works().await;
    two.assert_works().await;
    assert_eq!((peer.started().len(), peer.received("initialize").len()), (3, 3));
}

#[tokio::test]
async fn s9_what_a_child_says_on_stderr_is_for_the_log_alone() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let steps = json!([{"stderr": "the s3cret of the server\n"}, {"exit": 3}]);
    let lost = client.call("script", json!({"steps": steps})).await;
    assert!(lost.is_error() && !lost.raw.contains("s3cret"), "{}", lost.raw);
    peer.wait_stderr(|line| line.contains("the s3cret of the server")).await;
}

// Ends.

#[tokio::test]
async fn s9_delete_keeps_the_child_while_a_job_runs_and_then_ends_it() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy_as("a").await;
    let handle = client.park("go").await;
    assert!((200..300).contains(&client.delete().await.status));
    assert_eq!(client.start("echo", json!({})).await.status, 404);
    let later = peer.legacy_as("a").await;
    assert_eq!(later.look(handle.job_id()).await.status(), "working");
    assert_eq!(peer.running().len(), 2);
    peer.create("go");
    assert_eq!(later.result_of(handle.job_id()).await.text(), "go");
    peer.until_running(1).await;
    later.assert_works().await;
}

#[tokio::test]
async fn s9_delete_lets_a_call_that_is_waited_for_be_answered() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy_as("a").await;
    let ends = async {
        peer.arrived("wait_file", 1).await;
        client.delete().await;
        peer.create("go");
    };
    let (mut answer, ()) = tokio::join!(client.start("wait_file", until("go")), ends);
    assert_eq!(answer.answer().await.text(), "go");
    peer.until_running(0).await;
}

#[tokio::test]
async fn s9_delete_ends_the_standing_stream() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let mut standing = client.get_stream().await;
    client.delete().await;
    assert!(standing.ended().await.is_empty());
    peer.until_running(0).await;
}

#[tokio::test]
async fn s3_an_idle_session_ends_with_its_child() {
    let peer = Peer::serve(IDLE, &["--dual"]);
    let client = peer.legacy().await;
    let modern = peer.modern().await;
    modern.call("echo", json!({})).await;
    peer.until_running(0).await;
    assert_eq!(client.start("echo", json!({})).await.status, 404);
    modern.assert_works().await;
}

#[tokio::test]
async fn s3_a_session_in_use_is_not_idle() {
    let peer = Peer::serve(IDLE, &["--dual"]);
    let (calls, streams, waits) = (peer.legacy().await, peer.legacy().await, peer.legacy().await);
    let modern = peer.modern().await;
    let _standing = streams.get_stream().await;
    let used = async {
        for _ in 0..8 {
            sleep(Duration::from_millis(200)).await;
            calls.call("echo", json!({})).await;
        }
    };
    let args = || json!({"ms": 1800, "text": "waited"});
    let ((), waited, other) =
        tokio::join!(used, waits.call("sleep", args()), modern.call("sleep", args()));
    assert_eq!((waited.text(), other.text()), ("waited", "waited"));
    streams.assert_works().await;
    assert_eq!((peer.started().len(), peer.running().len()), (4, 4));
}

#[tokio::test]
async fn s9_idle_time_keeps_the_child_while_a_job_runs() {
    let peer = Peer::serve(IDLE, &[]);
    let client = peer.legacy_as("a").await;
    let handle = client.park("go").await;
    peer.wait_stderr(|line| line.contains("session_idle")).await;
    assert_eq!(client.start("echo", json!({})).await.status, 404);
    assert_eq!(peer.running().len(), 1, "its job runs");
    peer.create("go");
    peer.until_running(0).await;
    let later = peer.legacy_as("a").await;
    assert_eq!(later.result_of(handle.job_id()).await.text(), "go");
    assert_eq!(peer.received("notifications/cancelled").len(), 0);
}

#[tokio::test]
async fn s9_idle_time_keeps_the_modern_child_while_a_job_runs() {
    let peer = Peer::serve(IDLE, &["--dual"]);
    let client = peer.modern_as("a").await;
    let handle = client.park("go").await;
    peer.wait_stderr(|line| line.contains("job started")).await;
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(peer.running().len(), 1, "its job runs");
    peer.create("go");
    peer.until_running(0).await;
    assert_eq!(client.result_of(handle.job_id()).await.text(), "go");
}

// Limits.

#[tokio::test]
async fn s3_over_max_sessions_openings_of_both_eras_are_refused() {
    let peer = Peer::serve("server.max_sessions = 2\n", &["--dual"]);
    let (first, modern) = (peer.legacy().await, peer.modern_as("a").await);
    modern.call("echo", json!({})).await;
    let late = peer.http().await;
    unavailable(late.open("initialize", json!({"protocolVersion": "2025-11-25"})).await).await;
    let other = peer.modern_as("b").await;
    unavailable(other.start("echo", json!({})).await).await;
    modern.assert_works().await;
    first.delete().await;
    peer.until_running(1).await;
    let opened = || async {
        let response = other.start("echo", json!({})).await;
        (response.status == 200).then_some(())
    };
    assert!(eventually(opened).await.is_some(), "there is room again");
    peer.wait_stderr(|line| line.contains("max_sessions")).await;
}

#[tokio::test]
async fn s3_a_session_whose_job_runs_counts_still() {
    let peer = Peer::serve("server.max_sessions = 1\n", &[]);
    let client = peer.legacy_as("a").await;
    client.park("go").await;
    client.delete().await;
    let late = peer.known_as("a").await;
    unavailable(late.open("initialize", json!({"protocolVersion": "2025-11-25"})).await).await;
    peer.create("go");
    peer.until_running(0).await;
}

// Openings that fail.

#[tokio::test]
async fn s6_2_a_refused_initialize_leaves_neither_session_nor_child() {
    let peer = Peer::serve("", &["--modern"]);
    let client = peer.http().await;
    for _ in 0..3 {
        let mut response =
            client.open("initialize", json!({"protocolVersion": "2025-11-25"})).await;
        assert_eq!(response.header("mcp-session-id"), "");
        assert_eq!(response.answer().await.error_code(), -32022);
    }
    peer.until_running(0).await;
    assert_eq!(peer.started().len(), 3);
}

#[tokio::test]
async fn s6_2_a_client_that_leaves_its_opening_leaves_no_child() {
    let peer = Peer::serve("", &["--silent"]);
    let client = peer.http().await;
    let message = client.request("initialize", json!({"protocolVersion": "2025-11-25"}));
    tokio::select! {
        _ = client.try_post(&message) => panic!("answered"),
        _ = peer.journal_method("initialize") => {}
    }
    peer.until_running(0).await;
    assert!(process::alive(peer.pid()));
}
