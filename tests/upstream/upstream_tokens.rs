//! Servers over HTTP that want a token: the client's own, forwarded, or a configured one
//! (contract §10).

use serde_json::json;
use support::{Entry, Peer, Setup};

const FORWARDED: &str = "[upstream]\nforward_headers = [\"authorization\"]\n[tools.wait_file]\nanswer_within = \"300ms\"";
const METADATA: &str = "/.well-known/oauth-protected-resource";

fn forwarding(flags: &[&str]) -> Peer {
    Setup::remote(flags).served().config(FORWARDED).spawn()
}

fn token_of(entry: &Entry) -> Option<&str> {
    entry.header("authorization")
}

// The refusal.

/// Both openings are refused with what the client needs in order to get a token.
#[tokio::test]
async fn s10_a_refusal_reaches_an_http_client_as_it_is() {
    let peer = forwarding(&["--token", "good"]);
    let challenge =
        format!("Bearer resource_metadata=\"{}", peer.upstream().url().replace("/mcp", METADATA));
    let nobody = peer.http().await;
    let wrong = peer.known_as("bad").await;
    for client in [nobody, wrong] {
        let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        let refused = client.open("initialize", initialize).await;
        assert_eq!(refused.status, 401);
        assert_eq!(refused.header("www-authenticate"), format!("{challenge}\""));
        assert_eq!(refused.header("mcp-session-id"), "", "there is no session");
        client.become_modern("test-client", json!({}));
        for method in ["server/discover", "tools/list"] {
            let refused = client.open(method, json!({})).await;
            assert_eq!(
                (refused.status, refused.header("www-authenticate")),
                (401, &*format!("{challenge}\""))
            );
        }
        let refused = client.start("echo", json!({})).await;
        assert_eq!(refused.status, 401);
    }
}

#[tokio::test]
async fn s10_the_body_and_kind_of_a_refusal_reach_an_http_client() {
    let peer = forwarding(&[]);
    let client = peer.known_as("good").await;
    client.initialize().await;
    let headers = json!({"www-authenticate": "Bearer error=\"insufficient_scope\", scope=\"a\"",
        "content-type": "application/problem+json", "x-internal": "1"});
    let body = r#"{"title": "no", "n": 1.10}"#;
    let fault =
        json!({"on": "tools/call", "times": 1, "status": 403, "headers": headers, "body": body});
    peer.upstream().fault(fault).await;
    let mut refused = client.start("echo", json!({})).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.header("www-authenticate"),
        "Bearer error=\"insufficient_scope\", scope=\"a\""
    );
    assert_eq!(refused.header("content-type"), "application/problem+json");
    assert_eq!(refused.header("x-internal"), "");
    assert_eq!(refused.text().await, body);
    client.assert_works().await;
}

/// After 10 s of silence the status has left; and who takes no JSON is refused all the same.
#[tokio::test]
async fn s10_a_refusal_that_comes_too_late_for_a_status_is_an_error_on_the_stream() {
    let peer = forwarding(&[]);
    let client = peer.known_as("good").await;
    client.initialize().await;
    let refusal = |delay: u32| json!({"on": "tools/call", "times": 1, "status": 401, "delay_ms": delay, "body": "<no>"});
    peer.upstream().fault(refusal(10_500)).await;
    let mut late = client.start("echo", json!({})).await;
    assert_eq!((late.status, late.header("content-type")), (200, "text/event-stream"));
    let answer = late.answer().await;
    assert!(answer.is_error() && answer.text().contains("HTTP 401"), "{}", answer.raw);
    peer.upstream().fault(refusal(0)).await;
    let call = client.request("tools/call", json!({"name": "echo"}));
    let mut refused = client.post_but(&call, "accept", Some("text/event-stream")).await;
    assert_eq!((refused.status, &*refused.text().await), (401, "<no>"));
}

#[tokio::test]
async fn s10_the_document_about_the_resource_reaches_an_http_client() {
    let peer = forwarding(&["--token", "good"]);
    let client = peer.http().await;
    for path in [METADATA, "/.well-known/oauth-protected-resource/mcp"] {
        let mut document = client.try_send("GET", path, &[], "").await.expect("an answer");
        assert_eq!(document.status, 200);
        assert_eq!(document.header("content-type"), "application/json");
        assert_eq!(document.json().await["resource"], peer.upstream().url());
    }
}

/// Whoever is let in could else read what the server shows to nobody outside.
#[tokio::test]
async fn k19_no_other_document_of_the_server_is_asked_for() {
    let peer = forwarding(&["--token", "good"]);
    let client = peer.http().await;
    for rest in [
        "/../../admin/keys",
        "/%2e%2e/%2E%2E/admin/keys",
        "/..%2fadmin",
        "/%2e./admin",
        "/mcp/../../admin",
        "/mcp/%2e%2e",
        "/./mcp",
        "/..\\..\\admin",
        "/mcp\\..\\admin",
        "XX",
        "XX/mcp",
        "/admin",
        "/mcpx",
        "/mcp/admin",
        "%2fmcp",
    ] {
        let response = client.try_send("GET", &format!("{METADATA}{rest}"), &[], "").await;
        assert_eq!(response.expect("an answer").status, 404, "{rest}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let response = client.try_send(method, METADATA, &[], "").await.expect("an answer");
        assert_eq!((response.status, response.header("allow")), (405, "GET, HEAD"), "{method}");
    }
    assert!(!peer.journal().iter().any(Entry::is_http), "nothing of it reached the server");
}

#[tokio::test]
async fn k19_the_document_about_the_resource_can_be_asked_for_with_head() {
    let peer = forwarding(&["--token", "good"]);
    let path = format!("{METADATA}/mcp?x=1");
    let mut head = peer.http().await.try_send("HEAD", &path, &[], "").await.expect("an answer");
    assert_eq!((head.status, head.header("content-type")), (200, "application/json"));
    assert_eq!(head.text().await, "");
    let asked = peer.journal().into_iter().find(Entry::is_http).expect("it was asked for");
    assert_eq!(asked.json["http"]["path"], format!("{METADATA}/mcp"));
    assert_eq!(asked.json["http"]["query"], "");
}

#[tokio::test]
async fn s10_without_a_forwarded_token_there_is_no_such_document() {
    let peer = Setup::remote(&["--token", "good"]).served().spawn();
    let client = peer.http().await;
    let document = client.try_send("GET", METADATA, &[], "").await.expect("an answer");
    assert_eq!(document.status, 404);
    let asked = |entry: &Entry| entry.json["http"]["path"] == METADATA;
    assert!(!peer.journal().iter().any(asked));
}

#[tokio::test]
async fn c22_a_refusal_of_the_configured_token_is_an_error_and_no_challenge() {
    let peer = Setup::remote(&["--token", "good"])
        .served()
        .options(&["--header", "Authorization: Bearer bad"])
        .spawn();
    let client = peer.http().await;
    client.become_modern("test-client", json!({}));
    let mut refused = client.start("echo", json!({})).await;
    assert_eq!((refused.status, refused.header("www-authenticate")), (200, ""));
    let answer = refused.answer().await;
    assert!(answer.is_error() && answer.text().contains("401"), "{}", answer.raw);
}

#[tokio::test]
async fn s10_a_stdio_client_is_told_of_the_refusal_in_words() {
    let peer = Setup::remote(&["--token", "good"]).spawn();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let refused = peer.ask("initialize", params).await;
    assert!(refused.error().to_string().contains("401 Unauthorized"), "{}", refused.raw);
    let peer =
        Setup::remote(&["--token", "good"]).options(&["--header", "Authorization: Bearer good"]);
    let peer = Peer::opened(peer).await;
    peer.assert_works().await;
}

// Whose token.

#[tokio::test]
async fn s10_tokens_of_several_callers_never_mix() {
    for modern in [false, true] {
        let peer = forwarding(&["--dual"]);
        let (a, b) = (peer.known_as("a").await, peer.known_as("b").await);
        for client in [&a, &b] {
            if modern {
                client.become_modern("test-client", json!({}));
            } else {
                client.initialize().await;
            }
        }
        for round in 0..5 {
            let (from_a, from_b) = tokio::join!(
                a.call("echo", json!({"text": format!("a {round}")})),
                b.call("sleep", json!({"ms": 5, "text": format!("b {round}")})),
            );
            assert_eq!(
                (from_a.text(), from_b.text()),
                (&*format!("a {round}"), &*format!("b {round}"))
            );
        }
        assert!(peer.calls_of("echo").iter().all(|call| token_of(call) == Some("Bearer a")));
        assert!(peer.calls_of("sleep").iter().all(|call| token_of(call) == Some("Bearer b")));
        let strangers = peer.journal().into_iter().filter(Entry::is_http);
        assert!(strangers.into_iter().all(|entry| token_of(&entry).is_some()), "all have one");
    }
}

/// A job goes on with the token of its call, even after its caller has a newer one.
#[tokio::test]
async fn s10_a_job_keeps_its_callers_token_for_its_own_call() {
    let peer = forwarding(&["--event-ids", "--retry", "20"]);
    let (first, other) = (peer.known_as("first").await, peer.known_as("other").await);
    first.initialize().await;
    other.initialize().await;
    let handle = first.call("wait_file", peer.gate("go")).await;
    other.call("echo", json!({})).await;
    peer.upstream().cut_streams().await;
    peer.journal_wait(|entry| entry.header("last-event-id").is_some()).await;
    peer.create("go");
    assert_eq!(first.finish(handle).await.text(), "go is open");
    let session = peer.calls_of("wait_file")[0].header("mcp-session-id").map(str::to_owned);
    let own = |entry: &Entry| entry.header("mcp-session-id").map(str::to_owned) == session;
    let entries: Vec<_> = peer.journal().into_iter().filter(|e| e.is_http() && own(e)).collect();
    assert!(entries.iter().any(|entry| entry.header("last-event-id").is_some()));
    assert!(entries.iter().all(|entry| token_of(entry) == Some("Bearer first")), "{entries:?}");
}

#[tokio::test]
async fn s6_the_cancel_of_a_call_goes_with_its_callers_token() {
    let peer = forwarding(&[]);
    let caller = peer.known_as("first").await;
    caller.initialize().await;
    let handle = caller.call("wait_file", peer.gate("never")).await;
    caller.call("job_cancel", json!({"job_id": handle.job_id()})).await;
    let cancelled = peer.journal_method("notifications/cancelled").await;
    assert_eq!(token_of(&cancelled), Some("Bearer first"));
}

#[tokio::test]
async fn c42_a_new_session_is_opened_with_the_token_of_its_owner() {
    let peer = forwarding(&[]);
    let (a, b) = (peer.known_as("a").await, peer.known_as("b").await);
    a.initialize().await;
    b.initialize().await;
    peer.upstream().forget_sessions().await;
    let (first, second) =
        tokio::join!(a.call("echo", json!({"text": "a"})), b.call("echo", json!({"text": "b"})),);
    assert_eq!((first.text(), second.text()), ("a", "b"));
    let openings = peer.received("initialize");
    let mut tokens: Vec<_> = openings.iter().filter_map(token_of).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, ["Bearer a", "Bearer a", "Bearer b", "Bearer b"]);
}

#[tokio::test]
async fn s10_a_session_is_its_principals_alone_whatever_is_forwarded() {
    let peer = forwarding(&[]);
    let (owner, thief) = (peer.known_as("a").await, peer.known_as("b").await);
    owner.initialize().await;
    thief.initialize().await;
    thief.set_session(owner.session().as_deref());
    assert_eq!(thief.start("echo", json!({})).await.status, 404);
    assert_eq!(peer.calls_of("echo").len(), 0);
}

#[tokio::test]
async fn s10_tokens_are_in_no_log_and_no_file() {
    let setup = Setup::remote(&["--event-ids"]).served().config(FORWARDED);
    let peer = setup.options(&["--log-level", "trace"]).spawn();
    let caller = peer.known_as("s3cr3t-t0ken").await;
    caller.initialize().await;
    let handle = caller.call("wait_file", peer.gate("go")).await;
    peer.upstream().cut_streams().await;
    peer.create("go");
    assert_eq!(caller.finish(handle).await.text(), "go is open");
    assert!(!peer.stderr().contains("s3cr3t-t0ken"), "{}", peer.stderr());
}
