//! Connections to one server: TCP or TLS, straight or through the proxy that the environment names.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::PROXY_AUTHORIZATION;
use http::{HeaderName, HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::time::{Instant, timeout};
use tower_service::Service;

use super::root_cause::root_cause;

/// The longest that a connection may take to be made, TLS and proxy included.
const CONNECT: Duration = Duration::from_secs(20);
/// After so much silence TCP asks whether the other side is still there: a call may take an hour.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// A connection that nobody used for so long is given up: servers close theirs after 5 s or more,
/// and a request must not meet that.
pub(crate) const IDLE: Duration = Duration::from_secs(3);

type BoxError = Box<dyn Error + Send + Sync>;
type Opening = Pin<Box<dyn Future<Output = Result<Connection, BoxError>> + Send>>;

/// Makes connections to one server.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Inner>);

struct Inner {
    open: Box<dyn Fn(Uri) -> Opening + Send + Sync>,
    /// what errors begin with: by which proxy
    by: String,
    /// a connection that was made before there was anything to send
    spare: Mutex<Option<(Connection, Instant)>>,
}

/// What a proxy that reads the requests wants of them; nothing where there is none.
#[derive(Default)]
pub(crate) struct ForwardProxy {
    /// it is asked for whole URLs
    pub whole_urls: bool,
    /// `Proxy-Authorization`
    authorization: Option<HeaderValue>,
}

impl ForwardProxy {
    /// What each request carries for it.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.authorization.clone().map(|value| (PROXY_AUTHORIZATION, value)).into_iter()
    }
}

impl Connector {
    /// The way to the server of this URL, and what a proxy on it wants of requests.
    pub(crate) fn new(url: &Uri) -> (Self, ForwardProxy) {
        let mut forward_proxy = ForwardProxy::default();
        let is_tls = url.scheme_str() == Some("https");
        let proxy = proxy_of(url);
        let by = proxy.as_ref().map(|(proxy, _)| by(proxy)).unwrap_or_default();
        let open = match proxy {
            None if is_tls => over_tls(tcp()),
            None => opener(tcp(), None),
            Some((proxy, _)) if !matches!(proxy.scheme_str(), Some("http" | "https")) => {
                failing("there is no way: only HTTP proxies can be used")
            }
            Some((proxy, auth)) if is_tls => tunnel(proxy, auth),
            Some((proxy, auth)) => {
                forward_proxy = ForwardProxy { whole_urls: true, authorization: auth };
                forward(proxy)
            }
        };
        (Connector(Arc::new(Inner { open, by, spare: Mutex::default() })), forward_proxy)
    }

    /// Makes a connection.
    ///
    /// # Errors
    /// One part of a sentence: why there is none.
    pub(crate) async fn open(&self, url: &Uri) -> Result<Connection, String> {
        let why = match timeout(CONNECT, (self.0.open)(url.clone())).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => root_cause(&*error),
            Err(_) => format!("no connection within {} s", CONNECT.as_secs()),
        };
        Err(format!("{}{why}", self.0.by))
    }

    /// Makes a connection and keeps it for the first request.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(crate) async fn open_ahead(&self, url: &Uri) -> Result<(), String> {
        let connection = self.open(url).await?;
        *self.spare() = Some((connection, Instant::now()));
        Ok(())
    }

    /// The connection that was kept, or a new one.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub(crate) async fn take(&self, url: &Uri) -> Result<Connection, String> {
        let spare = self.spare().take().filter(|(_, since)| since.elapsed() < IDLE);
        match spare {
            Some((connection, _)) => Ok(connection),
            None => self.open(url).await,
        }
    }

    fn spare(&self) -> MutexGuard<'_, Option<(Connection, Instant)>> {
        self.0.spare.lock().expect("no panic while the connection is held")
    }
}

/// The proxy for a URL by the environment's rules. This machine itself is reached without one.
fn proxy_of(url: &Uri) -> Option<(Uri, Option<HeaderValue>)> {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if is_here || host.eq_ignore_ascii_case("localhost") {
        return None;
    }
    let proxy = Matcher::from_env().intercept(url)?;
    Some((proxy.uri().clone(), proxy.basic_auth().cloned()))
}

/// The beginning of an error. What else is in the proxy's URL may be a secret.
fn by(proxy: &Uri) -> String {
    let host = proxy.host().unwrap_or_default();
    let port = proxy.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("by the proxy {host}{port}, which the environment names, ")
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE / 2));
    tcp
}

/// TLS with the roots that the system trusts.
fn tls<C>(over: C) -> Result<HttpsConnector<C>, String> {
    let builder = HttpsConnectorBuilder::new().with_native_roots();
    let builder = builder.map_err(|error| format!("no certificates to trust: {error}"))?;
    Ok(builder.https_or_http().enable_http1().wrap_connector(over))
}

fn over_tls<C>(over: C) -> Box<dyn Fn(Uri) -> Opening + Send + Sync>
where
    C: Clone + Send + Sync + 'static,
    HttpsConnector<C>: Service<Uri, Error = BoxError>,
    <HttpsConnector<C> as Service<Uri>>::Response: Read + Write + Send + 'static,
    <HttpsConnector<C> as Service<Uri>>::Future: Send,
{
    match tls(over) {
        Ok(tls) => opener(tls, None),
        Err(problem) => failing(&problem),
    }
}

/// https through a proxy: HTTP CONNECT.
fn tunnel(proxy: Uri, auth: Option<HeaderValue>) -> Box<dyn Fn(Uri) -> Opening + Send + Sync> {
    let to_proxy = match tls(tcp()) {
        Ok(to_proxy) => to_proxy,
        Err(problem) => return failing(&problem),
    };
    let tunnel = Tunnel::new(proxy, to_proxy);
    over_tls(match auth {
        Some(auth) => tunnel.with_auth(auth),
        None => tunnel,
    })
}

/// http through a proxy, which is asked for the whole URL.
fn forward(proxy: Uri) -> Box<dyn Fn(Uri) -> Opening + Send + Sync> {
    if proxy.scheme_str() == Some("http") {
        return opener(tcp(), Some(proxy));
    }
    match tls(tcp()) {
        Ok(tls) => opener(tls, Some(proxy)),
        Err(problem) => failing(&problem),
    }
}

/// Opens what is asked for, or always `fixed`.
fn opener<C>(connector: C, fixed: Option<Uri>) -> Box<dyn Fn(Uri) -> Opening + Send + Sync>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Send + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send,
{
    Box::new(move |url| {
        let mut connector = connector.clone();
        let url = fixed.clone().unwrap_or(url);
        Box::pin(async move {
            poll_fn(|context| connector.poll_ready(context)).await.map_err(Into::into)?;
            let io = connector.call(url).await.map_err(Into::into)?;
            Ok(Connection(Box::pin(io)))
        })
    })
}

fn failing(problem: &str) -> Box<dyn Fn(Uri) -> Opening + Send + Sync> {
    let problem = problem.to_owned();
    Box::new(move |_| {
        let error = io::Error::other(problem.clone());
        Box::pin(async move { Err(error.into()) })
    })
}

trait Io: Read + Write + Send {}
impl<T: Read + Write + Send> Io for T {}

/// A connection, whatever it is made of.
pub(crate) struct Connection(Pin<Box<dyn Io>>);

impl Read for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: ReadBufCursor,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(context, buffer)
    }
}

impl Write for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        slices: &[io::IoSlice],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write_vectored(context, slices)
    }
}
