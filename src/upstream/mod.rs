//! The server's side: its process or its URL, and the supervisor that starts it anew.

pub mod child;
pub mod http;
pub mod outgoing;
pub mod process;
pub mod reaper;
pub mod renewal;
pub mod server;
pub mod supervisor;

use std::sync::Arc;
use std::time::Duration;

use ::http::{Response, StatusCode};
use bytes::Bytes;

use crate::rpc::id::Id;
use crate::rpc::outbox::{Outbox, Room};
use crate::rpc::parsed_line::ParsedLine;

pub use outgoing::{Headers, Outgoing};

/// Where a message of the server came from.
#[derive(Debug, Clone, Copy, Default)]
pub struct From<'a> {
    /// the request, by the server's id, on whose stream it came; `None`: a stream of no request, or
    /// a child's stdout
    pub request: Option<&'a Id>,
    /// the HTTP status of the response that carried it, where that is not 200
    pub status: Option<StatusCode>,
}

/// The way to one life of a server: a child's stdin, or HTTP requests.
pub trait Way: Send + Sync {
    /// Sends a message; it goes on its way in the order of the calls.
    fn push(&self, message: Outgoing);
    /// Whether there is room for more.
    fn has_room(&self) -> bool;
    /// Waits until there is room for more.
    fn room(self: Arc<Self>) -> Room;
}

impl Way for Outbox {
    fn push(&self, message: Outgoing) {
        Outbox::push(self, &message.bytes);
    }

    fn has_room(&self) -> bool {
        Outbox::has_room(self)
    }

    fn room(self: Arc<Self>) -> Room {
        Box::pin(async move { Outbox::room(&self).await })
    }
}

/// What an upstream tells whoever relays its messages. Calls come in the order of the wire, and
/// never while the caller holds a lock of the supervisor.
pub trait Events: Send + Sync {
    /// A line of the server.
    fn message(&self, heard: &ParsedLine, from: From);
    /// The server is gone; nothing more comes from it.
    fn lost(&self, end: &End);
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

/// Why a request gets no answer.
#[derive(Debug)]
pub struct Loss {
    /// one sentence: what happened, and what to do
    pub cause: Arc<str>,
    /// the server may have begun with it (contract §7)
    pub reached: bool,
    /// what the server answered in place of a message, such as a 401 with `WWW-Authenticate`
    pub refusal: Option<Response<Bytes>>,
}

/// The part of a cause that strangers may read: neither the server's last words nor our environment
/// (contract §9).
pub fn without_details(cause: &str) -> &str {
    let end = |mark| cause.find(mark).unwrap_or(cause.len());
    &cause[..end(child::TAIL).min(end(process::PATH))]
}

impl Loss {
    /// The request has not reached the server, for this reason.
    pub fn unsent(cause: impl Into<Arc<str>>) -> Self {
        Loss { cause: cause.into(), reached: false, refusal: None }
    }
}

/// Why a server can't be started: one sentence.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum StartError {
    Spawn(#[from] process::SpawnError),
}

/// How a server ended.
#[derive(Debug, Clone)]
pub struct End {
    /// One sentence for people and models: exit code and last words (contract §9).
    pub cause: Arc<str>,
    /// It never said anything that is JSON-RPC, and it was the first start.
    pub never_up: bool,
    /// It ended before it was ready again: what waited for it has not reached it.
    pub during_start: bool,
}
