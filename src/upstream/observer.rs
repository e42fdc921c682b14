//! What is told about a server: its messages, its end, and requests that get no answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::rpc::id::Id;
use crate::rpc::outbox::Room;
use crate::rpc::parsed_line::ParsedLine;

/// Whoever is told what comes from a server. Calls come in the order of the wire, and never while
/// the caller holds a lock of the supervisor.
pub(crate) trait ServerObserver: Send + Sync {
    /// A line of the server.
    fn message(&self, line: &ParsedLine, origin: MessageOrigin);
    /// The server is gone; nothing more comes from it.
    fn lost(&self, end: &ServerEnd);
    /// One request gets no answer; everything else goes on.
    fn request_lost(&self, id: &Id, loss: Loss);
    /// The server has forgotten its session: a new one is being opened, and wants its handshake.
    fn renewed(&self);
    /// The server has announced that it may close the stream of a request before its answer, to be
    /// asked for the rest later (2025-11-25). `retry`: how much later, where it says so.
    fn primed(&self, _request: &Id, _retry: Option<Duration>) {}
    /// It has done so. What comes from there on comes as if it had not.
    fn paused(&self, _request: &Id) {}
    /// What to wait for before more is read from the server; `None` where the way to the client has
    /// room.
    fn room(&self) -> Option<Room>;
}

/// Where a message of the server came from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessageOrigin<'a> {
    /// the request, by the server's id, on whose stream it came; `None`: a stream of no request, or
    /// a child's stdout
    pub request: Option<&'a Id>,
    /// the HTTP status of the response that carried it, where that is not 200
    pub status: Option<StatusCode>,
}

/// Why a request gets no answer.
#[derive(Debug)]
pub(crate) struct Loss {
    /// one sentence: what happened, and what to do
    pub cause: Arc<str>,
    /// the server may have begun with it (contract §7)
    pub reached: bool,
    /// what the server answered in place of a message, such as a 401 with `WWW-Authenticate`
    pub refusal: Option<Response<Bytes>>,
}

impl Loss {
    /// The request has not reached the server, for this reason.
    pub(crate) fn unsent(cause: impl Into<Arc<str>>) -> Self {
        Loss { cause: cause.into(), reached: false, refusal: None }
    }
}

/// How a server ended.
#[derive(Debug, Clone)]
pub(crate) struct ServerEnd {
    /// one sentence for people and models: exit code and the end of its stderr (contract §9)
    pub cause: Arc<str>,
    /// it never said anything that is JSON-RPC, and it was the first start
    pub never_up: bool,
    /// it ended before it was ready again: what waited for it has not reached it
    pub during_start: bool,
}
