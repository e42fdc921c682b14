//! The way to a client for what answers none of its requests.

use std::sync::Arc;

use bytes::Bytes;

use crate::rpc::outbox::{Outbox, Room};

use super::http::streams::Streams;

/// A client's channel.
#[derive(Clone)]
pub enum Channel {
    /// its stdin
    Line(Arc<Outbox>),
    /// the streams of a legacy HTTP session
    Streams(Arc<Streams>),
    /// a modern HTTP client has none: all that it gets belongs to a request
    Nowhere,
}

impl Channel {
    /// Sends a notification. `false`: it reaches nobody.
    pub fn notify(&self, message: &Bytes) -> bool {
        match self {
            Channel::Line(outbox) => outbox.push(message),
            Channel::Streams(streams) => {
                streams.notify(message);
                true
            }
            Channel::Nowhere => false,
        }
    }

    /// Sends a notification that belongs to no request, such as that a list has changed.
    pub fn announce(&self, message: &Bytes) {
        match self {
            Channel::Streams(streams) => streams.announce(message),
            _ => drop(self.notify(message)),
        }
    }

    /// Sends a request. `false`: nobody can answer it.
    pub fn ask(&self, message: &Bytes) -> bool {
        match self {
            Channel::Line(outbox) => outbox.push(message),
            Channel::Streams(streams) => streams.ask(message),
            Channel::Nowhere => false,
        }
    }

    /// Whether more of the server's messages may be taken. HTTP streams drop what their client does
    /// not read, so that a slow client holds up none of the others.
    pub fn has_room(&self) -> bool {
        match self {
            Channel::Line(outbox) => outbox.has_room(),
            _ => true,
        }
    }

    /// What to wait for until there is room; `None` where there is.
    pub fn room(&self) -> Option<Room> {
        match self {
            Channel::Line(outbox) if !outbox.has_room() => {
                let outbox = outbox.clone();
                Some(Box::pin(async move { outbox.room().await }))
            }
            _ => None,
        }
    }

    /// Waits while so much is queued that it must be answers of our own to a client that reads
    /// none of them.
    pub async fn answers_room(&self) {
        if let Channel::Line(outbox) = self {
            outbox.answers_room().await;
        }
    }
}
