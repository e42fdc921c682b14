//! How a server is reached, and whether it can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::Command;
use crate::logging::Stderr;

use super::http::Remote;
use super::process::{self, Environment};

/// A server, as often as it is started.
#[derive(Clone)]
pub enum Server {
    /// a process of our own
    Command(Arc<Launch>),
    /// at a URL
    Remote(Arc<Remote>),
}

/// What it takes to start a process.
pub struct Launch {
    pub command: Command,
    pub environment: Environment,
    /// where its stderr goes
    pub stderr: Stderr,
    /// the end of its stderr may be shown to clients
    pub stderr_in_errors: bool,
    /// the last one that was started ended before it said anything
    fails: AtomicBool,
}

impl Launch {
    pub fn new(
        command: Command,
        environment: Environment,
        stderr: Stderr,
        stderr_in_errors: bool,
    ) -> Arc<Self> {
        let fails = AtomicBool::new(false);
        Arc::new(Launch { command, environment, stderr, stderr_in_errors, fails })
    }

    /// Notes whether a process that was started has said anything.
    pub fn note(&self, works: bool) {
        self.fails.store(!works, Ordering::Relaxed);
    }
}

impl Server {
    /// Whether calls can be served, as far as can be told without one. The error is one sentence.
    pub async fn ready(&self) -> Result<(), String> {
        match self {
            Server::Command(launch) if launch.fails.load(Ordering::Relaxed) => {
                Err("the server ended before it said anything".into())
            }
            Server::Command(launch) => process::find(&launch.command, &launch.environment)
                .map_err(|error| error.to_string()),
            Server::Remote(remote) => remote.reach().await,
        }
    }
}
