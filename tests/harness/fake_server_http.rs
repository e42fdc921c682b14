//! The fake server over HTTP does what it says, and so do the clients that talk to it.

use std::time::Duration;

use serde_json::{Value, json};
use support::http::{Event, Response, header_tools, url_in};
use support::{FakeHttp, HttpPeer, MODERN, Peer, Setup, Transport};

async fn opened(flags: &[&str]) -> (FakeHttp, HttpPeer) {
    let server = FakeHttp::start(flags);
    let client = server.client();
    client.initialize().await;
    (server, client)
}

fn modern(flags: &[&str]) -> (FakeHttp, HttpPeer) {
    let server = FakeHttp::start(flags);
    let client = server.client();
    client.become_modern("test-client", json!({}));
    (server, client)
}

/// A call that runs while the test does something else: until there is the file `go`.
fn until_go(server: &FakeHttp) -> Value {
    json!({"path": server.path("go"), "text": "gone"})
}

// Sessions.

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    let (server, client) = opened(&[]).await;
    assert!(client.session().is_some());
    client.assert_works().await;
    let call = &server.calls_of("echo")[0];
    assert_eq!(call.header("mcp-session-id"), client.session().as_deref());
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(client.delete().await.status, 200);
    assert_eq!(client.start("echo", json!({})).await.status, 404);
    client.set_session(None);
    assert_eq!(client.start("echo", json!({})).await.status, 400);
}

#[tokio::test]
async fn sessions_are_forgotten_on_demand() {
    let (server, client) = opened(&[]).await;
    server.forget_sessions().await;
    assert_eq!(client.start("echo", json!({})).await.status, 404);
    client.initialize().await;
    client.call("echo", json!({})).await;
}

#[tokio::test]
async fn a_server_may_have_no_sessions() {
    let (_server, client) = opened(&["--no-sessions"]).await;
    assert_eq!(client.session(), None);
    client.call("echo", json!({})).await;
}

#[tokio::test]
async fn clients_that_use_the_same_ids_each_get_their_own_answer() {
    let (server, first) = opened(&[]).await;
    let second = server.client();
    second.initialize().await;
    let (a, b) = tokio::join!(
        first.call("sleep", json!({"ms": 30, "text": "a"})),
        second.call("sleep", json!({"ms": 20, "text": "b"})),
    );
    assert_eq!((a.text(), b.text()), ("a", "b"));
    assert_eq!(a.raw_id(), b.raw_id());
}

// Messages: the ordinary peer over HTTP.

#[tokio::test]
async fn the_peer_of_the_tests_speaks_http_too() {
    let peer = Peer::opened(Setup::direct().served()).await;
    let meta = json!({"progressToken": "abc"});
    let answer = peer.call_with_meta("progress", json!({"steps": 2}), meta).await;
    assert_eq!((answer.text(), peer.notifications().len()), ("2 steps", 2));
    let id = peer.start("ask", json!({})).await;
    let question = peer.wait_method("elicitation/create").await;
    peer.respond(&question, "1.10").await;
    assert_eq!(peer.answer(&id).await.text(), "1.10");
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    peer.script(json!([{"send_apart": changed}, {"result": "{}"}])).await;
    peer.wait_method("notifications/tools/list_changed").await;
    assert_eq!(peer.call("big", json!({"bytes": 5_000_000})).await.text().len(), 5_000_000);
    assert_eq!(peer.call("rpc_error", json!({"code": -7})).await.error_code(), -7);
}

#[tokio::test]
async fn a_modern_peer_cancels_by_hanging_up() {
    let peer = Setup::direct().served().flags(&["--modern", "--strict"]).spawn();
    peer.become_modern("test-client", json!({}));
    let id = peer.start("sleep", json!({"ms": 60_000})).await;
    peer.arrived("sleep", 1).await;
    peer.cancel(&id, "the user").await;
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    assert_eq!(peer.told("notifications/cancelled"), 0);
    peer.assert_works().await;
}

#[tokio::test]
async fn a_peer_is_told_when_there_is_no_answer() {
    let peer = Peer::opened(Setup::direct().served()).await;
    assert!(peer.call("exit", json!({})).await.is_rpc_error());
    assert!(peer.call("echo", json!({})).await.is_rpc_error());
}

#[tokio::test]
async fn a_cancelled_call_ends_its_stream_without_an_answer() {
    let (server, client) = opened(&[]).await;
    let mut stream = client.start("sleep", json!({"ms": 60_000})).await;
    client.notify("notifications/cancelled", json!({"requestId": 2})).await;
    assert_eq!(stream.try_answer().await, None);
    server.journal_wait(|entry| entry.event == "call_ended").await;
}

#[tokio::test]
async fn a_batch_is_answered_on_one_stream_or_by_one_array() {
    let batch = r#"[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]"#;
    let (_server, client) = opened(&[]).await;
    let mut stream = client.post(batch).await;
    while stream.message().await.is_some() {}
    assert_eq!(stream.seen.len(), 2);
    let (_server, client) = opened(&["--json"]).await;
    assert_eq!(client.post(batch).await.json().await.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn answers_may_be_json_and_all_else_goes_to_the_get() {
    let (_server, client) = opened(&["--json", "--questions-apart"]).await;
    let mut apart = client.get_stream().await;
    let asked = async {
        let question = apart.until_method("elicitation/create").await;
        client.respond(&question, "2").await;
    };
    let (mut answer, ()) = tokio::join!(client.start("ask", json!({})), asked);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.answer().await.text(), "2");
}

// Streams that break off.

const POLLED: [&str; 3] = ["--event-ids", "--retry", "20"];

async fn opening(stream: &mut Response) -> Event {
    stream.event().await.expect("a first event")
}

#[tokio::test]
async fn a_stream_cut_in_the_middle_of_a_call_is_resumed() {
    let (server, client) = opened(&POLLED).await;
    for ending in ["end_stream", "close_stdout"] {
        let note = r#"{"jsonrpc":"2.0","method":"x/note"}"#;
        let steps = json!([{"send": note}, ending, {"send": note}, {"result": "7"}]);
        let mut stream = client.start("script", json!({"steps": steps})).await;
        let first = opening(&mut stream).await;
        assert_eq!((first.data.as_deref(), first.retry), (Some(""), Some(20)));
        assert_eq!(stream.try_answer().await, None);
        assert_eq!((stream.seen.len(), stream.was_cut), (1, ending == "close_stdout"));
        let last = stream.last_event_id.clone().expect("events have ids");
        let mut resumed = client.resume(&last).await;
        assert_eq!(resumed.answer().await.raw_result(), "7");
        assert_eq!(resumed.seen.len(), 2, "what was read is not sent again");
        assert_eq!(resumed.message().await, None);
    }
    assert_eq!(server.calls_of("script").len(), 2);
    assert_eq!(client.resume("99-1").await.status, 400);
}

#[tokio::test]
async fn every_stream_may_be_cut_after_a_time() {
    let (_server, client) = opened(&["--event-ids", "--cut-after", "50"]).await;
    let mut stream = client.start("sleep", json!({"ms": 120})).await;
    let mut connections = 1;
    let answer = loop {
        if let Some(answer) = stream.try_answer().await {
            break answer;
        }
        let last = stream.last_event_id.expect("events have ids");
        stream = client.resume(&last).await;
        stream.last_event_id = Some(last);
        connections += 1;
    };
    assert_eq!(answer.text(), "slept");
    assert!(connections > 1);
}

#[tokio::test]
async fn a_stream_cut_without_ids_is_lost() {
    let (server, client) = opened(&["--dual"]).await;
    for _ in ["legacy", "modern"] {
        let mut stream = client.start("wait_file", until_go(&server)).await;
        server.cut_streams().await;
        assert_eq!(stream.event().await, None);
        assert!(stream.was_cut);
        client.become_modern("test-client", json!({}));
    }
}

#[tokio::test]
async fn a_script_writes_comments_and_whatever_else_into_the_stream() {
    let (_server, client) = opened(&[]).await;
    let steps = json!([{"write": ": alive\n\nretry: 7\n\n"}, {"result": "{}"}]);
    let mut stream = client.start("script", json!({"steps": steps})).await;
    assert_eq!(opening(&mut stream).await.comment.as_deref(), Some("alive"));
    assert_eq!(opening(&mut stream).await.retry, Some(7));
}

// Clients that hang up.

#[tokio::test]
async fn a_legacy_call_survives_its_client_and_a_modern_one_does_not() {
    let (server, client) = opened(&["--dual"]).await;
    drop(client.start("wait_file", until_go(&server)).await);
    server.journal_wait(|entry| entry.event == "disconnect").await;
    client.become_modern("test-client", json!({}));
    drop(client.start("sleep", json!({"ms": 60_000})).await);
    server.journal_wait(|e| e.event == "call_ended" && e.json["tool"] == "sleep").await;
    server.create("go");
    server.journal_wait(|e| e.event == "call_ended" && e.json["tool"] == "wait_file").await;
}

#[tokio::test]
async fn a_client_hangs_up_before_an_answer_begins() {
    let (server, client) = opened(&["--late-headers"]).await;
    let call = client.call("wait_file", until_go(&server));
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    let gone = server.journal_wait(|entry| entry.event == "disconnect").await;
    assert_eq!(gone.json["method"], "tools/call");
}

// The modern era.

#[tokio::test]
async fn a_modern_request_needs_no_session() {
    let (server, client) = modern(&["--modern", "--strict"]);
    let discovered = client.ask("server/discover", json!({})).await;
    assert_eq!(discovered.result()["supportedVersions"], json!([MODERN]));
    let mut answer = client.start("echo", json!({"text": "hi"})).await;
    assert_eq!(answer.header("mcp-session-id"), "");
    assert_eq!(answer.answer().await.text(), "hi");
    let call = &server.calls_of("echo")[0];
    assert_eq!(
        (call.header("mcp-method"), call.header("mcp-name")),
        (Some("tools/call"), Some("echo"))
    );
    assert_eq!(client.get_stream().await.status, 405);
}

#[tokio::test]
async fn modern_errors_have_their_status() {
    let (server, client) = modern(&["--modern"]);
    let mut unknown = client.open("x/none", json!({})).await;
    assert_eq!((unknown.status, unknown.answer().await.error_code()), (404, -32601));
    let mut refused = server.client().open("initialize", json!({})).await;
    assert_eq!((refused.status, refused.answer().await.error_code()), (400, -32022));
}

#[tokio::test]
async fn subscriptions_hear_what_belongs_to_no_call() {
    let (_server, client) = modern(&["--dual"]);
    let mut stream = client.open("subscriptions/listen", json!({"notifications": {}})).await;
    stream.until_method("notifications/subscriptions/acknowledged").await;
    let note = json!({"jsonrpc": "2.0", "method": "x/note", "params": {"id": "$SUBSCRIPTION"}});
    let steps = json!([{"send_apart": note.to_string()}, {"result": "{}"}]);
    client.call("script", json!({"steps": steps})).await;
    assert_eq!(stream.until_method("x/note").await.json()["params"]["id"], "1");
}

#[tokio::test]
async fn a_strict_server_wants_headers_that_say_what_the_body_says() {
    let (_server, client) = modern(&["--dual", "--strict"]);
    let call = client.request("tools/call", json!({"name": "echo"}));
    for (header, status) in [
        (("mcp-name", "=?base64?ZWNobw==?="), 200),
        (("mcp-name", "other"), 400),
        (("mcp-method", "ping"), 400),
        (("mcp-protocol-version", "1999-01-01"), 400),
        (("accept", "application/json"), 406),
        (("content-type", "text/plain"), 415),
    ] {
        assert_eq!(client.post_with(&call, &[header]).await.status, status, "{header:?}");
    }
    let legacy = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let mut refused = client.post_with(&legacy, &[("mcp-protocol-version", MODERN)]).await;
    assert_eq!((refused.status, refused.answer().await.error_code()), (400, -32602));
}

#[tokio::test]
async fn a_strict_server_wants_the_arguments_that_are_mirrored() {
    let (_server, client) = modern(&["--dual", "--strict", "--tools", header_tools()]);
    let args = json!({"text": "é", "count": 7, "exact": true, "where": {"region": "eu"}});
    let call = client.request("tools/call", json!({"name": "mirrored", "arguments": args}));
    let headers = [
        ("mcp-param-text", "=?base64?w6k=?="),
        ("mcp-param-count", "7"),
        ("mcp-param-exact", "true"),
        ("mcp-param-region", "eu"),
    ];
    assert_eq!(client.post_with(&call, &headers).await.status, 200);
    let mut refused = client.post_with(&call, &headers[..3]).await;
    assert_eq!((refused.status, refused.answer().await.error_code()), (400, -32020));
    let call = client.request("tools/call", json!({"name": "mirrored"}));
    assert_eq!(client.post(&call).await.status, 200);
    assert_eq!(client.post_with(&call, &headers[..1]).await.status, 400);
}

// Faults.

#[tokio::test]
async fn faults_take_the_place_of_answers() {
    let (server, client) = opened(&["--fault", r#"{"on": "GET", "status": 405}"#]).await;
    assert_eq!(client.get_stream().await.status, 405);
    let html = json!({"content-type": "text/html"});
    let body = "<html>Bad gateway</html>";
    let fault =
        json!({"on": "tools/call", "times": 1, "status": 502, "headers": html, "body": body});
    server.fault(fault).await;
    let mut bad = client.start("echo", json!({})).await;
    assert_eq!((bad.status, bad.header("content-type")), (502, "text/html"));
    assert_eq!(bad.text().await, body);
    client.call("echo", json!({})).await;
}

#[tokio::test]
async fn faults_delay_and_drop_answers_and_never_end_their_headers() {
    let (server, client) = opened(&[]).await;
    server.fault(json!({"on": "x/echo_params", "times": 1, "delay_ms": 50})).await;
    let start = std::time::Instant::now();
    client.ask("x/echo_params", json!({})).await;
    assert!(start.elapsed() >= Duration::from_millis(50));
    for fault in [
        json!({"on": "*", "times": 1, "drop": true}),
        json!({"on": "/mcp", "times": 1, "endless_headers": true}),
    ] {
        server.fault(fault).await;
        assert!(client.try_send("POST", "/mcp", &[], "{}").await.is_err());
    }
}

#[tokio::test]
async fn a_token_is_asked_for() {
    let server = FakeHttp::start(&["--token", "T"]);
    let mut refused = server.client().open("initialize", json!({})).await;
    assert_eq!(refused.status, 401);
    let place = refused.header("www-authenticate").to_owned();
    let path = "/.well-known/oauth-protected-resource";
    assert!(place.starts_with("Bearer resource_metadata=") && place.contains(path), "{place}");
    let metadata = server.client().try_send("GET", path, &[], "").await;
    let metadata = metadata.expect("an answer").json().await;
    assert_eq!(metadata["resource"], server.url());
    server.client().with_header("Authorization", "Bearer T").initialize().await;
    assert_eq!(refused.text().await, "");
}

#[tokio::test]
async fn a_server_dies_in_the_middle_of_a_call_and_comes_back_where_it_was() {
    let (server, client) = opened(&[]).await;
    let mut stream = client.start("exit", json!({"ms": 20, "code": 3})).await;
    assert_eq!(stream.event().await, None);
    let (pid, url) = (server.pid(), server.url());
    server.restart();
    assert_eq!((server.url(), server.pid() == pid), (url, false));
    assert_eq!(client.start("echo", json!({})).await.status, 404, "it knows no session of before");
    client.initialize().await;
}

#[tokio::test]
async fn a_blocked_server_serves_nobody_else() {
    let (server, client) = opened(&["--block"]).await;
    let call = client.start("wait_file", until_go(&server));
    let ping = async {
        server.journal_wait(|entry| entry.is_call_of("wait_file")).await;
        let ping = client.ask("ping", json!({}));
        tokio::pin!(ping);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut ping).await.is_err());
        server.create("go");
        ping.await
    };
    tokio::join!(call, ping);
}

// HTTP+SSE.

#[tokio::test]
async fn the_old_transport_answers_all_on_one_stream() {
    let server = FakeHttp::over(Transport::Sse, &[]);
    let client = server.client();
    assert_eq!(client.post("{}").await.status, 405);
    let mut stream = client.get_stream().await;
    let endpoint = opening(&mut stream).await;
    assert_eq!(endpoint.name.as_deref(), Some("endpoint"));
    let path = endpoint.data.expect("where to post");
    let post = async |message: String| {
        client.try_send("POST", &path, &[], &message).await.expect("an answer").status
    };
    assert_eq!(post(client.request("initialize", json!({}))).await, 202);
    assert_eq!(stream.answer().await.result()["serverInfo"]["name"], "fake-server");
    let call =
        json!({"name": "progress", "arguments": {"steps": 2}, "_meta": {"progressToken": 1}});
    assert_eq!(post(client.request("tools/call", call)).await, 202);
    assert_eq!(stream.answer().await.text(), "2 steps");
    assert_eq!(stream.seen.len(), 4);
    let gone = client.try_send("POST", "/messages?session=x", &[], "{}").await;
    assert_eq!(gone.expect("an answer").status, 404);
    drop(stream);
    server.journal_wait(|entry| entry.event == "disconnect").await;
}

// The harness.

#[test]
fn a_url_is_read_from_any_log() {
    for line in [
        "listening on http://127.0.0.1:4/mcp\n",
        "INFO listening on http://127.0.0.1:4/mcp\u{1b}[0m upstream=http://127.0.0.1:5/mcp",
        r#"{"message":"listening on http://127.0.0.1:4/mcp","level":"INFO"}"#,
    ] {
        assert_eq!(url_in(line).as_deref(), Some("http://127.0.0.1:4/mcp"));
    }
    assert_eq!(url_in("the upstream is http://127.0.0.1:5/mcp"), None);
}
