//! The way to a client for what answers none of its requests.

use std::future::ready;

use bytes::Bytes;

use crate::rpc::outbox::Room;

/// A client's channel, as its transport offers it. Whatever depends on the transport is asked here.
pub(crate) trait Channel: Send + Sync {
    /// Sends a notification. `false`: it reaches nobody.
    fn notify(&self, message: &Bytes) -> bool;

    /// Sends a notification that belongs to no request, such as that a list has changed.
    fn announce(&self, message: &Bytes) {
        self.notify(message);
    }

    /// Sends a request. `false`: nobody can answer it.
    fn ask(&self, message: &Bytes) -> bool;

    /// Whether more of the server's messages may be taken. A transport on which a slow client holds
    /// up others drops what that client does not read, and always has room.
    fn has_room(&self) -> bool {
        true
    }

    /// What to wait for until there is room; `None` where there is.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Waits while so much is queued that it must be answers of our own to a client that reads
    /// none of them.
    fn answers_room(&self) -> Room {
        Box::pin(ready(()))
    }

    /// Whether the client is the user who runs the proxy: then it may read the server's stderr and
    /// our `PATH` in the cause of a failure. Anybody may be at the other end of a network (contract
    /// §9).
    fn shows_details(&self) -> bool;

    /// Who makes the `Mcp-Param-*` headers of this client's calls.
    fn param_headers(&self) -> ParamHeaders;
}

/// Who makes the `Mcp-Param-*` headers of a client's calls (2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamHeaders {
    /// the client sends them with its requests, so they can be checked
    MadeByClient,
    /// the client's transport has no headers, so a server that wants them gets ours
    MadeByProxy,
    /// nobody: the client's era has none
    Unused,
}
