//! What can go wrong in a demonstration, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::server;

/// Why the demonstration ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// The path of this program is not known.
    #[error("cannot find unhurry's own file: {0}; start it by its full path")]
    NoProgram(io::Error),
    /// This program can't be started again.
    #[error(
        "cannot start {}: {cause}; unhurry starts itself as the server and as the proxy, so its \
         file has to stay where it is, and executable", program.display()
    )]
    Start { program: PathBuf, cause: io::Error },
    /// A process has ended before its time.
    #[error(
        "{peer} ended before it answered {method}; `unhurry check -- unhurry {}` shows whether it \
         starts",
        server::VERB
    )]
    Ended { peer: &'static str, method: &'static str },
    /// A process does not answer.
    #[error(
        "{peer} has not answered {method} for {} s; if this machine is very busy, try again later",
        limit.as_secs()
    )]
    Silent { peer: &'static str, method: &'static str, limit: Duration },
    /// A pipe to a process is broken.
    #[error("the pipe to {peer} broke: {cause}; try again")]
    Pipe { peer: &'static str, cause: io::Error },
    /// A process does not speak JSON-RPC.
    #[error("{peer} sent a line that is no JSON ({cause}); this is a bug, please report it")]
    NoJson { peer: &'static str, cause: serde_json::Error },
    /// A process refuses what it should do.
    #[error("{peer} refused {method}: {refusal}; this is a bug, please report it")]
    Refused { peer: &'static str, method: &'static str, refusal: String },
    /// A handle does not say how to go on.
    #[error("a handle names no next_action; this is a bug, please report it")]
    NoNextAction,
    /// Nobody takes what is printed.
    #[error("cannot write to stdout: {0}; send it to a terminal or a file that has room")]
    Print(io::Error),
}
