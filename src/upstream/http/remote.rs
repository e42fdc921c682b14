//! The server at a URL, made once for the process and shared by all sessions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use tokio::time::timeout;
use tracing::warn;

use crate::config;

use super::connect::{Connector, ForwardProxy};
use super::incoming::pass_over;
use super::pool::{Pool, Received, SendError};
use super::request_body::RequestBody;
use super::root_cause::root_cause;
use super::url_reference::resolve;

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
pub(crate) struct RemoteServer {
    /// as configured
    url: Uri,
    /// the URL without its query, for people
    address: String,
    /// what every request carries
    base: HeaderMap,
    /// what every POST carries
    post_base: HeaderMap,
    /// what a proxy that reads the requests wants of them
    forward_proxy: ForwardProxy,
    pool: Arc<Pool>,
    connector: Connector,
    /// it has answered once
    was_reached: AtomicBool,
    /// it was said that the server sends messages elsewhere
    redirect_was_told: AtomicBool,
    transport: OnceLock<SpokenTransport>,
}

/// Which transport a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpokenTransport {
    /// of 2025-03-26 and later
    StreamableHttp,
    /// of 2024-11-05
    HttpSse,
}

/// There is no connection to a server at a URL: one sentence.
#[derive(Debug, thiserror::Error)]
#[error("the server at {address} can't be reached: {why}")]
pub(crate) struct Unreachable {
    address: String,
    why: String,
}

/// Why there is no document: one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    /// nothing can stand at this path
    #[error("no path of a URL")]
    Path,
    /// the server does not answer, or not in time
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

impl RemoteServer {
    /// Nothing is connected yet.
    pub(crate) fn new(config: &config::RemoteConfig) -> Arc<Self> {
        let (connector, forward_proxy) = Connector::new(&config.url);
        let mut base = HeaderMap::new();
        base.extend(host_of(&config.url).map(|host| (HOST, host)));
        base.insert(USER_AGENT, AGENT);
        base.extend(config.headers.clone());
        base.extend(forward_proxy.headers());
        let mut post_base = base.clone();
        post_base.insert(CONTENT_TYPE, JSON);
        post_base.insert(ACCEPT, EITHER);
        let pool = Pool::new(connector.clone(), config.url.clone());
        let (url, address) = (config.url.clone(), config.address());
        let (was_reached, redirect_was_told) = (AtomicBool::new(false), AtomicBool::new(false));
        let transport = match config.transport {
            config::Transport::Auto => OnceLock::new(),
            config::Transport::StreamableHttp => OnceLock::from(SpokenTransport::StreamableHttp),
            config::Transport::Sse => OnceLock::from(SpokenTransport::HttpSse),
        };
        Arc::new(RemoteServer {
            url,
            address,
            base,
            post_base,
            forward_proxy,
            pool,
            connector,
            was_reached,
            redirect_was_told,
            transport,
        })
    }

    /// The URL as it may be shown: without its query.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Where messages go.
    pub(crate) fn url(&self) -> &Uri {
        &self.url
    }

    /// Where the response to what was asked of `asked` sends it: to another path of the same origin,
    /// as many servers do where a slash is missing. What else is sent has nothing to do with that:
    /// it may be another caller's, whom the server would send elsewhere, or nowhere.
    pub(crate) fn redirected(&self, asked: &Uri, response: &Response<Received>) -> Option<Uri> {
        let moved = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
        if !moved.contains(&response.status()) {
            return None;
        }
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        let url = resolve(asked, location)?;
        if !self.redirect_was_told.swap(true, Ordering::Relaxed) {
            let address = &self.address;
            warn!(
                "the server at {address} sends requests to another path; its URL saves a request"
            );
        }
        Some(url)
    }

    /// What every request carries.
    pub(crate) fn base(&self) -> &HeaderMap {
        &self.base
    }

    /// What every POST of a message carries.
    pub(crate) fn post_base(&self) -> &HeaderMap {
        &self.post_base
    }

    /// Whether the server can be reached now, within 2 s. Nothing is asked of it.
    ///
    /// # Errors
    /// There is no connection, or not in time.
    pub(crate) async fn reach(&self) -> Result<(), Unreachable> {
        match timeout(REACH, self.connector.open(self.url())).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(why)) => Err(self.unreachable(why)),
            Err(_) => Err(self.unreachable(format!("no connection within {} s", REACH.as_secs()))),
        }
    }

    /// That there is no connection. `why`: a part of a sentence.
    pub(crate) fn unreachable(&self, why: impl Into<String>) -> Unreachable {
        Unreachable { address: self.address.clone(), why: why.into() }
    }

    /// Gets a document at another path of the same origin; at the most 1 MiB, within 10 s. The
    /// configured headers are not sent: they are for the endpoint.
    ///
    /// # Errors
    /// The path is none, or the server does not answer in time.
    pub(crate) async fn get(&self, path: &str) -> Result<Response<Bytes>, DocumentError> {
        let path = PathAndQuery::try_from(path).map_err(|_| DocumentError::Path)?;
        let mut parts = self.url().clone().into_parts();
        parts.path_and_query = Some(path);
        let url = Uri::from_parts(parts).map_err(|_| DocumentError::Path)?;
        let mut headers = HeaderMap::from_iter([(USER_AGENT, AGENT)]);
        headers.extend(host_of(self.url()).map(|host| (HOST, host)));
        headers.extend(self.forward_proxy.headers());
        let getting = async {
            let response = self.send(Method::GET, &url, headers, RequestBody::default()).await;
            let response = response.map_err(|error| self.unreachable(error.to_string()))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, DOCUMENT_BYTES).collect().await;
            let body = body.map_err(|error| self.unreachable(root_cause(&*error)))?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let late = |_| self.unreachable("no answer within 10 s");
        timeout(DOCUMENT, getting).await.map_err(late)?
    }

    /// Which transport the server speaks; `None`: that is not known yet.
    pub(crate) fn transport(&self) -> Option<SpokenTransport> {
        self.transport.get().copied()
    }

    /// Notes what was found out, for all sessions; the first finding stays.
    pub(crate) fn note_transport(&self, transport: SpokenTransport) {
        let _ = self.transport.set(transport);
    }

    /// Makes a connection for the first message, unless the server has answered before.
    ///
    /// # Errors
    /// There is none.
    pub(crate) async fn connect_ahead(&self) -> Result<(), Unreachable> {
        if self.was_reached.load(Ordering::Relaxed) {
            return Ok(());
        }
        let opened = self.connector.open_ahead(self.url()).await;
        opened.map_err(|why| self.unreachable(why))
    }

    /// POSTs a message; waits for the head of the answer, however long that takes.
    ///
    /// # Errors
    /// See [`SendError`].
    pub(crate) async fn post(
        &self,
        url: &Uri,
        headers: HeaderMap,
        body: RequestBody,
    ) -> Result<Response<Received>, SendError> {
        self.send(Method::POST, url, headers, body).await
    }

    /// GETs a stream of events.
    ///
    /// # Errors
    /// See [`SendError`].
    pub(crate) async fn get_stream(
        &self,
        mut headers: HeaderMap,
    ) -> Result<Response<Received>, SendError> {
        headers.insert(ACCEPT, EVENT_STREAM);
        self.ask(Method::GET, headers).await
    }

    /// Tells the server that a session is over.
    ///
    /// # Errors
    /// See [`SendError`].
    pub(crate) async fn delete(&self, headers: HeaderMap) -> Result<Response<Received>, SendError> {
        self.ask(Method::DELETE, headers).await
    }

    /// A request without a body, sent once more where it is redirected to.
    async fn ask(
        &self,
        method: Method,
        headers: HeaderMap,
    ) -> Result<Response<Received>, SendError> {
        let send = |url, headers| self.send(method.clone(), url, headers, RequestBody::default());
        let response = send(&self.url, headers.clone()).await?;
        let Some(url) = self.redirected(&self.url, &response) else { return Ok(response) };
        pass_over(response).await;
        send(&url, headers).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Uri,
        headers: HeaderMap,
        body: RequestBody,
    ) -> Result<Response<Received>, SendError> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = match url.path_and_query() {
            Some(path) if !self.forward_proxy.whole_urls => path.clone().into(),
            _ => url.clone(),
        };
        *request.headers_mut() = headers;
        let response = self.pool.send(request).await;
        if response.is_ok() {
            self.was_reached.store(true, Ordering::Relaxed);
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
