//! One life of a server, whatever the server is: what it needs to begin, and how it ended.

use std::pin::Pin;
use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use super::message_sink::MessageSink;
use super::observer::ServerObserver;
use super::outgoing::Outgoing;

/// What a life needs from whoever begins it.
pub(crate) struct LifeTerms {
    /// told what the server says
    pub observer: Arc<dyn ServerObserver>,
    /// asked for what a life can't do by itself
    pub keeper: Weak<dyn LifeKeeper>,
    /// `max_message`
    pub limit: usize,
    /// no life of this server was before it
    pub first: bool,
}

/// A life that has begun.
pub(crate) struct Life {
    /// takes the messages for the server
    pub sink: Arc<dyn MessageSink>,
    /// fired once, to end it
    pub stop: Arc<Notify>,
    /// runs it to its end, at which nothing of it remains
    pub run: Pin<Box<dyn Future<Output = LifeEnd> + Send>>,
}

/// How a life ended.
pub(crate) struct LifeEnd {
    /// one sentence
    pub cause: Arc<str>,
    /// the server got nothing of what was sent
    pub nothing_sent: bool,
}

/// Whoever keeps the server there, as far as a life needs it.
pub(crate) trait LifeKeeper: Send + Sync {
    /// Whether messages wait for the server's handshake.
    fn is_starting(&self) -> bool;
    /// Ends the present life; it counts as a failure, of this cause.
    fn give_up(&self, cause: &str);
    /// Opens a new session within the present life. The message that was `refused` with the last
    /// one is the first that waits for it. Several messages may be refused with one session:
    /// `forget` forgets it, and tells whether this one is the first.
    fn renew<'a>(&self, refused: Option<Outgoing>, forget: Box<dyn FnOnce() -> Forgotten + 'a>);
}

/// What a life had to forget when the server did not know its session.
pub(crate) enum Forgotten {
    /// the session; with what waited behind the refused message
    Now(Vec<Outgoing>),
    /// nothing: another one has been opened since
    Before,
    /// nothing: the life is over
    Over,
}
