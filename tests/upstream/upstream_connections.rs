//! The way to a server over HTTP: TLS with the system's roots, and the proxies that the environment
//! names (issue "HTTP on both sides").

use serde_json::json;
use support::cli::Run;
use support::http::{TlsFront, WebProxy};
use support::{FakeHttp, HttpPeer, Peer, Setup, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

/// A name that no resolver knows: whoever gets to this server got there by a proxy.
const NAME: &str = "mcp.test.invalid";
const PASSWORD: &str = "hunter2";

fn authority(server: &FakeHttp) -> String {
    HttpPeer::at(&server.url()).authority().to_owned()
}

/// The path at which the fake server is.
fn path(server: &FakeHttp) -> String {
    server.url().split_once(&authority(server)).expect("a URL has its authority").1.to_owned()
}

async fn secured(server: &FakeHttp, name: &str) -> TlsFront {
    TlsFront::start(&authority(server), name).await
}

/// The proxy with its server at this URL; it trusts the certificate of the front, and nobody else.
fn trusting(front: &TlsFront, url: &str) -> Setup {
    let root = front.root();
    Setup::proxied().at(url).env("SSL_CERT_FILE", root.to_str().expect("a path in UTF-8"))
}

/// Fast, long and slow calls, and a job.
async fn works(peer: &Peer) {
    peer.initialize().await;
    peer.assert_works().await;
    let big = peer.call("big", json!({"bytes": 5_000_000})).await;
    assert_eq!(big.text().len(), 5_000_000);
    let job = peer.defer("sleep", json!({"ms": 1000, "text": "done"})).await;
    assert_eq!(peer.finish(job).await.text(), "done");
}

/// The refusal of the first request.
async fn refused(setup: Setup) -> String {
    let peer = setup.spawn();
    let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let refused = peer.ask("initialize", initialize).await;
    refused.error()["message"].as_str().expect("a message").to_owned()
}

// TLS.

#[tokio::test]
async fn https_is_trusted_by_the_roots_of_the_system() {
    for (transport, flags) in [
        (Transport::Http, &["--strict"][..]),
        (Transport::Http, &["--event-ids", "--retry", "10"]),
        (Transport::Sse, &[]),
    ] {
        let server = FakeHttp::over(transport, flags);
        let front = secured(&server, "localhost").await;
        let url = format!("https://localhost:{}{}", front.port(), path(&server));
        works(&trusting(&front, &url).spawn()).await;
    }
}

#[tokio::test]
async fn https_to_https_by_the_sidecar_and_check() {
    let server = FakeHttp::start(&["--dual"]);
    let front = secured(&server, "localhost").await;
    let url = format!("https://localhost:{}/mcp", front.port());
    works(&trusting(&front, &url).served().spawn()).await;
    let root = front.root();
    let check = Run::new(&["check", &url]).env("SSL_CERT_FILE", root.to_str().unwrap());
    let ran = tokio::task::spawn_blocking(move || check.go()).await.unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = FakeHttp::start(&[]);
    let (front, other) = (secured(&server, "localhost").await, secured(&server, "localhost").await);
    let url = format!("https://localhost:{}/mcp", front.port());
    let cause = refused(trusting(&other, &url)).await;
    assert!(cause.contains("can't be reached") && cause.contains("certificate"), "{cause}");
    assert!(server.journal().iter().all(|entry| !entry.is_http()), "nothing was sent");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let server = FakeHttp::start(&[]);
    let front = secured(&server, "elsewhere").await;
    let url = format!("https://localhost:{}/mcp", front.port());
    let cause = refused(trusting(&front, &url)).await;
    assert!(cause.contains("not valid for name \"localhost\""), "{cause}");
    assert!(cause.contains("elsewhere"), "it says what it is valid for: {cause}");
}

#[tokio::test]
async fn a_server_without_tls_at_an_https_url_is_an_error_that_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let cause = refused(Setup::proxied().at(&url)).await;
    assert!(cause.contains("can't be reached: it does not speak TLS"), "{cause}");
    server.await.unwrap();
}

// Proxies by environment.

#[tokio::test]
async fn http_by_a_proxy_asks_it_for_whole_urls() {
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let server = FakeHttp::start(&[]);
        let proxy = WebProxy::to(&authority(&server)).await;
        let url = format!("http://{NAME}:8080/mcp");
        let by = format!("http://user:{PASSWORD}@{}", proxy.authority());
        works(&Setup::proxied().at(&url).env(variable, &by).spawn()).await;
        let heads = proxy.heads();
        let posted = format!("POST {url} HTTP/1.1\r\n");
        // base64 of user:hunter2
        let authorized = "proxy-authorization: Basic dXNlcjpodW50ZXIy\r\n";
        for head in heads.iter().filter(|head| head.starts_with("POST")) {
            assert!(head.starts_with(&posted), "{variable}: {head}");
            assert!(head.contains(authorized), "{head}");
            assert!(head.contains(&format!("host: {NAME}:8080\r\n")), "{head}");
        }
        assert!(heads.iter().any(|head| head.starts_with("POST")), "{heads:?}");
    }
}

/// What clients ask beside the endpoint goes the same way.
#[tokio::test]
async fn documents_of_a_server_behind_a_proxy_are_asked_of_it_too() {
    let server = FakeHttp::start(&["--token", "good"]);
    let proxy = WebProxy::to(&authority(&server)).await;
    let by = format!("http://user:{PASSWORD}@{}", proxy.authority());
    let setup = Setup::proxied().at(&format!("http://{NAME}:8080/mcp")).env("HTTP_PROXY", &by);
    let peer = setup.served().config("upstream.forward_headers = [\"authorization\"]").spawn();
    let document = "/.well-known/oauth-protected-resource";
    let response = peer.http().await.try_send("GET", document, &[], "").await.unwrap();
    assert_eq!(response.status, 200);
    let heads = proxy.heads();
    let asked =
        heads.iter().find(|head| head.starts_with(&format!("GET http://{NAME}:8080{document}")));
    assert!(asked.is_some_and(|head| head.contains("proxy-authorization: Basic")), "{heads:?}");
}

#[tokio::test]
async fn https_by_a_proxy_goes_through_a_tunnel() {
    let server = FakeHttp::start(&["--strict"]);
    let front = secured(&server, NAME).await;
    let proxy = WebProxy::to(&format!("127.0.0.1:{}", front.port())).await;
    let by = format!("http://user:{PASSWORD}@{}", proxy.authority());
    let url = format!("https://{NAME}/mcp");
    works(&trusting(&front, &url).env("HTTPS_PROXY", &by).spawn()).await;
    let heads = proxy.heads();
    assert!(!heads.is_empty());
    for head in heads {
        assert!(head.starts_with(&format!("CONNECT {NAME}:443 HTTP/1.1\r\n")), "{head}");
        let head = head.to_lowercase();
        assert!(head.contains("proxy-authorization: basic dxnlcjpodw50zxiy\r\n"), "{head}");
        assert!(!head.contains("mcp-"), "the proxy sees nothing of the messages: {head}");
    }
    let told = server.journal().into_iter().filter(|entry| entry.is_http());
    for entry in told {
        assert_eq!(entry.header("proxy-authorization"), None, "it is for the proxy alone");
    }
}

#[tokio::test]
async fn a_proxy_may_itself_speak_tls() {
    let server = FakeHttp::start(&[]);
    let proxy = WebProxy::to(&authority(&server)).await;
    let front = TlsFront::start(&proxy.authority(), "localhost").await;
    let by = format!("https://localhost:{}", front.port());
    let url = format!("http://{NAME}/mcp");
    works(&trusting(&front, &url).env("HTTP_PROXY", &by).spawn()).await;
    assert!(!proxy.heads().is_empty());
}

#[tokio::test]
async fn no_proxy_and_this_machine_are_reached_without_one() {
    let server = FakeHttp::start(&[]);
    let proxy = WebProxy::to(&authority(&server)).await;
    let by = format!("http://{}", proxy.authority());
    for url in [server.url(), server.url().replace("127.0.0.1", "localhost")] {
        works(&Setup::proxied().at(&url).env("ALL_PROXY", &by).spawn()).await;
    }
    let excepted = Setup::proxied().at(&format!("http://{NAME}/mcp"));
    let excepted = excepted.env("HTTP_PROXY", &by).env("NO_PROXY", "other.example, .test.invalid");
    let cause = refused(excepted).await;
    assert!(cause.contains("can't be reached"), "{cause}");
    assert_eq!(proxy.heads(), [""; 0], "the proxy was asked for nothing");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    for (scheme, variable) in [("http", "HTTP_PROXY"), ("https", "HTTPS_PROXY")] {
        let proxy = WebProxy::that_refuses().await;
        let by = format!("http://user:{PASSWORD}@{}", proxy.authority());
        let setup = Setup::proxied().at(&format!("{scheme}://{NAME}/mcp")).env(variable, &by);
        let peer = setup.options(&["--log-level", "debug"]).spawn();
        let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        let answer = peer.ask("initialize", initialize).await;
        let said = format!("{}{}", answer.raw, peer.stderr());
        assert!(said.contains("407") || said.contains(&proxy.authority()), "{said}");
        assert!(!said.contains(PASSWORD) && !said.contains("dXNlcjpodW50ZXIy"), "{said}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_and_one_of_another_kind_are_errors() {
    let at = format!("http://{NAME}/mcp");
    // The port is taken, so that nobody else gets it, and nobody listens.
    let absent = TcpSocket::new_v4().expect("a socket");
    absent.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let absent_at = absent.local_addr().expect("it is bound");
    let setup = Setup::proxied().at(&at).env("HTTP_PROXY", &format!("http://{absent_at}"));
    let cause = refused(setup).await;
    let by = format!("by the proxy {absent_at}, which the environment names");
    assert!(cause.contains(&by) && cause.contains("refused"), "{cause}");
    let socks = Setup::proxied().at(&at).env("ALL_PROXY", "socks5://127.0.0.1:1");
    let cause = refused(socks).await;
    assert!(cause.contains("only HTTP proxies can be used"), "{cause}");
}
