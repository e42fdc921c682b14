//! 2026-07-28 on the sidecar's endpoint: what a request must say, and the status of what it is
//! answered with (protocol §6.3).

use serde_json::{Value, json};
use support::http::{Response, header_tools};
use support::{HttpPeer, MODERN, Peer};

async fn open(flags: &[&str]) -> (Peer, HttpPeer) {
    let peer = Peer::serve("", &[&["--dual"], flags].concat());
    let client = peer.modern().await;
    (peer, client)
}

async fn refused(mut response: Response, status: u16, code: i64) -> Value {
    let body = response.json().await;
    assert_eq!((response.status, &body["error"]["code"]), (status, &json!(code)), "{body}");
    body
}

fn echo(client: &HttpPeer) -> String {
    client.request("tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}))
}

#[tokio::test]
async fn s6_3_discover_and_calls_need_no_session_and_get_none() {
    let (_peer, client) = open(&[]).await;
    let mut response = client.open("server/discover", json!({})).await;
    assert_eq!((response.status, response.header("mcp-session-id")), (200, ""));
    assert_eq!(response.answer().await.result()["supportedVersions"], json!([MODERN]));
    let mut response = client.start("echo", json!({"text": "hi"})).await;
    assert_eq!((response.status, response.header("mcp-session-id")), (200, ""));
    assert_eq!(response.header("content-type"), "application/json");
    let answer = response.answer().await;
    assert_eq!((answer.text(), &answer.result()["resultType"]), ("hi", &json!("complete")));
}

#[tokio::test]
async fn s6_3_session_ids_and_event_ids_are_ignored() {
    let (peer, client) = open(&[]).await;
    let own = peer.legacy().await.session().expect("a session");
    for id in ["dead", own.as_str()] {
        let headers = [("mcp-session-id", id), ("last-event-id", "1-1")];
        let mut response = client.post_with(&echo(&client), &headers).await;
        assert_eq!((response.status, response.header("mcp-session-id")), (200, ""));
        assert_eq!(response.answer().await.text(), "hi");
    }
    for method in ["GET", "DELETE"] {
        let headers = [("mcp-protocol-version", MODERN), ("accept", "text/event-stream")];
        let response = client.send(method, &headers, "").await;
        assert_eq!((response.status, response.header("allow")), (405, "POST"));
    }
}

#[tokio::test]
async fn s6_3_notifications_are_accepted_and_responses_are_not() {
    let (_peer, client) = open(&[]).await;
    let headers = [("mcp-protocol-version", MODERN)];
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    assert_eq!(client.post_with(note, &headers).await.status, 202);
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(client.post_with(response, &headers).await.status, 400);
}

// What every request must carry.

fn with_meta(id: u64, meta: Value) -> String {
    let params = json!({"name": "echo", "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn s9_13_a_request_without_its_metadata_is_refused() {
    let (peer, client) = open(&[]).await;
    let headers =
        [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let version = json!({"io.modelcontextprotocol/protocolVersion": MODERN});
    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": {}});
    let no_object = json!({"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": 7});
    for (id, meta) in [json!({}), version, capabilities, no_object].into_iter().enumerate() {
        let message = with_meta(id as u64, meta);
        let body = refused(client.post_with(&message, &headers).await, 400, -32602).await;
        assert_eq!(body["id"], id, "the request is named");
        let text = body["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains("io.modelcontextprotocol/"), "{text}");
    }
    assert!(peer.calls_of("echo").is_empty());
}

#[tokio::test]
async fn s9_14_headers_must_say_what_the_body_says() {
    let (peer, client) = open(&[]).await;
    let without = |name: &'static str| (name, None);
    let with = |name: &'static str, value: &'static str| (name, Some(value));
    for (name, value) in [
        without("mcp-protocol-version"),
        with("mcp-protocol-version", "2025-11-25"),
        with("mcp-protocol-version", "2026-07-29"),
        without("mcp-method"),
        with("mcp-method", "tools/list"),
        with("mcp-method", "Tools/Call"),
        without("mcp-name"),
        with("mcp-name", "other"),
        with("mcp-name", "ECHO"),
        with("mcp-name", "=?base64?ZWNobw=?="),
        with("mcp-name", "=?base64?!!!!?="),
        with("mcp-name", "=?base64?b3RoZXI=?="),
        with("mcp-name", "=?BASE64?ZWNobw==?="),
    ] {
        let response = client.post_but(&echo(&client), name, value).await;
        let body = refused(response, 400, -32020).await;
        assert!(body["id"].is_number(), "the request is named: {body}");
    }
    assert!(peer.calls_of("echo").is_empty());
    for value in ["echo", "=?base64?ZWNobw==?="] {
        assert_eq!(client.post_with(&echo(&client), &[("mcp-name", value)]).await.status, 200);
    }
}

#[tokio::test]
async fn s6_3_names_of_prompts_resources_and_tasks_are_headers_too() {
    let (_peer, client) = open(&[]).await;
    for (method, params) in [
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "file:///x y"})),
        ("tasks/get", json!({"taskId": "t"})),
    ] {
        let message = client.request(method, params);
        refused(client.post_but(&message, "mcp-name", Some("x")).await, 400, -32020).await;
        refused(client.post_but(&message, "mcp-name", None).await, 400, -32020).await;
        let answered = client.post(&message).await;
        assert_ne!(answered.status, 400, "{method}");
    }
}

#[tokio::test]
async fn s6_3_names_outside_of_ascii_travel_in_base64() {
    let (peer, client) = open(&["--tools", header_tools()]).await;
    let message = client.request("tools/call", json!({"name": "größe"}));
    let response = client.post_but(&message, "mcp-name", Some("=?base64?Z3LDtsOfZQ==?=")).await;
    assert_eq!(response.status, 200, "the server says what it thinks of it");
    assert_eq!(peer.calls_of("größe").len(), 1);
}

#[tokio::test]
async fn s6_3_a_version_that_is_none_is_unsupported() {
    let (_peer, client) = open(&[]).await;
    for version in ["x", "9999", "2026-7-28"] {
        let message = echo(&client).replace(MODERN, version);
        let response = client.post_with(&message, &[("mcp-protocol-version", version)]).await;
        let body = refused(response, 400, -32022).await;
        assert_eq!(body["error"]["data"]["requested"], version);
        assert!(body["error"]["data"]["supported"].as_array().is_some_and(|list| !list.is_empty()));
    }
}

#[tokio::test]
async fn s6_3_ids_must_be_ids() {
    let (peer, client) = open(&[]).await;
    for id in ["null", "{}", "true"] {
        let message = echo(&client).replacen(r#""id":"#, &format!(r#""id":{id},"x":"#), 1);
        refused(client.post(&message).await, 400, -32600).await;
    }
    assert!(peer.calls_of("echo").is_empty());
}

// The status of errors.

#[tokio::test]
async fn s9_11_the_servers_errors_have_the_status_of_their_code() {
    let (_peer, client) = open(&[]).await;
    refused(client.open("x/none", json!({})).await, 404, -32601).await;
    for (code, status) in [
        (-32601, 404),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32602, 200),
        (-32603, 200),
        (-7, 200),
    ] {
        for ms in [0, 300] {
            let response = client.start("rpc_error", json!({"code": code, "ms": ms})).await;
            refused(response, status, code).await;
        }
    }
}

#[tokio::test]
async fn s6_3_a_legacy_child_says_that_it_knows_no_discover() {
    let peer = Peer::serve("", &[]);
    let client = peer.modern().await;
    refused(client.open("server/discover", json!({})).await, 404, -32601).await;
}

// Arguments that are headers.

fn mirrored(client: &HttpPeer, args: Value) -> String {
    client.request("tools/call", json!({"name": "mirrored", "arguments": args}))
}

#[tokio::test]
async fn s6_3_arguments_that_are_headers_are_checked_against_the_tools_schema() {
    let (peer, client) = open(&["--tools", header_tools()]).await;
    let args = json!({"text": "é", "count": 7, "exact": true, "where": {"region": "eu"}});
    let message = mirrored(&client, args);
    let good = [
        ("mcp-param-text", "=?base64?w6k=?="),
        ("mcp-param-count", "7"),
        ("mcp-param-exact", "true"),
        ("mcp-param-region", "eu"),
    ];
    assert_eq!(client.post_with(&message, &good).await.status, 200);
    assert_eq!(peer.calls_of("mirrored").len(), 1);
    for left_out in 0..good.len() {
        let mut headers = good.to_vec();
        headers.remove(left_out);
        refused(client.post_with(&message, &headers).await, 400, -32020).await;
    }
    for (name, wrong) in [
        ("mcp-param-text", "e"),
        ("mcp-param-text", "=?base64?w6k?="),
        ("mcp-param-count", "8"),
        ("mcp-param-exact", "True"),
        ("mcp-param-region", "EU"),
    ] {
        let headers = [&good[..], &[(name, wrong)]].concat();
        refused(client.post_with(&message, &headers).await, 400, -32020).await;
    }
    assert_eq!(peer.calls_of("mirrored").len(), 1, "nothing of it reached the server");
}

#[tokio::test]
async fn s6_3_integers_are_compared_as_numbers_and_headers_unknown_to_the_schema_pass() {
    let (_peer, client) = open(&["--tools", header_tools()]).await;
    let message = mirrored(&client, json!({"count": 7}));
    for (headers, status) in [
        (vec![("mcp-param-count", "7.0")], 200),
        (vec![("mcp-param-count", "7"), ("mcp-param-other", "x")], 200),
        (vec![("mcp-param-count", "7"), ("mcp-param-text", "x")], 400),
    ] {
        assert_eq!(client.post_with(&message, &headers).await.status, status, "{headers:?}");
    }
    let null = mirrored(&client, json!({"text": null}));
    assert_eq!(client.post(&null).await.status, 200);
    assert_eq!(client.post_with(&null, &[("mcp-param-text", "null")]).await.status, 400);
    let plain = client.request("tools/call", json!({"name": "plain", "arguments": {"text": "x"}}));
    assert_eq!(client.post_with(&plain, &[("mcp-param-text", "y")]).await.status, 200);
}

#[tokio::test]
async fn s1_3_a_legacy_call_needs_no_such_headers() {
    let (peer, _) = open(&["--tools", header_tools()]).await;
    let legacy = peer.legacy().await;
    assert_eq!(legacy.start("mirrored", json!({"text": "x"})).await.status, 200);
    let message = mirrored(&legacy, json!({"text": "x"}));
    assert_eq!(legacy.post_with(&message, &[("mcp-param-text", "y")]).await.status, 200);
}
