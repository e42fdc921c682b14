//! Clients of the sidecar that want too much (contract §3, §9, and "bounded memory everywhere").

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use support::{HttpPeer, Peer, eventually, process, turn};
use tokio::net::TcpStream;

const MIB: u64 = 1 << 20;
/// Headers must be there within this time, idle time before them included.
const HEADERS: Duration = Duration::from_secs(30);

async fn opened(toml: &str) -> (Peer, HttpPeer) {
    let peer = Peer::serve(toml, &[]);
    let client = peer.legacy().await;
    (peer, client)
}

// Bodies and headers.

#[tokio::test]
async fn s3_a_body_that_says_it_has_1_gib_is_refused_at_once() {
    let (peer, client) = opened("").await;
    let mut raw = client.raw().await;
    let head = client.raw_head() + &format!("Content-Length: {}\r\n\r\n", 1 << 30);
    assert!(raw.write(head.as_bytes()).await);
    assert_eq!(raw.status().await, 413);
    assert!(process::peak_memory(peer.pid()) < 40 * MIB);
    client.assert_works().await;
}

#[tokio::test]
async fn s3_a_body_without_an_end_is_read_up_to_max_message() {
    let _turn = turn().await;
    let (peer, client) = opened("server.max_message = \"8MiB\"").await;
    let mut raw = client.raw().await;
    let head = client.raw_head() + "Transfer-Encoding: chunked\r\n\r\n";
    assert!(raw.write(head.as_bytes()).await);
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    // 1 GiB, unless it is cut before.
    let mut written = 0;
    while written < 1024 && raw.write(chunk.as_bytes()).await {
        written += 1;
    }
    assert!(written < 64, "{written} MiB were taken");
    assert!(process::peak_memory(peer.pid()) < 60 * MIB);
    client.assert_works().await;
}

/// Nothing is left unread here, so that the answer is not lost with the connection.
#[tokio::test]
async fn s3_a_chunked_body_that_is_a_byte_too_long_is_413() {
    let (_peer, client) = opened("server.max_message = \"64KiB\"").await;
    let length = (64 << 10) + 1;
    let mut raw = client.raw().await;
    let head = client.raw_head() + "Transfer-Encoding: chunked\r\n\r\n";
    assert!(raw.write(head.as_bytes()).await);
    let chunk = format!("{length:x}\r\n{}\r\n", "x".repeat(length));
    assert!(raw.write(chunk.as_bytes()).await);
    assert_eq!(raw.status().await, 413);
    client.assert_works().await;
}

#[tokio::test]
async fn s3_many_large_bodies_at_once_have_a_bound_together() {
    let _turn = turn().await;
    let (peer, client) = opened("server.max_message = \"4MiB\"").await;
    let mut raws = Vec::new();
    for _ in 0..60 {
        let mut raw = client.raw().await;
        let head = client.raw_head() + &format!("Content-Length: {}\r\n\r\n", 4 << 20);
        raw.write(head.as_bytes()).await;
        raw.write("x".repeat(3 << 20).as_bytes()).await;
        raws.push(raw);
    }
    assert!(process::memory(peer.pid()) < 100 * MIB, "{}", process::memory(peer.pid()));
    client.assert_works().await;
}

#[tokio::test]
async fn s9_headers_without_end_are_refused() {
    let (peer, client) = opened("").await;
    let mut raw = client.raw().await;
    assert!(raw.write(client.raw_head().as_bytes()).await);
    let header = format!("X-More: {}\r\n", "y".repeat(8 << 10));
    let mut written = 0;
    while written < 10_000 && raw.write(header.as_bytes()).await {
        written += 1;
    }
    assert!(written < 1_000, "{written} headers of 8 KiB were taken");
    assert!(process::peak_memory(peer.pid()) < 40 * MIB);
    client.assert_works().await;
}

#[tokio::test]
async fn s9_too_many_headers_are_431() {
    let (_peer, client) = opened("").await;
    let mut raw = client.raw().await;
    let head = client.raw_head() + &"X-More: y\r\n".repeat(200) + "\r\n";
    assert!(raw.write(head.as_bytes()).await);
    assert_eq!(raw.status().await, 431);
    client.assert_works().await;
}

#[tokio::test]
async fn s9_headers_that_come_byte_by_byte_are_cut() {
    let (_peer, client) = opened("").await;
    let mut raw = client.raw().await;
    assert!(raw.write(b"POST /mcp HTTP/1.1\r\nX-Slow: ").await);
    let start = std::time::Instant::now();
    while raw.write(b"z").await && start.elapsed() < HEADERS + Duration::from_secs(20) {
        if raw.is_closed_within(Duration::from_millis(500)).await {
            break;
        }
    }
    assert!(start.elapsed() < HEADERS + Duration::from_secs(15), "{:?}", start.elapsed());
    client.assert_works().await;
}

// Connections.

#[tokio::test]
async fn s9_ten_thousand_idle_connections_hold_up_nobody() {
    let _turn = turn().await;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let count = 10_000.min(hard.max(soft) - 1_000) as usize;
    let (peer, client) = opened("").await;
    let before = process::memory(peer.pid());
    let mut idle = Vec::new();
    for _ in 0..count {
        let opened = eventually(|| async { TcpStream::connect(client.authority()).await.ok() });
        idle.push(opened.await.expect("a connection"));
    }
    client.assert_works().await;
    let each = (process::memory(peer.pid()) - before) / count as u64;
    assert!(each < 30 << 10, "{each} bytes for each connection");
    drop(idle);
    client.assert_works().await;
}

#[tokio::test]
async fn s9_a_client_that_does_not_read_costs_little_and_holds_up_nobody() {
    let _turn = turn().await;
    let (peer, client) = opened("").await;
    let other = peer.legacy().await;
    let text = "p".repeat(8 << 10);
    let params = json!({"progressToken": "p", "progress": 1, "message": text});
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#;
    let steps = json!([{"repeat": [format!("{progress}\n"), 8_000]}, {"send": answer}]);
    let args = json!({"steps": steps});
    let params = json!({"name": "script", "arguments": args, "_meta": {"progressToken": "p"}});
    other.assert_works().await;
    let before = process::memory(peer.pid());
    let mut unread = client.open("tools/call", params).await;
    other.assert_works().await;
    peer.ended("script", 1).await;
    // The flood is of 64 MB.
    let grown = process::peak_memory(peer.pid()).saturating_sub(before);
    assert!(grown < 16 * MIB, "grown by {grown}");
    unread.until_method("notifications/progress").await;
    drop(unread);
    other.assert_works().await;
}

// Sessions.

async fn refusal(client: &HttpPeer, method: &str, params: Value) -> Value {
    let mut response = client.open(method, params).await;
    assert_eq!(response.status, 503);
    assert!(!response.header("retry-after").is_empty());
    response.json().await
}

#[tokio::test]
async fn s3_sessions_over_max_sessions_are_refused_until_one_ends() {
    let (peer, first) = opened("server.max_sessions = 1").await;
    let info = json!({"name": "c", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let second = peer.http().await;
    let modern = peer.modern().await;
    let words = "server.max_sessions";
    let legacy = refusal(&second, "initialize", hello).await;
    assert!(legacy["error"]["message"].to_string().contains(words), "{legacy}");
    let refused = refusal(&modern, "tools/list", json!({})).await;
    assert!(refused["error"]["message"].to_string().contains(words), "{refused}");
    first.delete().await;
    second.admitted().await;
    second.assert_works().await;
    second.delete().await;
    let listed = || async { modern.open("tools/list", json!({})).await.status == 200 };
    assert!(eventually(|| async { listed().await.then_some(()) }).await.is_some());
    assert_eq!(peer.started().len(), 3, "one for each session");
}

#[tokio::test]
async fn s10_an_idle_session_ends_with_its_child() {
    let (peer, client) = opened("server.session_idle = \"300ms\"").await;
    peer.until_running(0).await;
    let answer = client.post(&client.request("tools/list", json!({}))).await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn s10_a_session_that_is_over_lives_while_its_job_runs() {
    let peer = Peer::serve("server.session_idle = \"300ms\"", &[]);
    let idle = peer.legacy_as("A").await;
    let job = idle.park("idle").await;
    let deleted = peer.legacy_as("A").await;
    let other = deleted.park("deleted").await;
    deleted.delete().await;
    peer.create("idle");
    peer.create("deleted");
    let later = peer.legacy_as("A").await;
    for handle in [job, other] {
        let result = later.result_of(handle.job_id()).await;
        assert!(!result.is_error() && !result.is_handle(), "{}", result.raw);
    }
    peer.until_running(0).await;
}
