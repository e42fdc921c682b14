//! Finding out what a server over HTTP speaks, and HTTP+SSE (contract §1.2, §3, §9; protocol §1.3,
//! §6.4).

use std::time::{Duration, Instant};

use serde_json::json;
use support::{Entry, Peer, Setup, Transport, eventually};

fn remote(transport: Transport, flags: &[&str]) -> Setup {
    Setup::proxied().upstream(transport).flags(flags)
}

fn configured(transport: &str) -> String {
    format!("[upstream]\ntransport = \"{transport}\"")
}

/// The ways in which the server was asked, in their order.
fn asked(peer: &Peer) -> Vec<(String, Option<String>)> {
    let entries = peer.journal().into_iter().filter(Entry::is_http);
    let of = |entry: Entry| (entry.http_method().unwrap_or_default().to_owned(), entry.method());
    entries.map(of).collect()
}

// `transport`.

#[tokio::test]
async fn s3_auto_finds_streamable_http_without_a_question_of_its_own() {
    let peer = Peer::opened(remote(Transport::Http, &[])).await;
    peer.assert_works().await;
    assert_eq!(asked(&peer)[0], ("POST".into(), Some("initialize".into())));
    assert_eq!((peer.told("initialize"), peer.told("server/discover")), (1, 0));
    assert_eq!(peer.calls_of("echo").len(), 1);
}

#[tokio::test]
async fn s3_auto_finds_http_sse_once() {
    let peer = Peer::opened(remote(Transport::Sse, &[])).await;
    for _ in 0..3 {
        peer.assert_works().await;
    }
    let refused = asked(&peer);
    assert_eq!(refused[0], ("POST".into(), Some("initialize".into())), "Streamable HTTP is tried");
    assert_eq!(refused[1], ("GET".into(), None));
    assert_eq!(peer.told("initialize"), 2, "refused at the one address, taken at the other");
    assert_eq!(peer.calls_of("echo").len(), 3, "no call is sent twice");
}

#[tokio::test]
async fn s3_what_one_session_found_holds_for_the_next() {
    let peer = remote(Transport::Sse, &[]).served().spawn();
    for _ in 0..3 {
        let client = peer.http().await;
        client.initialize().await;
        client.assert_works().await;
    }
    assert_eq!(peer.told("initialize"), 4, "one of them was a try");
}

#[tokio::test]
async fn s3_a_transport_that_is_configured_is_not_looked_for() {
    let peer = Peer::opened(remote(Transport::Sse, &[]).config(&configured("sse"))).await;
    peer.assert_works().await;
    assert_eq!(peer.told("initialize"), 1);
    let setup = remote(Transport::Sse, &[]).config(&configured("streamable-http"));
    let peer = setup.spawn();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let refused = peer.ask("initialize", params).await;
    assert!(refused.error().to_string().contains("405"), "{}", refused.raw);
    assert!(asked(&peer).iter().all(|(method, _)| method == "POST"));
}

#[tokio::test]
async fn s3_a_server_that_is_neither_is_said_to_refuse() {
    let fault = json!({"on": "*", "status": 404, "body": "no MCP here"}).to_string();
    let peer = remote(Transport::Http, &["--fault", &fault]).spawn();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let refused = peer.ask("initialize", params).await;
    assert!(refused.error().to_string().contains("no MCP here"), "{}", refused.raw);
}

// Eras.

/// What a dual-era client does: `server/discover`, and `initialize` where that is refused.
async fn opens_as_dual(peer: &Peer) -> &'static str {
    peer.become_modern("dual", json!({}));
    let discovered = peer.ask("server/discover", json!({})).await;
    if !discovered.is_rpc_error() {
        return "modern";
    }
    assert!(![-32020, -32021, -32022].contains(&discovered.error_code()), "{}", discovered.raw);
    peer.become_legacy();
    assert_eq!(peer.initialize().await.result()["protocolVersion"], "2025-11-25");
    "legacy"
}

#[tokio::test]
async fn s1_2_a_dual_client_ends_on_the_servers_era_over_every_transport() {
    let rows = [
        (Some(Transport::Http), &[][..], "legacy"),
        (Some(Transport::Http), &["--strict"], "legacy"),
        (Some(Transport::Http), &["--modern"], "modern"),
        (Some(Transport::Http), &["--dual", "--strict"], "modern"),
        (Some(Transport::Sse), &[], "legacy"),
        (None, &[], "legacy"),
        (None, &["--modern"], "modern"),
        (None, &["--dual"], "modern"),
    ];
    for (upstream, flags, era) in rows {
        for served in [false, true] {
            let mut setup = Setup::proxied().flags(flags);
            setup = if served { setup.served() } else { setup };
            setup = upstream.into_iter().fold(setup, Setup::upstream);
            let peer = setup.spawn();
            assert_eq!(opens_as_dual(&peer).await, era, "{upstream:?} {flags:?} {served}");
            peer.assert_works().await;
            assert_eq!(peer.calls_of("echo").len(), 1);
        }
    }
}

#[tokio::test]
async fn s1_2_a_client_that_ends_on_the_legacy_era_takes_its_session_along() {
    let peer = remote(Transport::Http, &[]).spawn();
    assert_eq!(opens_as_dual(&peer).await, "legacy");
    let initialized = peer.journal_method("notifications/initialized").await;
    assert!(initialized.header("mcp-session-id").is_some());
    assert_eq!(initialized.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(initialized.header("mcp-method"), None);
}

// HTTP+SSE.

async fn sse(flags: &[&str]) -> Peer {
    Peer::opened(remote(Transport::Sse, flags)).await
}

#[tokio::test]
async fn s9_all_messages_go_to_the_address_that_the_server_names() {
    for endpoint in [
        "/messages?session=$SESSION",
        "messages?session=$SESSION",
        "$BASE/messages?session=$SESSION",
    ] {
        let setup = remote(Transport::Sse, &["--endpoint", endpoint]);
        let peer = Peer::opened(setup.config(&configured("sse"))).await;
        assert_eq!(peer.call("echo", json!({"text": "hi"})).await.text(), "hi", "{endpoint}");
        let posts = peer.journal().into_iter().filter(|e| e.http_method() == Some("POST"));
        assert!(posts.into_iter().all(|entry| entry.json["http"]["path"] == "/messages"));
    }
}

#[tokio::test]
async fn s9_an_address_on_another_origin_is_refused() {
    let other = support::FakeHttp::over(Transport::Sse, &[]);
    let elsewhere = other.url().replace("/sse", "/messages?session=$SESSION");
    for endpoint in [&*elsewhere, "//127.0.0.1:9/messages", "https://127.0.0.1/messages"] {
        let setup = remote(Transport::Sse, &["--endpoint", endpoint]);
        let peer = setup
            .options(&["--header", "Authorization: Bearer s-1"])
            .config(&configured("sse"))
            .spawn();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        let refused = peer.ask("initialize", params).await;
        assert!(refused.error().to_string().contains("origin"), "{}", refused.raw);
        assert!(asked(&peer).iter().all(|(method, _)| method == "GET"));
    }
    assert!(!other.journal().iter().any(Entry::is_http), "no message has leaked");
}

/// The one stream is lost, and with it all that was to come on it.
async fn loses_its_stream(peer: &Peer, lose: impl AsyncFn()) {
    let job = peer.defer("sleep", json!({"ms": 60_000})).await;
    let call = peer.start("sleep", json!({"ms": 60_001})).await;
    peer.arrived("sleep", 2).await;
    let lost = Instant::now();
    lose().await;
    peer.answer(&call).await.assert_outcome_unknown();
    let end = peer.finish(job).await;
    end.assert_outcome_unknown();
    assert_eq!(end.status(), "failed");
    assert!(lost.elapsed() < Duration::from_secs(3), "{:?}", lost.elapsed());
    peer.assert_works().await;
    assert_eq!(peer.calls_of("sleep").len(), 2, "nothing is repeated");
}

#[tokio::test]
async fn s9_a_lost_stream_fails_its_calls_and_the_next_one_begins_anew() {
    let peer = sse(&[]).await;
    peer.ask("logging/setLevel", json!({"level": "error"})).await;
    let handshakes = peer.told("notifications/initialized");
    loses_its_stream(&peer, async || peer.upstream().cut_streams().await).await;
    assert_eq!(peer.told("notifications/initialized"), handshakes + 1);
    let again = || async { (peer.told("logging/setLevel") == 2).then_some(()) };
    eventually(again).await.expect("the new session has the log level");
}

#[tokio::test]
async fn c40_a_restarted_server_of_http_sse() {
    let peer = sse(&[]).await;
    loses_its_stream(&peer, async || peer.upstream().restart()).await;
}

#[tokio::test]
async fn c40_a_restarted_server_of_http_sse_behind_the_sidecar() {
    let peer = Peer::opened(remote(Transport::Sse, &[]).served()).await;
    loses_its_stream(&peer, async || peer.upstream().restart()).await;
}

#[tokio::test]
async fn s9_a_message_that_is_refused_has_started_nothing() {
    let peer = sse(&[]).await;
    peer.upstream()
        .fault(json!({"on": "tools/call", "times": 1, "status": 413, "body": "no"}))
        .await;
    let answer = peer.call("echo", json!({})).await;
    assert!(answer.is_error() && answer.text().contains("was not started"), "{}", answer.raw);
    peer.assert_works().await;
}

#[tokio::test]
async fn c31_an_answer_above_max_message_fails_its_call_alone_over_http_sse() {
    let toml = "[server]\nmax_message = \"1MiB\"";
    let peer = Peer::opened(remote(Transport::Sse, &[]).config(toml)).await;
    let answer = peer.call("big", json!({"bytes": 3_000_000})).await;
    assert!(answer.is_error() && answer.text().contains("max_message"), "{}", answer.raw);
    peer.assert_works().await;
}

#[tokio::test]
async fn c10_two_clients_have_a_stream_each() {
    let peer = remote(Transport::Sse, &[]).served().spawn();
    let (a, b) = (peer.http().await, peer.http().await);
    a.initialize().await;
    b.initialize().await;
    let (first, second) = tokio::join!(
        a.call("sleep", json!({"ms": 60, "text": "a"})),
        b.call("sleep", json!({"ms": 30, "text": "b"})),
    );
    assert_eq!((first.text(), second.text()), ("a", "b"));
    assert_eq!(first.raw_id(), second.raw_id());
    let mut queries: Vec<_> =
        peer.calls_of("sleep").iter().map(|call| call.json["http"]["query"].to_string()).collect();
    queries.sort();
    queries.dedup();
    assert_eq!(queries.len(), 2);
}

#[tokio::test]
async fn s9_the_stream_is_closed_with_the_client() {
    let peer = sse(&[]).await;
    peer.call("echo", json!({})).await;
    peer.close_stdin().await;
    assert!(peer.exit().await.success());
    peer.journal_wait(|entry| entry.event == "disconnect" && entry.json["http_method"] == "GET")
        .await;
}
