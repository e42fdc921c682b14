//! Servers over HTTP that fail: restarted, unreachable, behind a broken proxy, or hostile
//! (contract §2, §7, §9).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Entry, FakeHttp, Peer, Setup, process, until};

/// What a restart may take to be noticed (§9), and to be told.
const NOTICED: Duration = Duration::from_secs(3);

// Restarts.

/// A server restarted in the middle of a job, and of a call whose caller waits.
async fn restarted(peer: &Peer) {
    let job = peer.defer("sleep", json!({"ms": 60_000})).await;
    let call = peer.start("sleep", json!({"ms": 60_001})).await;
    peer.arrived("sleep", 2).await;
    let killed = Instant::now();
    peer.upstream().restart();
    peer.answer(&call).await.assert_outcome_unknown();
    let end = peer.finish(job).await;
    end.assert_outcome_unknown();
    assert_eq!(end.status(), "failed");
    assert!(killed.elapsed() < NOTICED, "{:?}", killed.elapsed());
    peer.assert_works().await;
    assert_eq!(peer.calls_of("sleep").len(), 2, "nothing is repeated");
}

#[tokio::test]
async fn c40_a_server_restarted_mid_call_loses_the_calls_and_serves_the_next() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    restarted(&peer).await;
    assert_eq!(peer.told("initialize"), 2);
}

#[tokio::test]
async fn c40_a_server_with_event_ids_does_not_know_them_after_its_restart() {
    let peer = Peer::opened(Setup::remote(&["--event-ids", "--retry", "20"])).await;
    restarted(&peer).await;
}

#[tokio::test]
async fn c40_a_modern_server_restarted_mid_call() {
    let peer = Setup::remote(&["--modern"]).spawn();
    peer.become_modern("test-client", json!({}));
    restarted(&peer).await;
    assert_eq!(peer.told("initialize"), 0);
}

#[tokio::test]
async fn c40_an_http_client_gets_the_same() {
    let peer = Peer::opened(Setup::remote(&[]).served()).await;
    restarted(&peer).await;
}

#[tokio::test]
async fn c40_a_restart_between_calls_is_not_seen() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    peer.call("echo", json!({})).await;
    peer.upstream().restart();
    peer.assert_works().await;
}

#[tokio::test]
async fn c19_a_server_that_is_gone_fails_the_call_at_once() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    let call = peer.start("sleep", json!({"ms": 60_000})).await;
    peer.arrived("sleep", 1).await;
    let killed = Instant::now();
    peer.upstream().kill();
    peer.answer(&call).await.assert_outcome_unknown();
    assert!(killed.elapsed() < NOTICED, "{:?}", killed.elapsed());
}

// Nobody there.

#[tokio::test]
async fn s9_a_refused_connection_is_said_and_nothing_has_started() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    peer.call("echo", json!({})).await;
    peer.upstream().kill();
    let answer = peer.call("echo", json!({"text": "hi"})).await;
    answer.assert_not_started();
    assert!(answer.text().contains("can't be reached"), "{}", answer.raw);
    assert_eq!(peer.ask("prompts/list", json!({})).await.error_code(), -32603);
    peer.upstream().restart();
    peer.assert_works().await;
}

/// The URL of a server that has been there, and is no more.
fn nobody() -> FakeHttp {
    let server = FakeHttp::start(&[]);
    server.kill();
    server
}

#[tokio::test]
async fn s2_a_wrapper_that_cannot_reach_its_server_answers_and_exits_with_69() {
    let server = nobody();
    let peer = Setup::proxied().at(&server.url()).spawn();
    let answer =
        peer.ask("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    let text = answer.error().to_string();
    assert!(text.contains("can't be reached") && text.contains(&server.url()), "{text}");
    assert_eq!(peer.exit().await.code(), Some(69));
    peer.wait_stderr(|line| line.contains("can't be reached")).await;
}

#[tokio::test]
async fn s2_a_wrapper_that_cannot_reach_its_server_waits_for_a_request_at_most_1_s() {
    let peer = Setup::proxied().at(&nobody().url()).spawn();
    let since = Instant::now();
    assert_eq!(peer.exit().await.code(), Some(69));
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
}

#[tokio::test]
async fn s2_a_sidecar_lives_without_its_server_and_serves_when_it_is_there() {
    let server = nobody();
    let peer = Setup::proxied().at(&server.url()).served().spawn();
    let client = peer.http().await;
    assert_eq!(
        (client.status_of("/healthz", &[]).await, client.status_of("/readyz", &[]).await),
        (200, 503)
    );
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let refused = client.ask("initialize", params).await;
    assert!(refused.error().to_string().contains("can't be reached"), "{}", refused.raw);
    client.become_modern("test-client", json!({}));
    client.call("echo", json!({})).await.assert_not_started();
    server.restart();
    assert_eq!(client.status_of("/readyz", &[]).await, 200);
    client.assert_works().await;
    let legacy = peer.http().await;
    legacy.initialize().await;
    legacy.assert_works().await;
}

// Answers that are none.

async fn faulty(fault: Value) -> (Peer, Answer) {
    let peer = Peer::opened(Setup::remote(&[])).await;
    peer.upstream().fault(fault).await;
    let answer = peer.call("echo", json!({"text": "hi"})).await;
    assert_eq!(peer.calls_of("echo").len(), 1, "it is not repeated");
    assert_eq!(peer.call("echo", json!({"text": "hi"})).await.text(), "hi", "the next call works");
    (peer, answer)
}

#[tokio::test]
async fn s9_a_page_of_a_proxy_is_told_as_text() {
    let page = "<html><head><title>502</title></head><body><h1>Bad Gateway</h1>\n<hr>nginx</body>";
    let headers = json!({"content-type": "text/html"});
    let fault =
        json!({"on": "tools/call", "times": 1, "status": 502, "headers": headers, "body": page});
    let (_, answer) = faulty(fault).await;
    answer.assert_outcome_unknown();
    assert!(answer.text().contains("502 Bad Gateway: 502 Bad Gateway nginx"), "{}", answer.raw);
}

#[tokio::test]
async fn s9_a_refusal_by_status_has_started_nothing() {
    for status in [400, 403, 405, 413, 429] {
        let fault = json!({"on": "tools/call", "times": 1, "status": status, "body": "no"});
        let (_, answer) = faulty(fault).await;
        answer.assert_not_started();
        assert!(answer.text().contains(&format!("HTTP {status}")), "{}", answer.raw);
    }
}

#[tokio::test]
async fn s9_a_redirection_to_another_origin_is_not_followed() {
    let headers = json!({"location": "http://127.0.0.1:9/elsewhere?secret=1"});
    for status in [301, 302, 307, 308] {
        let fault = json!({"on": "tools/call", "times": 1, "status": status, "headers": headers});
        let (peer, answer) = faulty(fault).await;
        assert!(answer.is_error(), "{}", answer.raw);
        assert!(answer.text().contains("http://127.0.0.1:9"), "{}", answer.raw);
        assert!(!answer.raw.contains("secret=1"), "{}", answer.raw);
        let elsewhere = |entry: &Entry| entry.json["http"]["path"] == "/elsewhere";
        assert!(!peer.journal().iter().any(elsewhere));
    }
}

#[tokio::test]
async fn s9_a_redirection_within_one_origin_is_followed_and_the_call_taken_once() {
    let headers = json!({"location": "/mcp?moved=1"});
    for status in [307, 308] {
        let peer = Peer::opened(Setup::remote(&[])).await;
        let fault = json!({"on": "tools/call", "times": 1, "status": status, "headers": headers});
        peer.upstream().fault(fault).await;
        peer.assert_works().await;
        let queries: Vec<_> =
            peer.calls_of("echo").iter().map(|call| call.json["http"]["query"].clone()).collect();
        assert_eq!(queries, ["", "moved=1"], "sent again only where it was sent to");
    }
}

#[tokio::test]
async fn s9_a_redirection_without_end_fails_the_call() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    let headers = json!({"location": "/mcp"});
    peer.upstream().fault(json!({"on": "tools/call", "status": 308, "headers": headers})).await;
    let answer = peer.call("echo", json!({})).await;
    assert!(answer.is_error() && answer.text().contains("308"), "{}", answer.raw);
    assert!(peer.calls_of("echo").len() <= 10, "{} times", peer.calls_of("echo").len());
}

#[tokio::test]
async fn s7_a_connection_closed_without_an_answer_is_an_unknown_outcome() {
    let (_, answer) = faulty(json!({"on": "tools/call", "times": 1, "drop": true})).await;
    answer.assert_outcome_unknown();
}

#[tokio::test]
async fn s7_a_success_without_an_answer_is_an_unknown_outcome() {
    let long = "x".repeat(100_000);
    for (status, body) in [
        (200, ""),
        (202, ""),
        (200, "fine"),
        (200, r#"{"result":{"content":[]},"id":3}"#),
        (200, r#"{"jsonrpc":"2.0","result":{"content":[]},"id":"another"}"#),
        (200, &*format!(r#"{{"error":"{long}"}}"#)),
        (200, &*format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"content":"{long}"#)),
    ] {
        let fault = json!({"on": "tools/call", "times": 1, "status": status, "body": body});
        let (_, answer) = faulty(fault).await;
        answer.assert_outcome_unknown();
    }
}

#[tokio::test]
async fn s4_1_a_server_slow_with_its_headers_is_a_slow_call() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    peer.upstream().fault(json!({"on": "tools/call", "times": 1, "delay_ms": 900})).await;
    let handle = peer.defer("echo", json!({"text": "hi"})).await;
    assert_eq!(peer.finish(handle).await.text(), "hi");
    assert_eq!(peer.calls_of("echo").len(), 1);
}

#[tokio::test]
async fn c32_headers_that_never_end_fail_the_call_and_take_no_memory() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    let before = process::peak_memory(peer.pid());
    for _ in 0..3 {
        peer.upstream()
            .fault(json!({"on": "tools/call", "times": 1, "endless_headers": true}))
            .await;
        let since = Instant::now();
        let answer = peer.call("echo", json!({})).await;
        answer.assert_outcome_unknown();
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    }
    let grown = process::peak_memory(peer.pid()) - before;
    assert!(grown < 16 << 20, "{grown} bytes");
    peer.assert_works().await;
}

#[tokio::test]
async fn c31_an_answer_above_max_message_fails_its_call_alone() {
    for flags in [&[][..], &["--json"]] {
        let toml = "[server]\nmax_message = \"1MiB\"";
        let peer = Peer::opened(Setup::remote(flags).config(toml)).await;
        let slow = peer.start("wait_file", until("go")).await;
        let answer = peer.call("big", json!({"bytes": 3_000_000})).await;
        assert!(answer.is_error(), "{}", &answer.raw[..answer.raw.len().min(300)]);
        assert!(answer.text().contains("max_message"), "{}", answer.raw);
        peer.create("go");
        assert_eq!(peer.answer(&slow).await.text(), "go");
        assert_eq!(peer.call("big", json!({"bytes": 9})).await.text(), "x".repeat(9));
        assert_eq!(peer.told("initialize"), 1);
    }
}

#[tokio::test]
async fn c32_a_stream_without_line_ends_takes_no_memory() {
    let toml = "[server]\nmax_message = \"1MiB\"";
    let peer = Peer::opened(Setup::remote(&[]).config(toml)).await;
    let before = process::peak_memory(peer.pid());
    let flood = json!({"repeat": ["data: and so on".repeat(1000), 5000]});
    let steps = json!([flood, {"write": "\n\n"}, {"result": "7"}]);
    assert_eq!(peer.script(steps).await.raw_result(), "7");
    let grown = process::peak_memory(peer.pid()) - before;
    assert!(grown < 16 << 20, "{grown} bytes");
}
