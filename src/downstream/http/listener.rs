//! The connections of HTTP clients.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::body::Body;

/// How long a client may take to send the headers of a request, idle time before it included.
const HEADERS: Duration = Duration::from_secs(30);
/// The pause after a connection could not be taken, for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers requests.
pub(crate) trait Endpoint: Send + Sync + 'static {
    /// Answers a request. Dropped when the client closes the connection.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// Takes connections until `ending` changes; then takes no new one, and returns when those that are
/// there have ended. Dropped, it ends them at once.
pub(crate) async fn listen<E: Endpoint>(
    listener: TcpListener,
    endpoint: Arc<E>,
    mut ending: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, endpoint.clone(), ending.clone()));
                }
                Err(error) => refused(&error).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = ending.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn refused(error: &io::Error) {
    warn!("could not take a connection: {error}");
    sleep(PAUSE).await;
}

async fn connection<E: Endpoint>(
    stream: TcpStream,
    endpoint: Arc<E>,
    mut ending: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = ending.changed() => {
            // What is being answered is answered to its end.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!("a connection ended: {error}");
    }
}
