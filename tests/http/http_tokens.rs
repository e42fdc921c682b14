//! Tokens of clients over HTTP: who is let in, who they are, and what is logged of them (contract §3, §10).

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{HttpPeer, Peer, Setup, Transport, call_params};

const TOKEN: &str = "sesame-7f3a";
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// A sidecar that wants a token, and with this besides it.
fn guarded(toml: &str) -> Setup {
    Setup::proxied().served().config(&format!("[server]\ntoken = \"{TOKEN}\"\n{toml}"))
}

/// A client with the token, and with this `X-User`.
async fn client(peer: &Peer, user: Option<&str>) -> HttpPeer {
    let client = peer.http().await.with_header("authorization", &format!("Bearer {TOKEN}"));
    match user {
        Some(user) => client.with_header("x-user", user),
        None => client,
    }
}

async fn legacy(peer: &Peer, user: Option<&str>) -> HttpPeer {
    let client = client(peer, user).await;
    client.initialize().await;
    client
}

async fn modern(peer: &Peer, user: Option<&str>) -> HttpPeer {
    let client = client(peer, user).await;
    client.become_modern("test-client", json!({}));
    client
}

// server.token.

#[tokio::test]
async fn s3_without_the_token_nobody_is_let_in() {
    let peer = guarded("").spawn();
    let session = legacy(&peer, None).await.session();
    for value in ["", "Bearer wrong", "Basic sesame-7f3a", "Bearer sesame-7f3", "sesame-7f3a"] {
        let stranger = match value {
            "" => peer.http().await,
            value => peer.http().await.with_header("authorization", value),
        };
        let mut refusal = stranger.open("initialize", json!({})).await;
        assert_eq!(refusal.status, 401, "{value}");
        assert!(refusal.header("www-authenticate").starts_with("Bearer"), "{value}");
        assert!(!refusal.text().await.contains(TOKEN), "{value}");
        stranger.set_session(session.as_deref());
        assert_eq!(stranger.open("tools/list", json!({})).await.status, 401, "{value}");
        assert_eq!(stranger.get_stream().await.status, 401, "{value}");
        assert_eq!(stranger.delete().await.status, 401, "{value}");
        stranger.become_modern("stranger", json!({}));
        assert_eq!(stranger.open("tools/list", json!({})).await.status, 401, "{value}");
    }
    assert_eq!(peer.received("initialize").len(), 1);
    assert!(peer.received("tools/list").is_empty());
}

#[tokio::test]
async fn s10_the_token_is_no_identity() {
    let peer = guarded("").spawn();
    let (first, second) = (legacy(&peer, None).await, legacy(&peer, None).await);
    let handle = first.park("go").await;
    assert!(second.jobs().await.is_empty());
    assert!(second.look(&handle.job_id()[..8]).await.is_error());
    assert_eq!(second.look(handle.job_id()).await.status(), "working", "the full id opens it");
    let third = modern(&peer, None).await;
    third.park("go").await;
    third.park("go").await;
    assert!(third.jobs().await.is_empty());
    assert_eq!(peer.calls_of("wait_file").len(), 3, "and nothing is joined");
}

#[tokio::test]
async fn s10_beside_the_token_another_header_is_the_identity() {
    let peer = guarded("identity_header = \"x-user\"").spawn();
    let (ann, ben) = (Some("ann"), Some("ben"));
    let handle = legacy(&peer, ann).await.park("go").await;
    for own in [legacy(&peer, ann).await, modern(&peer, ann).await] {
        assert_eq!(own.jobs().await.len(), 1);
        assert_eq!(own.look(&handle.job_id()[..8]).await.status(), "working");
    }
    let strangers = [legacy(&peer, ben).await, modern(&peer, ben).await, legacy(&peer, None).await];
    for other in strangers {
        let words = |answer: support::Answer, id| answer.text().replace(id, "ID");
        let foreign = other.look(handle.job_id()).await;
        assert!(foreign.is_error(), "{}", foreign.raw);
        let unknown = words(other.look(UNKNOWN).await, UNKNOWN);
        assert_eq!(words(foreign, handle.job_id()), unknown);
        assert!(other.jobs().await.is_empty());
    }
}

#[tokio::test]
async fn s10_the_name_of_the_header_may_have_any_case_and_an_empty_value_is_nobody() {
    let peer = guarded("identity_header = \"X-User\"").spawn();
    let handle = legacy(&peer, Some("ann")).await.park("go").await;
    let again = legacy(&peer, Some("ann")).await;
    assert_eq!(again.look(&handle.job_id()[..8]).await.status(), "working");
    let (first, second) = (legacy(&peer, Some("")).await, legacy(&peer, Some("")).await);
    first.park("go").await;
    assert_eq!((first.jobs().await.len(), second.jobs().await.len()), (1, 0));
}

#[tokio::test]
async fn s10_the_token_of_the_sidecar_never_reaches_the_server() {
    let toml = "identity_header = \"x-user\"\n[upstream]\nforward_headers = [\"x-user\"]";
    let peer = guarded(toml).upstream(Transport::Http).spawn();
    let clients = [legacy(&peer, Some("ann")).await, modern(&peer, Some("ann")).await];
    for client in &clients {
        client.assert_works().await;
    }
    let calls = peer.calls_of("echo");
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| call.header("x-user") == Some("ann")));
    let journal: String = peer.journal().iter().map(|entry| entry.json.to_string()).collect();
    assert!(!journal.contains(TOKEN));
}

// What is logged.

const IDENTITY: &str = "identity-91bc";
const SECRET: &str = "hunter2";

/// All that may happen to a client, with a secret in its arguments; the ids of its jobs.
async fn eventful(peer: &Peer, client: &HttpPeer, name: &str) -> Vec<String> {
    let mut ids = vec![];
    for (tool, ms) in [("sleep", 1500), ("fail", 1501), ("rpc_error", 1502)] {
        let args = json!({"ms": ms, "text": SECRET, "message": SECRET});
        let handle = client.defer(tool, args.clone()).await;
        ids.push(handle.job_id().to_owned());
        client.call(tool, args).await;
        client.finish(handle).await;
    }
    let handle = client.defer("sleep", json!({"ms": 60_000, "text": SECRET})).await;
    client.call("job_cancel", json!({"job_id": handle.job_id(), "x": SECRET})).await;
    ids.push(handle.job_id().to_owned());
    client.look(SECRET).await;
    peer.hung_up(client, &format!("{SECRET}-{name}")).await;
    client.open("x/unknown", json!({"x": SECRET})).await.text().await;
    client.send("POST", &[("content-type", "application/json")], SECRET).await.text().await;
    client.set_session(Some(SECRET));
    client.open("tools/call", call_params("echo", json!({"x": SECRET}))).await.text().await;
    ids
}

/// Ends the sidecar; all that was logged, and the ids of all jobs in it.
async fn logged(setup: Setup) -> (String, Vec<String>) {
    let peer = setup.spawn();
    let old = legacy(&peer, Some(IDENTITY)).await;
    let new = modern(&peer, Some(IDENTITY)).await;
    let (ids, more) = tokio::join!(eventful(&peer, &old, "old"), eventful(&peer, &new, "new"));
    let wrong = peer.http().await.with_header("authorization", &format!("Bearer {TOKEN}x"));
    assert_eq!(wrong.open("initialize", Value::Null).await.status, 401);
    peer.signal(Signal::SIGTERM);
    peer.exit().await;
    peer.stderr_ended().await;
    (peer.stderr(), [ids, more].concat())
}

const QUIET: &str = "identity_header = \"x-user\"\ndrain_timeout = \"0s\"\n";

fn assert_absent(log: &str, words: &str) {
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(words)).collect();
    assert!(lines.is_empty(), "{words} is logged: {lines:#?}");
}

#[tokio::test]
async fn s10_tokens_are_not_logged_even_at_trace() {
    let at = |level| logged(guarded(QUIET).options(&["--log-level", level]));
    let (debug, trace) = tokio::join!(at("debug"), at("trace"));
    for (log, _) in [debug, trace] {
        assert!(log.contains("DEBUG") && log.contains("job started"), "{log}");
        assert_absent(&log, TOKEN);
        assert_absent(&log, IDENTITY);
    }
}

#[tokio::test]
async fn s10_tokens_for_a_server_over_http_are_not_logged_either() {
    let upstream = "[upstream]\nforward_headers = [\"x-user\"]\nheaders = { X-Key = \"key-55d0\" }";
    let setup = guarded(&format!("{QUIET}{upstream}")).upstream(Transport::Http);
    let (log, _) = logged(setup.options(&["--log-level", "trace"])).await;
    assert!(log.contains("DEBUG") && log.contains("job started"), "{log}");
    [TOKEN, IDENTITY, "key-55d0"].iter().for_each(|token| assert_absent(&log, token));
}

#[tokio::test]
async fn s10_arguments_and_full_job_ids_are_not_logged_at_info() {
    let (log, ids) = logged(guarded(QUIET)).await;
    assert_absent(&log, SECRET);
    assert_eq!(ids.len(), 8);
    for id in ids {
        assert!(log.contains(&id[..8]), "{id} in\n{log}");
        assert_absent(&log, &id[..9]);
    }
}
