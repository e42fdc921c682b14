//! A server at a URL: Streamable HTTP of both eras (protocol §6.2, §6.3).
//!
//! [`Remote`] is the server, made once for the process, with its connections (`connect.rs`,
//! `pool.rs`). Each life of it that a supervisor starts is a [`link::Link`]: it orders what leaves,
//! and knows the session (`state.rs`, `life.rs`). Each message is an [`exchange::Exchange`], one POST
//! with its answer, whose stream may be cut and resumed (`stream.rs`). What the server says by itself
//! comes on the stream of `listen.rs`. A server of the first revision has one stream for all
//! (`two_ways.rs`); which kind it is, is found out from its answer to the first message
//! (protocol §1.3).

mod connect;
mod exchange;
mod incoming;
mod life;
pub mod link;
mod listen;
mod loss;
mod message;
mod outgoing;
mod pool;
mod state;
mod stream;
mod two_ways;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use tokio::time::timeout;

use crate::config;

pub use life::Ended;

use connect::{Connector, Hop, root};
use outgoing::Outgoing;
use pool::{Pool, Received, Unsent};

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
    /// as configured
    origin: Uri,
    /// another path of the same origin, where the server has sent us
    moved: OnceLock<Uri>,
    /// the URL without its query, for people
    address: String,
    /// what every request carries
    base: HeaderMap,
    /// what every POST carries
    post_base: HeaderMap,
    /// what requests carry for a proxy that reads them
    hop: Hop,
    pool: Arc<Pool>,
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
    pub fn new(config: &config::RemoteConfig) -> Arc<Self> {
        let (connector, hop) = Connector::new(&config.url);
        let mut base = HeaderMap::new();
        base.extend(host_of(&config.url).map(|host| (HOST, host)));
        base.insert(USER_AGENT, AGENT);
        base.extend(config.headers.clone());
        base.extend(hop.headers());
        let mut post_base = base.clone();
        post_base.insert(CONTENT_TYPE, JSON);
        post_base.insert(ACCEPT, EITHER);
        let pool = Pool::new(connector.clone(), config.url.clone());
        let (origin, address) = (config.url.clone(), config.address());
        let met = AtomicBool::new(false);
        let transport = match config.transport {
            config::Transport::Auto => OnceLock::new(),
            config::Transport::StreamableHttp => OnceLock::from(Spoken::Streamable),
            config::Transport::Sse => OnceLock::from(Spoken::TwoWays),
        };
        Arc::new(Remote {
            origin,
            moved: OnceLock::new(),
            address,
            base,
            post_base,
            hop,
            pool,
            connector,
            met,
            transport,
        })
    }

    /// The URL as it may be shown: without its query.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where messages go.
    fn url(&self) -> &Uri {
        self.moved.get().unwrap_or(&self.origin)
    }

    /// Whether the response of `asked` says that the endpoint is at another path of the same origin,
    /// as many servers do where a slash is missing. Messages go there from now on; from there they
    /// are followed no further.
    fn follows(&self, asked: &Uri, response: &Response<Received>) -> bool {
        let moved = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
        if !moved.contains(&response.status()) || *asked != self.origin {
            return false;
        }
        if self.moved.get().is_some() {
            return true;
        }
        let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        match location.and_then(|to| two_ways::resolve(&self.origin, to)) {
            Some(url) => self.moved.set(url).is_ok(),
            None => false,
        }
    }

    /// What every request carries.
    fn base(&self) -> &HeaderMap {
        &self.base
    }

    /// What every POST of a message carries.
    fn post_base(&self) -> &HeaderMap {
        &self.post_base
    }

    /// Whether the server can be reached now, within 2 s. Nothing is asked of it.
    ///
    /// # Errors
    /// One sentence.
    pub async fn reach(&self) -> Result<(), String> {
        let why = match timeout(REACH, self.connector.open(self.url())).await {
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
        let mut parts = self.url().clone().into_parts();
        parts.path_and_query = Some(path);
        let url = Uri::from_parts(parts).map_err(|_| "no path of a URL".to_owned())?;
        let mut headers = HeaderMap::from_iter([(USER_AGENT, AGENT)]);
        headers.extend(host_of(self.url()).map(|host| (HOST, host)));
        headers.extend(self.hop.headers());
        let getting = async {
            let response = self.send(Method::GET, &url, headers, Outgoing::default()).await;
            let response =
                response.map_err(|error| loss::unreachable(&self.address, &error.to_string()))?;
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
        let warm = self.connector.warm(self.url()).await;
        warm.map_err(|why| loss::unreachable(&self.address, &why))
    }

    /// POSTs a message; waits for the head of the answer, however long that takes.
    async fn post(
        &self,
        url: &Uri,
        headers: HeaderMap,
        body: Outgoing,
    ) -> Result<Response<Received>, Unsent> {
        self.send(Method::POST, url, headers, body).await
    }

    /// GETs a stream of events.
    async fn listen(&self, mut headers: HeaderMap) -> Result<Response<Received>, Unsent> {
        headers.insert(ACCEPT, EVENT_STREAM);
        self.send(Method::GET, self.url(), headers, Outgoing::default()).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Uri,
        headers: HeaderMap,
        body: Outgoing,
    ) -> Result<Response<Received>, Unsent> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = match url.path_and_query() {
            Some(path) if !self.hop.whole_urls => path.clone().into(),
            _ => url.clone(),
        };
        *request.headers_mut() = headers;
        let response = self.pool.send(request).await;
        if response.is_ok() {
            self.met.store(true, Ordering::Relaxed);
        }
        response
    }
}

/// The `Host` of requests for a URL.
fn host_of(url: &Uri) -> Option<HeaderValue> {
    let host = url.host()?;
    let is_default = matches!(
        (url.scheme_str(), url.port_u16()),
        (_, None) | (Some("http"), Some(80)) | (Some("https"), Some(443))
    );
    let text = match url.port().filter(|_| !is_default) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    HeaderValue::from_str(&text).ok()
}
