//! Connections to one server, kept between requests: each carries one at a time.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{Builder, SendRequest};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::debug;

use super::connect::{Connector, IDLE};
use super::request_body::RequestBody;
use super::root_cause::root_cause;

/// The head of an answer may take so many bytes, and as many of a long body are read at once.
const BUFFER: usize = 128 << 10;
/// Idle connections that are kept, at the most.
const KEPT: usize = 1024;

type Sender = SendRequest<RequestBody>;

/// The connections to one server.
pub(crate) struct Pool {
    connector: Connector,
    url: Uri,
    /// the longest idle one first
    idle: Mutex<Vec<(Sender, Instant)>>,
    /// the connections, which end with the pool
    connections: Mutex<JoinSet<()>>,
}

/// Why a request has no answer: a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// there was no connection, for this reason
    #[error("{0}")]
    Connect(String),
    /// the connection broke; the server may have the request
    #[error("{}", root_cause(.0))]
    Broken(hyper::Error),
}

impl Pool {
    /// Nothing is connected yet.
    pub(crate) fn new(connector: Connector, url: Uri) -> Arc<Self> {
        let (idle, connections) = (Mutex::default(), Mutex::default());
        Arc::new(Pool { connector, url, idle, connections })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Sender, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request on an idle connection or a new one; waits for the head of the answer. A
    /// connection that the server has closed meanwhile is replaced as long as nothing of the
    /// request has left on it.
    ///
    /// # Errors
    /// See [`SendError`].
    pub(crate) async fn send(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Received>, SendError> {
        loop {
            let kept = self.take();
            let is_kept = kept.is_some();
            let mut sender = match kept {
                Some(sender) => sender,
                None => self.connect().await?,
            };
            match sender.ready().await {
                Ok(()) => {}
                Err(_) if is_kept => continue,
                Err(error) => return Err(SendError::Broken(error)),
            }
            match sender.try_send_request(request).await {
                Ok(response) => {
                    let lease = Some((sender, self.clone()));
                    return Ok(response.map(|body| Received { body, lease }));
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if is_kept => request = unsent,
                    _ => return Err(SendError::Broken(error.into_error())),
                },
            }
        }
    }

    /// An idle connection that is still good, the last one that was used.
    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle();
        let (sender, since) = idle.pop()?;
        if since.elapsed() < IDLE && !sender.is_closed() {
            return Some(sender);
        }
        // The others are idle for longer still.
        idle.clear();
        None
    }

    fn give_back(&self, sender: Sender) {
        let now = Instant::now();
        let mut idle = self.idle();
        let expired = idle.iter().take_while(|(_, since)| now - *since >= IDLE).count();
        idle.drain(..expired);
        if !sender.is_closed() && idle.len() < KEPT {
            idle.push((sender, now));
        }
    }

    async fn connect(&self) -> Result<Sender, SendError> {
        let stream = self.connector.take(&self.url).await.map_err(SendError::Connect)?;
        let mut builder = Builder::new();
        builder.max_buf_size(BUFFER);
        let (sender, connection) = builder.handshake(stream).await.map_err(SendError::Broken)?;
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            if let Err(error) = connection.await {
                debug!("a connection to the server ended: {}", root_cause(&error));
            }
        });
        Ok(sender)
    }
}

/// The body of an answer. Read to its end, it gives its connection back; dropped before, it closes
/// it.
pub(crate) struct Received {
    body: Incoming,
    lease: Option<(Sender, Arc<Pool>)>,
}

impl Received {
    fn end(&mut self) {
        if let Some((sender, pool)) = self.lease.take() {
            pool.give_back(sender);
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.end();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
