//! `unhurry serve`: the sidecar, Streamable HTTP towards its clients.

use tracing::error;

use super::{Context, INTERNAL};

/// Serves until a signal comes. Returns the exit code.
pub async fn serve(_context: Context) -> u8 {
    error!("`unhurry serve` is not part of this version");
    INTERNAL
}
