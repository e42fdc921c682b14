//! The handshake with a server that was started anew.

use crate::relay::lists::ListKey;

/// A step of the handshake that waits for the server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RestartStep {
    Initialize,
    /// a setting that was repeated; its answer says nothing new
    Setting,
    /// a list that may have changed
    CompareList(ListKey),
}
