//! The server's side: its process, and the supervisor that starts it anew.

pub mod child;
pub mod process;
pub mod reaper;
pub mod supervisor;

use std::sync::Arc;

use crate::rpc::lines::Line;

/// What an upstream tells whoever relays its messages. Calls come in the order of the wire, and
/// never while the caller holds a lock of the supervisor.
pub trait Events: Send + Sync {
    /// A line of the server.
    fn message(&self, line: Line);
    /// The server is gone; nothing more comes from it.
    fn lost(&self, end: &End);
}

/// How a server ended.
#[derive(Debug, Clone)]
pub struct End {
    /// One sentence for people and models: exit code and last words (CONTRACT §9).
    pub cause: Arc<str>,
    /// It never said anything that is JSON-RPC, and it was the first start.
    pub never_up: bool,
    /// It ended before it was ready again: what waited for it has not reached it.
    pub during_start: bool,
}
