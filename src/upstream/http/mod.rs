//! A server at a URL: Streamable HTTP of both eras (PROTOCOL §6.2, §6.3).
//!
//! [`Remote`] is the server, made once for the process. Each life of it that a supervisor starts is
//! a [`link::Link`]: it orders what leaves, and knows the session (`state.rs`, `life.rs`). Each message is an
//! [`exchange::Exchange`], one POST with its answer, whose stream may be cut and resumed
//! (`stream.rs`). What the server says by itself comes on the stream of `listen.rs`. A server of the
//! first revision has one stream for all (`two_ways.rs`); which kind it is, is found out from its
//! answer to the first message (PROTOCOL §1.3).

mod connect;
mod exchange;
mod incoming;
mod life;
pub mod link;
mod listen;
mod loss;
mod message;
mod outgoing;
mod state;
mod stream;
mod two_ways;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use crate::config;

pub use life::Ended;

use connect::{Connector, IDLE, root};
use outgoing::Outgoing;

/// The head of an answer may take so many bytes.
const HEAD: usize = 128 << 10;
/// How long it may take to find out whether the server can be reached.
const REACH: Duration = Duration::from_secs(2);
/// How long a document beside the endpoint may take, and how long it may be.
const DOCUMENT: Duration = Duration::from_secs(10);
const DOCUMENT_BYTES: usize = 1 << 20;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("unhurry/", env!("CARGO_PKG_VERSION")));

/// A server at a URL, shared by all sessions.
pub struct Remote {
    url: Uri,
    /// the URL without its query, for people
    address: String,
    /// what every request carries
    base: HeaderMap,
    client: Client<Connector, Outgoing>,
    connector: Connector,
    /// it was there once
    met: AtomicBool,
    transport: OnceLock<Spoken>,
}

/// Which transport a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Streamable,
    /// HTTP+SSE
    TwoWays,
}

impl Remote {
    /// Nothing is connected yet.
    pub fn new(config: &config::Remote) -> Arc<Self> {
        let (connector, proxy_authorization) = Connector::new(&config.url);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_buf_size(HEAD)
            .build(connector.clone());
        let mut base = HeaderMap::new();
        base.insert(USER_AGENT, AGENT);
        // Else it would be made anew for every request.
        if let Some(host) = host(&config.url) {
            base.insert(HOST, host);
        }
        base.extend(config.headers.clone());
        if let Some(authorization) = proxy_authorization {
            base.insert(PROXY_AUTHORIZATION, authorization);
        }
        let (url, address) = (config.url.clone(), config.address());
        let met = AtomicBool::new(false);
        let transport = match config.transport {
            config::Transport::Auto => OnceLock::new(),
            config::Transport::StreamableHttp => OnceLock::from(Spoken::Streamable),
            config::Transport::Sse => OnceLock::from(Spoken::TwoWays),
        };
        Arc::new(Remote { url, address, base, client, connector, met, transport })
    }

    /// The URL as it may be shown: without its query.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What every request carries.
    fn base(&self) -> &HeaderMap {
        &self.base
    }

    /// Whether the server can be reached now, within 2 s. Nothing is asked of it.
    ///
    /// # Errors
    /// One sentence.
    pub async fn reach(&self) -> Result<(), String> {
        let why = match timeout(REACH, self.connector.open(&self.url)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => format!("no connection within {} s", REACH.as_secs()),
        };
        Err(loss::unreachable(&self.address, &why))
    }

    /// Gets a document at another path of the same origin; at the most 1 MiB, within 10 s. The
    /// configured headers are not sent: they are for the endpoint.
    ///
    /// # Errors
    /// One sentence.
    pub async fn get(&self, path: &str) -> Result<Response<Bytes>, String> {
        let path = PathAndQuery::try_from(path).map_err(|_| "no path of a URL".to_owned())?;
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = Some(path);
        let url = Uri::from_parts(parts).map_err(|_| "no path of a URL".to_owned())?;
        let headers = HeaderMap::from_iter([(USER_AGENT, AGENT)]);
        let getting = async {
            let response = self.send(Method::GET, &url, headers, Outgoing::default()).await;
            let response =
                response.map_err(|error| loss::unreachable(&self.address, &root(&error)))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, DOCUMENT_BYTES).collect().await;
            let body = body.map_err(|error| loss::unreachable(&self.address, &root(&*error)))?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let late = |_| loss::unreachable(&self.address, "no answer within 10 s");
        timeout(DOCUMENT, getting).await.map_err(late)?
    }

    /// Which transport the server speaks; `None`: that is not known yet.
    fn spoken(&self) -> Option<Spoken> {
        self.transport.get().copied()
    }

    /// Notes what was found out, for all sessions; the first finding stays.
    fn found(&self, spoken: Spoken) {
        let _ = self.transport.set(spoken);
    }

    /// Makes a connection for the first message, unless there was one before.
    async fn warm_up(&self) -> Result<(), String> {
        if self.met.load(Ordering::Relaxed) {
            return Ok(());
        }
        let warm = self.connector.warm(&self.url).await;
        warm.map_err(|why| loss::unreachable(&self.address, &why))
    }

    /// POSTs a message; waits for the head of the answer, however long that takes.
    async fn post(
        &self,
        url: &Uri,
        mut headers: HeaderMap,
        body: Outgoing,
    ) -> Result<Response<Incoming>, Error> {
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, EITHER);
        self.send(Method::POST, url, headers, body).await
    }

    /// GETs a stream of events.
    async fn listen(&self, mut headers: HeaderMap) -> Result<Response<Incoming>, Error> {
        headers.insert(ACCEPT, EVENT_STREAM);
        self.send(Method::GET, &self.url, headers, Outgoing::default()).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Uri,
        headers: HeaderMap,
        body: Outgoing,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers;
        let response = self.client.request(request).await;
        if response.is_ok() {
            self.met.store(true, Ordering::Relaxed);
        }
        response
    }
}

/// The host as a request names it: without a port that goes without saying.
fn host(url: &Uri) -> Option<HeaderValue> {
    let usual = if url.scheme_str() == Some("https") { 443 } else { 80 };
    let host = url.host()?;
    match url.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")).ok(),
        None => HeaderValue::from_str(host).ok(),
    }
}
