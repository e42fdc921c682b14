//! How a server is reached, and whether it can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::CommandConfig;
use crate::logging::Stderr;

use super::http::Remote;
use super::process::{self, Environment};
use super::reaper::Reaper;

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
    pub command: CommandConfig,
    pub environment: Environment,
    /// where its stderr goes
    pub stderr: Stderr,
    /// one for all processes that are started
    pub reaper: Reaper,
    /// the last one that was started ended before it said anything
    fails: AtomicBool,
}

impl Launch {
    pub fn new(command: CommandConfig, environment: Environment, stderr: Stderr) -> Arc<Self> {
        Arc::new(Launch {
            command,
            environment,
            stderr,
            reaper: Reaper::default(),
            fails: AtomicBool::new(false),
        })
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
