//! Messages whose JSON text stands on several lines, as over HTTP it may: on stdio each is one line,
//! and nothing but white space has changed (contract §1.1, C71).

use serde_json::json;
use support::json::{member, path};
use support::{FakeHttp, HttpPeer, Line, Peer, Setup, Transport};

/// Odd numbers, escapes and line ends in strings, on lines that end with LF, CR LF and CR.
const ODD: &str =
    "{\n  \"n\": [1.10, 1e400,\r\n  -0],\r\n\r\n  \"s\": \"\\u0041\\n\\r\\/\",\r \"a\": {}\n}";

/// The text without white space between its tokens.
fn tokens(text: &str) -> String {
    let mut in_string = false;
    let mut escaped = false;
    let is_token = |c: &char| {
        in_string ^= *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        in_string || !c.is_ascii_whitespace()
    };
    text.chars().filter(is_token).collect()
}

async fn opened(setup: Setup) -> (Peer, HttpPeer) {
    let peer = setup.served().spawn();
    let client = peer.http().await;
    client.initialize().await;
    (peer, client)
}

/// Posts a pretty-printed request and notification; what the server received of both.
async fn post_pretty(peer: &Peer, client: &HttpPeer) -> [String; 2] {
    let request = format!(
        "\r\n{{\n\"id\": 77,\r\n\"jsonrpc\": \"2.0\",\n\"method\": \"x/echo_params\",\n\"params\": {ODD}\r\n}}\n"
    );
    let note = format!(
        "{{\n\"jsonrpc\": \"2.0\",\r\n\"method\": \"notifications/x\",\n\"params\": {ODD}}}"
    );
    assert_eq!(client.post(&note).await.status, 202);
    let answer = client.post(&request).await.answer().await;
    assert_eq!(tokens(answer.raw_result()), tokens(ODD));
    let received =
        [peer.journal_method("x/echo_params").await, peer.journal_method("notifications/x").await];
    for entry in &received {
        assert_eq!(tokens(entry.raw_params().expect("params")), tokens(ODD));
    }
    received.map(|entry| entry.line)
}

#[tokio::test]
async fn c71_a_message_of_several_lines_is_one_line_for_a_child() {
    let (peer, client) = opened(Setup::proxied()).await;
    for line in post_pretty(&peer, &client).await {
        assert!(!line.contains(['\n', '\r']), "{line:?}");
    }
}

#[tokio::test]
async fn s1_1_a_message_of_several_lines_reaches_a_server_over_http() {
    let (peer, client) = opened(Setup::proxied().upstream(Transport::Http)).await;
    post_pretty(&peer, &client).await;
}

#[tokio::test]
async fn s1_1_a_large_message_of_several_lines_is_one_line_for_a_child() {
    let (peer, client) = opened(Setup::proxied()).await;
    let text = "x".repeat(100_000);
    let params = format!("{{\r\n\"name\": \"echo\",\n\"arguments\": {{\n\"text\":\n\"{text}\"}}}}");
    let call = format!(
        "{{\"jsonrpc\": \"2.0\", \"id\": 5,\n\"method\": \"tools/call\", \"params\": {params}}}"
    );
    assert_eq!(client.post(&call).await.answer().await.text(), text);
    assert!(!peer.calls_of("echo")[0].line.contains(['\n', '\r']));
}

/// What a server says in several lines, as an answer in a body or on a stream, or as a notification.
async fn says_pretty(flags: &[&str]) {
    let peer = Peer::opened(Setup::proxied().upstream(Transport::Http).flags(flags)).await;
    let note =
        format!("{{\"jsonrpc\": \"2.0\",\r\n\"method\": \"notifications/x\",\n\"params\": {ODD}}}");
    peer.script(json!([{"send": note}, {"result": "{}"}])).await;
    let came = peer.wait_method("notifications/x").await;
    assert_eq!(tokens(member(&came.text, "params").expect("params")), tokens(ODD));
    for large in [ODD.to_owned(), format!("{{\n\"x\":\r\n\"{}\"}}", "x".repeat(100_000))] {
        let answer = peer.call("raw", json!({"result": large})).await;
        assert_eq!(tokens(answer.raw_result()), tokens(&large));
    }
    let error = format!("{{\n\"code\": -7,\r\n\"message\": \"m\", \"data\": {ODD}}}");
    let answer = peer.call("raw", json!({"error": error})).await;
    assert_eq!(tokens(answer.raw_error()), tokens(&error));
    peer.lines().iter().for_each(Line::assert_protocol);
}

#[tokio::test]
async fn c71_events_of_several_lines_are_one_line_on_stdout() {
    says_pretty(&[]).await;
}

#[tokio::test]
async fn c71_a_body_of_several_lines_is_one_line_on_stdout() {
    says_pretty(&["--json"]).await;
}

#[tokio::test]
async fn c71_what_comes_over_http_sse_in_several_lines_is_one_line_on_stdout() {
    let peer = Peer::opened(Setup::proxied().upstream(Transport::Sse)).await;
    let answer = peer.call("raw", json!({"result": ODD})).await;
    assert_eq!(tokens(answer.raw_result()), tokens(ODD));
}

/// A result that is kept for a job is the same text, whatever white space it came with.
#[tokio::test]
async fn s5_1_a_result_of_several_lines_comes_from_its_job() {
    let peer = Peer::opened(Setup::proxied().upstream(Transport::Http).flags(&["--json"])).await;
    let result = format!("{{\n\"content\": [],\r\n\"x\": {ODD}\n}}");
    let handle = peer.defer("raw", json!({"ms": 400, "result": result})).await;
    let answer = peer.finish(handle).await;
    let x = path(answer.raw_result(), &["x"]).expect("all members are there");
    assert_eq!(tokens(x), tokens(ODD));
}

#[tokio::test]
async fn the_fake_server_writes_events_of_several_lines() {
    let server = FakeHttp::start(&[]);
    let client = server.client();
    client.initialize().await;
    let answer = client.call("raw", json!({"result": ODD})).await;
    assert_eq!(tokens(answer.raw_result()), tokens(ODD));
}
