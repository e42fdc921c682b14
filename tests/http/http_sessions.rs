//! Sessions of legacy clients over HTTP, and what no session is needed to be refused for
//! (protocol §6.2, contract §9, C43).

use serde_json::json;
use support::http::Response;
use support::{HttpPeer, Peer};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"x/note"}"#;

async fn refusal(mut response: Response, status: u16) -> serde_json::Value {
    let body = response.json().await;
    assert_eq!(response.status, status, "{body}");
    assert!(body["error"]["message"].as_str().is_some_and(|text| text.len() > 10), "{body}");
    body["error"].clone()
}

async fn open_as(peer: &Peer, version: &str) -> HttpPeer {
    let client = peer.http().await;
    let answer = client.initialize_under(version).await;
    assert_eq!(answer.result()["protocolVersion"], version);
    client
}

// Opening and use.

#[tokio::test]
async fn s6_2_initialize_gives_a_session_of_visible_ascii_in_every_legacy_revision() {
    let peer = Peer::serve("", &[]);
    let mut ids = vec![];
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = open_as(&peer, version).await;
        let id = client.session().expect("a session id");
        assert!(id.len() >= 32 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        assert_eq!(client.call("echo", json!({"text": version})).await.text(), version);
        ids.push(id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn s6_2_only_the_answer_to_initialize_names_the_session() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let answer = client.start("echo", json!({})).await;
    assert_eq!(answer.header("mcp-session-id"), "");
}

#[tokio::test]
async fn s6_2_a_session_is_missing_or_unknown() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let own = client.session();
    for message in [PING, NOTE, r#"{"jsonrpc":"2.0","id":"q","result":{}}"#] {
        client.set_session(None);
        refusal(client.post(message).await, 400).await;
        for unknown in ["7", "3f0e5d0e-2b5f-4a43-8f53-0d3a0c7d2f11", "\u{7e}!"] {
            client.set_session(Some(unknown));
            assert_eq!(refusal(client.post(message).await, 404).await["code"], -32001);
        }
    }
    client.set_session(own.as_deref());
    assert_eq!(client.post(PING).await.status, 200);
}

#[tokio::test]
async fn c43_a_dead_session_is_404_and_its_id_opens_a_new_one() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let old = client.session().expect("a session");
    assert!((200..300).contains(&client.delete().await.status));
    for response in [client.post(PING).await, client.get_stream().await, client.delete().await] {
        refusal(response, 404).await;
    }
    for stale in [old.as_str(), "never-heard-of"] {
        let opening = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let message = client.request("initialize", opening);
        let mut response = client.post_with(&message, &[("mcp-session-id", stale)]).await;
        assert_eq!(response.status, 200);
        let new = response.header("mcp-session-id").to_owned();
        assert!(!new.is_empty() && new != stale);
        assert!(response.answer().await.result().is_object());
        client.set_session(Some(&new));
        client.assert_works().await;
    }
}

#[tokio::test]
async fn s6_2_notifications_and_responses_are_accepted_without_a_body() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    for message in [
        NOTE,
        r#"{"jsonrpc":"2.0","id":"q","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#,
    ] {
        let mut response = client.post(message).await;
        assert_eq!((response.status, response.text().await.as_str()), (202, ""), "{message}");
    }
    peer.journal_method("x/note").await;
}

// Refusals.

#[tokio::test]
async fn s6_2_other_methods_and_streams_without_a_session_are_not_allowed() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    for method in ["PUT", "PATCH", "HEAD"] {
        let response = client.send(method, &[], "").await;
        assert_eq!(response.status, 405, "{method}");
        let allowed = response.header("allow");
        assert!(["POST", "GET", "DELETE"].iter().all(|m| allowed.contains(m)), "{allowed}");
    }
    client.set_session(None);
    for response in [client.get_stream().await, client.delete().await] {
        assert_eq!((response.status, response.header("allow")), (405, "POST"));
    }
}

#[tokio::test]
async fn s6_2_accept_and_content_type_must_be_those_of_mcp() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    for (accept, status) in [
        ("text/html", 406),
        ("application/xml, image/*", 406),
        ("*/*", 200),
        ("application/json", 200),
        ("text/event-stream", 200),
        ("Application/JSON;q=0.9, text/event-stream", 200),
    ] {
        assert_eq!(client.post_with(PING, &[("accept", accept)]).await.status, status, "{accept}");
    }
    for (kind, status) in [("text/plain", 415), ("", 415), ("application/json; charset=utf-8", 200)]
    {
        assert_eq!(
            client.post_with(PING, &[("content-type", kind)]).await.status,
            status,
            "{kind}"
        );
    }
    let session = client.session().expect("a session");
    let json_only = [("mcp-session-id", session.as_str()), ("accept", "application/json")];
    assert_eq!(client.send("GET", &json_only, "").await.status, 406);
}

#[tokio::test]
async fn s6_2_a_body_must_be_a_message() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    for (body, code) in [
        ("", -32700),
        ("no json", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"#, -32700),
        ("7", -32700),
        ("[1,", -32700),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
    ] {
        assert_eq!(refusal(client.post(body).await, 400).await["code"], code, "{body}");
    }
    assert_eq!(client.post(PING).await.status, 200, "the session goes on");
}

#[tokio::test]
async fn s3_a_body_above_max_message_is_refused_and_one_below_is_not() {
    let peer = Peer::serve("server.max_message = \"64KiB\"\n", &[]);
    let client = peer.legacy().await;
    let text = "x".repeat(70_000);
    let error = refusal(client.start("echo", json!({"text": text})).await, 413).await;
    assert!(error["message"].as_str().is_some_and(|text| text.contains("max_message")), "{error}");
    let text = "x".repeat(60_000);
    assert_eq!(client.call("echo", json!({"text": text})).await.text(), text);
    assert_eq!(peer.calls_of("echo").len(), 1);
}

#[tokio::test]
async fn s1_3_a_bad_protocol_version_is_refused() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    for version in ["1999-01-01", "2025-11-26", "latest", ""] {
        let response = client.post_with(PING, &[("mcp-protocol-version", version)]).await;
        refusal(response, 400).await;
    }
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let response = client.post_with(PING, &[("mcp-protocol-version", version)]).await;
        assert_eq!(response.status, 200, "{version}");
    }
}

#[tokio::test]
async fn s2_mcp_is_at_its_path_alone() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    for (path, status) in [("/", 404), ("/mcpx", 404), ("/mcp/x", 404), ("/mcp?x=1", 200)] {
        let session = client.session().expect("a session");
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", session.as_str()),
        ];
        let response = client.try_send("POST", path, &headers, PING).await.expect("an answer");
        assert_eq!(response.status, status, "{path}");
    }
}
