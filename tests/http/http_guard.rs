//! Who is let in at all: `Host`, `Origin`, the sidecar's token (contract §10).

use serde_json::{Value, json};
use support::http::Response;
use support::{HttpPeer, Peer, Setup};

const SECRET: &str = "s3cr3t-T0ken-of-the-sidecar";
const CALLERS: &str = "c4llers-0wn-T0ken";
const ARGUMENT: &str = "4rgument-of-a-c4ll";

fn opening(client: &HttpPeer) -> String {
    let info = json!({"name": "test-client", "version": "1"});
    client.request(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}),
    )
}

/// `initialize` with these headers besides the usual ones.
async fn knock(client: &HttpPeer, headers: &[(&str, &str)]) -> Response {
    client.post_with(&opening(client), headers).await
}

async fn forbidden(mut response: Response, key: &str) {
    let body: Value = response.json().await;
    assert_eq!(response.status, 403, "{body}");
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(key), "{body}");
}

// Host and Origin.

#[tokio::test]
async fn s10_a_foreign_host_is_refused_and_the_key_is_named() {
    let peer = Peer::serve("", &[]);
    let client = peer.http().await;
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", ""] {
        forbidden(knock(&client, &[("host", host)]).await, "allowed_hosts").await;
    }
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:5", "[::1]"] {
        assert_eq!(knock(&client, &[("host", host)]).await.status, 200, "{host}");
    }
}

/// The status of a POST with these lines in its head besides the usual ones.
async fn status_with(client: &HttpPeer, lines: &str, body: &str) -> u16 {
    let mut raw = client.raw().await;
    let length = body.len();
    let head = client.raw_head();
    raw.write(format!("{head}{lines}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await;
    raw.status().await
}

/// Behind a proxy that adds its own header to a client's, the first of two would be the client's.
#[tokio::test]
async fn k20_who_says_twice_who_he_is_is_refused() {
    let peer = Peer::serve("server.identity_header = \"X-User\"\n", &["--dual"]);
    let victim = peer.http().await.with_header("x-user", "victim");
    victim.become_modern("test-client", json!({}));
    victim.park("go").await;
    let client = peer.http().await;
    let list = victim.request("tools/call", json!({"name": "job_get", "arguments": {}}));
    let modern =
        "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: job_get\r\n";
    for (twice, status) in [
        ("X-User: victim\r\n", 200),
        ("X-User: victim\r\nX-User: mallory\r\n", 400),
        ("X-User: victim\r\nx-uSER: victim\r\n", 400),
        ("X-User: victim\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n", 400),
        ("Host: localhost\r\n", 400),
    ] {
        let lines = format!("{modern}{twice}");
        assert_eq!(status_with(&client, &lines, &list).await, status, "{twice}");
    }
}

#[tokio::test]
async fn k20_a_token_that_stands_twice_is_refused() {
    let peer = Peer::serve(&format!("server.token = \"{SECRET}\"\n"), &[]);
    let client = peer.http().await;
    let (good, bad) = (format!("Authorization: Bearer {SECRET}\r\n"), "Authorization: x\r\n");
    let opening = opening(&client);
    assert_eq!(status_with(&client, &good, &opening).await, 200);
    for twice in [format!("{good}{bad}"), format!("{bad}{good}"), format!("{good}{good}")] {
        assert_eq!(status_with(&client, &twice, &opening).await, 400);
    }
    assert_eq!(peer.received("initialize").len(), 1);
}

#[tokio::test]
async fn k20_a_host_with_a_user_is_refused() {
    let peer = Peer::serve("server.allowed_hosts = [\"localhost\", \"*\"]\n", &[]);
    let client = peer.http().await;
    for host in ["evil@localhost", "a:b@localhost:80", "127.0.0.1@evil.example", "@localhost"] {
        assert_eq!(knock(&client, &[("host", host)]).await.status, 400, "{host}");
    }
    assert_eq!(knock(&client, &[("host", "localhost:80")]).await.status, 200);
}

#[tokio::test]
async fn s10_hosts_may_be_let_in() {
    let peer = Peer::serve("server.allowed_hosts = [\"mcp.example\"]\n", &[]);
    let client = peer.http().await.with_header("host", "mcp.example");
    assert_eq!(knock(&client, &[]).await.status, 200);
    let client = peer.http().await.with_header("host", "localhost");
    forbidden(knock(&client, &[]).await, "allowed_hosts").await;
}

#[tokio::test]
async fn s10_a_host_is_let_in_at_any_port_or_at_the_one_that_is_named() {
    let toml = "server.allowed_hosts = [\"any.example\", \"one.example:8443\"]\n";
    let peer = Peer::serve(toml, &[]);
    let client = peer.http().await;
    for host in ["any.example", "any.example:1", "ANY.example:8443", "one.example:8443"] {
        assert_eq!(knock(&client, &[("host", host)]).await.status, 200, "{host}");
    }
    for host in ["one.example", "one.example:1", "one.example:84430", "not.any.example"] {
        forbidden(knock(&client, &[("host", host)]).await, "allowed_hosts").await;
    }
}

/// A page that made its own name point here (DNS rebinding) sends that name as both.
#[tokio::test]
async fn s10_where_every_host_is_let_in_an_origin_of_that_name_is_no_own_one() {
    for hosts in ["\"*\"", "\"localhost\", \"*\""] {
        let toml = format!(
            "server.allowed_hosts = [{hosts}]\nserver.allowed_origins = [\"http://app.example\"]\n"
        );
        let peer = Peer::serve(&toml, &[]);
        let client = peer.http().await;
        for host in ["evil.example", "evil.example:8808"] {
            let origin = format!("http://{host}");
            let rebound = [("host", host), ("origin", origin.as_str())];
            forbidden(knock(&client, &rebound).await, "allowed_origins").await;
            assert_eq!(knock(&client, &[("host", host)]).await.status, 200, "{host}");
            let named = [("host", host), ("origin", "http://app.example")];
            assert_eq!(knock(&client, &named).await.status, 200, "{host}");
        }
    }
}

#[tokio::test]
async fn s10_a_foreign_origin_is_refused_and_the_key_is_named() {
    let peer = Peer::serve("", &["--dual"]);
    let client = peer.http().await;
    for origin in
        ["http://evil.example", "null", "", "http://127.0.0.1", "file://", "http://localhost:1"]
    {
        forbidden(knock(&client, &[("origin", origin)]).await, "allowed_origins").await;
    }
    let modern = peer.modern().await;
    let message = modern.request("tools/list", json!({}));
    forbidden(modern.post_with(&message, &[("origin", "http://evil.example")]).await, "origins")
        .await;
    for method in ["GET", "DELETE", "OPTIONS", "PUT"] {
        let response = client.send(method, &[("origin", "http://evil.example")], "").await;
        assert_eq!(response.header("access-control-allow-origin"), "");
        forbidden(response, "allowed_origins").await;
    }
    assert!(peer.started().is_empty(), "nothing of it reached a server");
}

#[tokio::test]
async fn s10_our_own_origin_and_allowed_ones_are_let_in() {
    let peer = Peer::serve("server.allowed_origins = [\"https://app.example\"]\n", &[]);
    let client = peer.http().await;
    let own = format!("http://{}", client.authority());
    for origin in [own.as_str(), "https://app.example"] {
        let response = knock(&client, &[("origin", origin)]).await;
        assert_eq!(response.status, 200, "{origin}");
        assert_eq!(response.header("access-control-allow-origin"), origin);
        assert!(response.header("access-control-expose-headers").contains("Mcp-Session-Id"));
        assert!(response.header("vary").to_lowercase().contains("origin"));
    }
    for origin in ["https://app.example:8443", "http://app.example", "https://app.example.evil"] {
        forbidden(knock(&client, &[("origin", origin)]).await, "allowed_origins").await;
    }
}

async fn preflight(client: &HttpPeer, origin: &str) -> Response {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "authorization, content-type, mcp-session-id, mcp-param-x",
        ),
    ];
    client.send("OPTIONS", &headers, "").await
}

#[tokio::test]
async fn s10_a_browser_may_ask_beforehand() {
    let toml = "server.allowed_origins = [\"https://app.example\"]\n";
    // A browser sends no token along with this question.
    for toml in [toml.to_owned(), format!("{toml}server.token = \"{SECRET}\"\n")] {
        let peer = Peer::serve(&toml, &[]);
        let client = peer.http().await;
        let response = preflight(&client, "https://app.example").await;
        assert_eq!(response.status, 204, "{toml}");
        assert_eq!(response.header("access-control-allow-origin"), "https://app.example");
        let methods = response.header("access-control-allow-methods");
        assert!(["POST", "GET", "DELETE"].iter().all(|method| methods.contains(method)));
        let headers = response.header("access-control-allow-headers").to_lowercase();
        assert!(headers.contains('*') && headers.contains("authorization"), "{headers}");
        forbidden(preflight(&client, "https://evil.example").await, "allowed_origins").await;
    }
}

// The token.

#[tokio::test]
async fn s10_a_missing_or_wrong_token_is_401() {
    let peer = Peer::serve(&format!("server.token = \"{SECRET}\"\n"), &["--dual"]);
    let client = peer.http().await;
    let longer = format!("Bearer {SECRET}x");
    let shorter = format!("Bearer {}", &SECRET[1..]);
    let basic = format!("Basic {SECRET}");
    for value in ["", "Bearer", "Bearer ", "Bearer x", SECRET, &longer, &shorter, &basic] {
        let mut response = knock(&client, &[("authorization", value)]).await;
        assert_eq!(response.status, 401, "{value}");
        assert!(response.header("www-authenticate").starts_with("Bearer"));
        assert!(!response.text().await.contains(SECRET));
    }
    let modern = peer.modern().await;
    for response in [
        knock(&client, &[]).await,
        modern.open("tools/list", json!({})).await,
        client.get_stream().await,
        client.delete().await,
    ] {
        assert_eq!(response.status, 401);
    }
    assert!(peer.started().is_empty());
    for value in [format!("Bearer {SECRET}"), format!("bearer {SECRET}")] {
        assert_eq!(knock(&client, &[("authorization", &value)]).await.status, 200);
    }
}

#[tokio::test]
async fn s10_a_page_that_was_let_in_can_read_that_its_token_is_wrong() {
    let toml = format!(
        "server.allowed_origins = [\"https://app.example\"]\nserver.token = \"{SECRET}\"\n"
    );
    let peer = Peer::serve(&toml, &[]);
    let response = knock(&peer.http().await, &[("origin", "https://app.example")]).await;
    assert_eq!(response.status, 401);
    assert_eq!(response.header("access-control-allow-origin"), "https://app.example");
}

// What the server and the log get to see.

async fn say_all(peer: &Peer, token: &str) {
    let client = peer.legacy_as(token).await;
    client.call("echo", json!({"text": ARGUMENT})).await;
    let handle = client.defer("sleep", json!({"ms": 400, "text": ARGUMENT})).await;
    assert!(!handle.raw.contains(token), "no handle has it: {}", handle.raw);
    client.finish(handle).await;
    peer.modern_as(token).await.call("echo", json!({"text": ARGUMENT})).await;
    peer.known_as("wr0ng-0ne").await.start("echo", json!({})).await;
    client.delete().await;
}

fn logged(level: &str, toml: &str) -> Peer {
    Setup::proxied()
        .served()
        .options(&["--log-level", level])
        .config(toml)
        .flags(&["--dual"])
        .spawn()
}

#[tokio::test]
async fn c22_no_token_is_in_the_log_nor_reaches_the_server() {
    for level in ["info", "debug"] {
        let peer = logged(level, "");
        say_all(&peer, CALLERS).await;
        let peer_with_token = logged(level, &format!("server.token = \"{SECRET}\"\n"));
        say_all(&peer_with_token, SECRET).await;
        for (peer, token) in [(peer, CALLERS), (peer_with_token, SECRET)] {
            let (log, journal) = (peer.stderr(), std::fs::read_to_string(peer.path("journal")));
            assert!(!log.contains(token) && !log.contains("wr0ng-0ne"), "{level}: {log}");
            assert!(!journal.expect("a journal").contains(token));
            assert!(level == "debug" || !log.contains(ARGUMENT), "arguments: {log}");
        }
    }
}

#[tokio::test]
async fn s10_job_ids_are_logged_by_their_first_8_characters() {
    let peer = logged("debug", "");
    let client = peer.legacy_as("a").await;
    let handle = client.defer("sleep", json!({"ms": 300})).await;
    let id = handle.job_id().to_owned();
    client.finish(handle).await;
    let log = peer.stderr();
    assert!(log.contains(&id[..8]) && !log.contains(&id), "{log}");
}

// Bound to the outside.

#[tokio::test]
async fn s10_a_listener_for_everybody_without_a_token_is_warned_of() {
    let setup = || Setup::proxied().listening_on("0.0.0.0:0");
    let is_warning = |line: &str| line.contains("WARN") && line.contains("server.token");
    let peer = setup().spawn();
    peer.wait_stderr(is_warning).await;
    let guarded = setup().config(&format!("server.token = \"{SECRET}\"\n")).spawn();
    // It is warned of before the first request is answered.
    assert_eq!(guarded.http().await.send("GET", &[], "").await.status, 403);
    assert!(!guarded.stderr().lines().any(is_warning));
    let local = Peer::serve("", &[]);
    local.legacy().await;
    assert!(!local.stderr().lines().any(is_warning));
}
