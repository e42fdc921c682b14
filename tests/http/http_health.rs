//! `/healthz` and `/readyz`, and a sidecar without its server (contract §2).

use serde_json::json;
use support::{Peer, Setup, eventually, process};

/// A sidecar in front of a command that does not exist.
fn without_server() -> Peer {
    Setup::proxied().served().server("/no/such/server").spawn()
}

#[tokio::test]
async fn s2_health_and_readiness_are_open_to_all() {
    let toml = "server.token = \"T\"\nserver.allowed_hosts = [\"mcp.example\"]\n";
    let peer = Peer::serve(toml, &[]);
    let client = peer.http().await;
    for headers in [vec![], vec![("origin", "http://evil.example")], vec![("host", "evil.example")]]
    {
        for path in ["/healthz", "/readyz"] {
            assert_eq!(client.status_of(path, &headers).await, 200, "{path} {headers:?}");
        }
    }
    assert_eq!(client.status_of("/mcp", &[]).await, 403);
    assert!(peer.started().is_empty(), "nothing is started for it");
}

#[tokio::test]
async fn s2_serve_starts_without_its_server_and_says_so() {
    let peer = without_server();
    let client = peer.http().await;
    assert_eq!(client.status_of("/healthz", &[]).await, 200);
    let mut ready = client.try_send("GET", "/readyz", &[], "").await.expect("an answer");
    assert_eq!(ready.status, 503);
    let told = ready.text().await;
    assert!(!told.contains("/no/such"), "anybody may ask: {told}");
}

#[tokio::test]
async fn s2_without_the_server_every_opening_gets_the_error_and_the_process_lives() {
    let peer = without_server();
    for _ in 0..3 {
        let client = peer.http().await;
        let info = json!({"name": "t", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let mut response = client.open("initialize", params).await;
        assert_eq!(response.header("mcp-session-id"), "");
        let answer = response.answer().await;
        assert!(
            answer.error()["message"].as_str().is_some_and(|text| text.contains("/no/such/server")),
            "{}",
            answer.raw
        );
        assert_eq!(answer.raw_id(), "1");
        let modern = peer.modern().await;
        let mut response = modern.start("echo", json!({})).await;
        let answer = response.answer().await;
        assert!(answer.raw.contains("/no/such/server"), "{}", answer.raw);
    }
    assert_eq!(peer.http().await.status_of("/healthz", &[]).await, 200);
    assert!(process::alive(peer.pid()));
}

#[tokio::test]
async fn s2_calls_are_served_once_the_server_is_there() {
    let peer = Setup::proxied().served().server("./late").spawn();
    let client = peer.http().await;
    assert_eq!(client.status_of("/readyz", &[]).await, 503);
    let script = "#!/bin/sh\nexec \"$@\"\n";
    std::fs::write(peer.path("late.new"), script).expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(peer.path("late.new"), mode).expect("a mode");
    std::fs::rename(peer.path("late.new"), peer.path("late")).expect("a name");
    assert_eq!(client.status_of("/readyz", &[]).await, 200);
    let client = peer.legacy().await;
    client.assert_works().await;
}

#[tokio::test]
async fn s2_a_server_that_ends_before_a_word_makes_it_unready() {
    let peer = Peer::serve("", &["--exit", "3"]);
    let client = peer.http().await;
    let answer = client.ask("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})).await;
    assert!(answer.is_rpc_error(), "{}", answer.raw);
    let unready = || async { (client.status_of("/readyz", &[]).await == 503).then_some(()) };
    assert!(eventually(unready).await.is_some());
    assert_eq!(client.status_of("/healthz", &[]).await, 200);
}

#[tokio::test]
async fn s2_a_port_that_is_taken_is_bad_usage_and_named() {
    let first = Peer::serve("", &[]);
    let client = first.http().await;
    let second = Setup::proxied().listening_on(client.authority()).spawn();
    assert_eq!(second.exit().await.code(), Some(64));
    second.stderr_ended().await;
    let told = second.stderr();
    for part in [client.authority(), "server.listen", "in use"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    assert_eq!(client.status_of("/healthz", &[]).await, 200, "the first goes on");
}
