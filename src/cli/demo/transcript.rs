//! What a client sent and got, in order.

use tokio::time::Instant;

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Sent,
    Received,
}

/// One thing to show.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A sentence on what follows.
    Note(&'static str),
    /// A message, as it was on the wire.
    Message { direction: Direction, at: Instant, line: String },
}
