//! A server over HTTP that sends a request to another path: that request alone goes there
//! (contract §9).

use serde_json::{Value, json};
use support::{Entry, Peer, Setup};

const ELSEWHERE: &str = "tenant=b";

/// Sends the next of these requests elsewhere on the same origin.
async fn redirect(peer: &Peer, on: &str, status: u16) {
    let headers = json!({"location": format!("/mcp?{ELSEWHERE}")});
    let fault = json!({"on": on, "times": 1, "status": status, "headers": headers});
    peer.upstream().fault(fault).await;
}

fn query(entry: &Entry) -> &Value {
    &entry.json["http"]["query"]
}

/// Who was sent where, request by request, but for what the two callers opened with.
fn ways(peer: &Peer, method: &str) -> Vec<(String, String)> {
    let entries = peer.journal().into_iter().filter(|entry| entry.has_method(method));
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    entries.map(|e| (text(e.header("authorization")), text(query(&e).as_str()))).collect()
}

#[tokio::test]
async fn k18_a_redirect_of_one_caller_moves_nobody_elses_messages() {
    let toml = "[upstream]\nforward_headers = [\"authorization\"]";
    for status in [307, 308] {
        let peer = Setup::remote(&["--dual"]).served().config(toml).spawn();
        let (mallory, victim) = (peer.modern_as("m").await, peer.modern_as("v").await);
        let legacy = peer.legacy_as("l").await;
        redirect(&peer, "tools/call", status).await;
        for client in [&mallory, &victim, &legacy, &mallory] {
            client.assert_works().await;
        }
        let expected = [("m", ""), ("m", ELSEWHERE), ("v", ""), ("l", ""), ("m", "")];
        let expected = expected.map(|(who, at)| (format!("Bearer {who}"), at.to_owned()));
        assert_eq!(ways(&peer, "tools/call"), expected, "{status}");
    }
}

/// A path that works no longer is not kept.
#[tokio::test]
async fn k18_a_redirect_to_a_place_that_fails_is_not_kept() {
    let peer = Setup::remote(&["--modern"]).spawn();
    peer.become_modern("test-client", json!({}));
    let headers = json!({"location": "/gone"});
    let fault = json!({"on": "tools/call", "times": 1, "status": 308, "headers": headers});
    peer.upstream().fault(fault).await;
    let refused = peer.call("echo", json!({})).await;
    assert!(refused.is_error() && !refused.raw.contains("/gone"), "{}", refused.raw);
    peer.assert_works().await;
    let said = |line: &str| line.contains("WARN") && line.contains("another path");
    assert_eq!(peer.stderr().lines().filter(|line| said(line)).count(), 1);
}

#[tokio::test]
async fn k18_the_servers_own_stream_and_the_goodbye_follow_their_own_redirect() {
    let peer = Setup::remote(&[]).spawn();
    redirect(&peer, "GET", 307).await;
    peer.initialize().await;
    let is_moved = |method: &'static str| {
        move |e: &Entry| e.http_method() == Some(method) && *query(e) == ELSEWHERE
    };
    peer.journal_wait(is_moved("GET")).await;
    peer.assert_works().await;
    redirect(&peer, "DELETE", 308).await;
    peer.close_stdin().await;
    peer.exit().await;
    let told = peer.journal();
    assert!(told.iter().any(is_moved("DELETE")));
    assert!(!told.iter().any(is_moved("POST")));
}
