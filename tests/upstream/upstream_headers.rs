//! What a server over HTTP is told in headers: what MCP asks for, what is configured, and nothing of
//! the client's (contract §1.1, §9, §10; protocol §6.2, §6.3).

use serde_json::json;
use support::http::header_tools;
use support::{Entry, HttpPeer, Peer, Setup, call_params};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

fn modern(setup: Setup) -> Peer {
    Peer::opened_modern(setup.flags(&["--strict"]))
}

/// All requests of HTTP that reached the server.
fn requests(peer: &Peer) -> Vec<Entry> {
    peer.journal().into_iter().filter(Entry::is_http).collect()
}

async fn deleted(peer: &Peer) -> Entry {
    peer.journal_wait(|entry| entry.http_method() == Some("DELETE")).await
}

#[tokio::test]
async fn s9_all_requests_of_a_session_carry_its_id_and_version() {
    let peer = Peer::opened(Setup::remote(&["--strict"])).await;
    peer.call("echo", json!({})).await;
    peer.journal_wait(|entry| entry.http_method() == Some("GET")).await;
    peer.close_stdin().await;
    deleted(&peer).await;
    let requests = requests(&peer);
    let (first, rest) = requests.split_first().expect("initialize");
    assert_eq!((first.header(SESSION), first.header(VERSION)), (None, None));
    let session = rest[0].header(SESSION).expect("a session");
    for entry in rest {
        assert_eq!(entry.header(SESSION), Some(session), "{}", entry.json);
        assert_eq!(entry.header(VERSION), Some("2025-11-25"), "{}", entry.json);
        assert_eq!(entry.header("mcp-method"), None, "that is of the modern era");
    }
}

#[tokio::test]
async fn s9_a_session_of_2025_03_26_says_no_version() {
    let peer = Setup::remote(&[]).spawn();
    peer.initialize_under("2025-03-26").await;
    peer.call("echo", json!({})).await;
    let call = &peer.calls_of("echo")[0];
    assert!(call.header(SESSION).is_some());
    assert_eq!(call.header(VERSION), None);
}

#[tokio::test]
async fn s9_a_server_without_sessions_is_told_of_none() {
    let peer = Peer::opened(Setup::remote(&["--no-sessions"])).await;
    peer.assert_works().await;
    peer.close_stdin().await;
    assert!(peer.exit().await.success());
    assert!(requests(&peer).iter().all(|entry| entry.header(SESSION).is_none()));
    assert!(requests(&peer).iter().all(|entry| entry.http_method() != Some("DELETE")));
}

#[tokio::test]
async fn s9_the_version_is_the_one_that_the_server_agreed_to() {
    let peer = Peer::opened(Setup::remote(&["--protocol", "2025-06-18"])).await;
    peer.call("echo", json!({})).await;
    assert_eq!(peer.calls_of("echo")[0].header(VERSION), Some("2025-06-18"));
}

#[tokio::test]
async fn s9_a_modern_request_says_in_headers_what_it_is() {
    let peer = modern(Setup::remote(&[]));
    peer.call("echo", json!({})).await;
    let call = &peer.calls_of("echo")[0];
    assert_eq!(call.header(VERSION), Some("2026-07-28"));
    assert_eq!(call.header("mcp-method"), Some("tools/call"));
    assert_eq!(call.header("mcp-name"), Some("echo"));
    peer.ask("resources/read", json!({"uri": "file:///größe"})).await;
    let read = peer.journal_method("resources/read").await;
    assert_eq!(read.header("mcp-name"), Some("=?base64?ZmlsZTovLy9ncsO2w59l?="));
    peer.close_stdin().await;
    assert!(peer.exit().await.success());
    let requests = requests(&peer);
    assert!(requests.iter().all(|entry| entry.header(SESSION).is_none()));
    assert!(requests.iter().all(|entry| entry.http_method() == Some("POST")), "POST only");
}

#[tokio::test]
async fn s9_names_that_no_header_can_hold_are_encoded() {
    let names = ["größe", " a ", "=?base64?YQ==?=", "a\nb", "🦀"];
    let tools: Vec<_> = names.iter().map(|name| json!({"name": name, "inputSchema": {}})).collect();
    for served in [false, true] {
        let setup = Setup::remote(&[]).tools(&json!(tools).to_string());
        let peer = modern(if served { setup.served() } else { setup });
        for name in names.iter().filter(|_| !served) {
            assert_eq!(peer.call(name, json!({"text": "hi"})).await.text(), "hi", "{name:?}");
        }
        for name in names.iter().filter(|_| served) {
            let answer = call_encoded(&peer.http().await, name).await;
            assert_eq!(answer, "hi", "{name:?}");
        }
    }
}

/// Calls a tool over HTTP, its name in base64.
async fn call_encoded(client: &HttpPeer, name: &str) -> String {
    use base64::Engine;
    client.become_modern("test-client", json!({}));
    let call = client.request("tools/call", call_params(name, json!({"text": "hi"})));
    let encoded = format!("=?base64?{}?=", base64::prelude::BASE64_STANDARD.encode(name));
    let headers = [("mcp-name", encoded.as_str())];
    client.post_without_name(&call, &headers).await.answer().await.text().to_owned()
}

// Configured headers.

#[tokio::test]
async fn s2_configured_headers_go_with_every_request() {
    let options = ["--header", "Authorization: Bearer ${SECRET}", "--header", "X-Team:a b"];
    let setup = Setup::remote(&[]).options(&options).env("SECRET", "s-1");
    let peer = Peer::opened(setup).await;
    peer.call("echo", json!({})).await;
    peer.journal_wait(|entry| entry.http_method() == Some("GET")).await;
    peer.close_stdin().await;
    deleted(&peer).await;
    for entry in requests(&peer) {
        assert_eq!(entry.header("authorization"), Some("Bearer s-1"), "{}", entry.json);
        assert_eq!(entry.header("x-team"), Some("a b"), "{}", entry.json);
    }
    assert!(!peer.stderr().contains("s-1"));
}

// The client's headers.

/// A client with headers of its own, legacy or modern.
async fn client_with_headers(peer: &Peer, modern: bool) -> HttpPeer {
    let client = peer.http().await.with_header("authorization", "Bearer C");
    let client = client.with_header("cookie", "c=1").with_header("x-tenant", "t-1");
    if modern {
        client.become_modern("test-client", json!({}));
    } else {
        client.initialize().await;
    }
    client
}

#[tokio::test]
async fn c22_nothing_of_the_clients_headers_reaches_the_server() {
    for modern in [false, true] {
        let setup = Setup::remote(&["--dual"]).served();
        let setup = setup.options(&["--log-level", "debug", "--answer-within", "300ms"]);
        let peer = setup.spawn();
        let client = client_with_headers(&peer, modern).await;
        let handle = client.call("wait_file", peer.gate("go")).await;
        peer.create("go");
        assert_eq!(client.finish(handle).await.text(), "go is open");
        for entry in requests(&peer) {
            let text = entry.json.to_string();
            assert!(!text.contains("Bearer") && !text.contains("c=1"), "{text}");
            assert!(!text.contains("t-1"), "{text}");
            let own = client.session();
            assert!(own.is_none() || entry.header(SESSION) != own.as_deref(), "{text}");
        }
        assert!(!peer.stderr().contains("Bearer C"), "{}", peer.stderr());
    }
}

#[tokio::test]
async fn s3_forwarded_headers_go_with_the_clients_own_requests() {
    let toml = "[upstream]\nforward_headers = [\"authorization\", \"x-tenant\"]";
    for modern in [false, true] {
        let peer = Setup::remote(&["--dual"]).served().config(toml).spawn();
        let client = client_with_headers(&peer, modern).await;
        client.call("echo", json!({})).await;
        let call = &peer.calls_of("echo")[0];
        assert_eq!(call.header("authorization"), Some("Bearer C"));
        assert_eq!(call.header("x-tenant"), Some("t-1"));
        assert_eq!(call.header("cookie"), None);
        let bare = peer.http().await;
        bare.initialize().await;
        bare.call("sleep", json!({})).await;
        assert_eq!(peer.calls_of("sleep")[0].header("x-tenant"), None, "each has its own");
    }
}

// Arguments in headers.

fn args() -> serde_json::Value {
    json!({"text": "größe", "count": -3, "exact": true, "where": {"region": "eu"}, "more": 1})
}

#[tokio::test]
async fn s1_1_param_headers_are_made_for_a_stdio_client() {
    let peer = modern(Setup::remote(&["--tools", header_tools()]));
    assert_eq!(peer.call("mirrored", args()).await.text(), "größe");
    let call = &peer.calls_of("mirrored")[0];
    assert_eq!(call.header("mcp-param-text"), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(call.header("mcp-param-count"), Some("-3"));
    assert_eq!(call.header("mcp-param-exact"), Some("true"));
    assert_eq!(call.header("mcp-param-region"), Some("eu"));
    let none = json!({"text": null});
    assert_eq!(peer.call("mirrored", none).await.text(), "slept", "what is null has no header");
    let headers = peer.calls_of("mirrored")[1].json["http"]["headers"].to_string();
    assert!(!headers.contains("mcp-param"), "{headers}");
    peer.call("plain", json!({"text": "a"})).await;
    let headers = peer.calls_of("plain")[0].json["http"]["headers"].to_string();
    assert!(!headers.contains("mcp-param"), "{headers}");
}

#[tokio::test]
async fn s1_1_param_headers_of_an_http_client_are_passed_on() {
    let peer = modern(Setup::remote(&["--tools", header_tools()]).served());
    let client = peer.http().await;
    client.become_modern("test-client", json!({}));
    let args = json!({"text": "hi", "count": 7});
    let call = client.request("tools/call", call_params("mirrored", args));
    let headers = [("mcp-param-text", "hi"), ("mcp-param-count", "7"), ("mcp-param-later", "x")];
    assert_eq!(client.post_with(&call, &headers).await.answer().await.text(), "hi");
    let received = &peer.calls_of("mirrored")[0];
    assert_eq!(received.header("mcp-param-text"), Some("hi"));
    assert_eq!(received.header("mcp-param-later"), Some("x"), "one that nobody knows, too");
    let wrong = [("mcp-param-text", "other"), ("mcp-param-count", "7")];
    let mut refusal = client.post_with(&call, &wrong).await;
    assert_eq!(refusal.status, 400, "the server checks them");
    assert_eq!(refusal.answer().await.error_code(), -32020);
}

/// A server that has changed its tools meanwhile refuses the headers that we know of.
#[tokio::test]
async fn s1_1_a_refusal_of_made_headers_reads_the_list_again_and_sends_the_call_once_more() {
    let list =
        |header: &str| std::fs::read_to_string(header_tools()).unwrap().replace("Count", header);
    let peer = modern(Setup::remote(&[]).tools(&list("Count")));
    assert_eq!(peer.call("mirrored", args()).await.text(), "größe");
    peer.change_tools(&list("Number"));
    peer.upstream().restart();
    let (lists, calls) = (peer.told("tools/list"), peer.calls_of("mirrored").len());
    assert_eq!(peer.call("mirrored", args()).await.text(), "größe");
    let sent = peer.calls_of("mirrored").split_off(calls);
    assert_eq!(sent.len(), 2, "the one that was refused, and the one with the new header");
    assert_eq!(sent[1].header("mcp-param-number"), Some("-3"));
    assert_eq!(sent[1].header("mcp-param-count"), None);
    assert_eq!(peer.told("tools/list"), lists + 1);
}

#[tokio::test]
async fn s1_1_a_server_that_refuses_again_is_believed() {
    let peer = modern(Setup::remote(&["--tools", header_tools()]));
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32020, "message": "no"}});
    let fault = json!({"on": "tools/call", "status": 400, "body": error.to_string()});
    peer.upstream().fault(fault).await;
    let refused = peer.call("mirrored", args()).await;
    assert_eq!(refused.error_code(), -32020);
    assert_eq!(peer.calls_of("mirrored").len(), 2);
}

#[tokio::test]
async fn s1_1_tools_with_an_invalid_param_header_are_hidden_over_stdio_only() {
    let peer = modern(Setup::remote(&["--tools", header_tools()]));
    assert_eq!(
        peer.ask("tools/list", json!({})).await.tool_names(),
        ["mirrored", "plain", "job_get", "job_cancel"]
    );
    let peer = modern(Setup::remote(&["--tools", header_tools()]).served());
    let list = peer.ask("tools/list", json!({})).await;
    let names = list.tool_names();
    assert_eq!(names.iter().filter(|name| name.starts_with("bad_")).count(), 8, "{names:?}");
}
