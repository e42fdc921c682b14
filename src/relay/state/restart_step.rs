//! The handshake with a server that was started anew.

use crate::relay::state::lists::ListKey;

/// A request of the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RestartStep {
    /// the client's `initialize`
    Initialize,
    /// a setting of the client; its answer does not matter
    Setting,
    /// a list that may have changed
    CompareList(ListKey),
}
