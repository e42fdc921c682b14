//! Where messages for a server go.

use std::sync::Arc;

use crate::rpc::outbox::{Outbox, Room};

use super::outgoing::Outgoing;

/// Takes the messages for one life of a server: a child's stdin, or HTTP requests.
pub(crate) trait MessageSink: Send + Sync {
    /// Sends a message; messages leave in the order of the calls.
    fn push(&self, message: Outgoing);
    /// Whether there is room for more.
    fn has_room(&self) -> bool;
    /// Waits until there is room for more.
    fn room(self: Arc<Self>) -> Room;
}

impl MessageSink for Outbox {
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
