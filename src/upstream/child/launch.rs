//! What it takes to start a process, as often as needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tracing::{info, warn};

use crate::config::CommandConfig;
use crate::logging::Stderr;
use crate::rpc::outbox::Outbox;
use crate::upstream::life::{Life, LifeEnd, LifeTerms};

use super::life::ChildLife;
use super::process::{self, Environment, Process, SpawnError};
use super::reaper::Reaper;

/// What it takes to start a process.
pub(crate) struct Launch {
    command: CommandConfig,
    environment: Environment,
    /// where its stderr goes
    stderr: Stderr,
    /// one for all processes that are started
    reaper: Reaper,
    /// the last one that was started ended before it said anything
    fails: AtomicBool,
}

impl Launch {
    /// Nothing is started yet. `environment`: what the process inherits; `stderr`: where its own
    /// goes.
    pub(crate) fn new(
        command: CommandConfig,
        environment: Environment,
        stderr: Stderr,
    ) -> Arc<Self> {
        Arc::new(Launch {
            command,
            environment,
            stderr,
            reaper: Reaper::default(),
            fails: AtomicBool::new(false),
        })
    }

    /// Whether the last process that was started ended before it said anything.
    pub(crate) fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// Notes whether a process that was started has said anything.
    pub(crate) fn note_works(&self, works: bool) {
        self.fails.store(!works, Ordering::Relaxed);
    }

    /// Whether the command's program is there.
    ///
    /// # Errors
    /// The one that a start would end with.
    pub(crate) fn find(&self) -> Result<(), SpawnError> {
        process::find(&self.command, &self.environment)
    }

    /// Starts a process.
    ///
    /// # Errors
    /// The system can't start it.
    pub(crate) fn begin(self: &Arc<Self>, terms: LifeTerms) -> Result<Life, SpawnError> {
        let (process, pipes) = Process::spawn(&self.command, &self.environment)?;
        let group = process.id;
        if let Err(error) = self.reaper.watch(group) {
            warn!("no reaper, the server may outlive a kill -9 of the proxy: {error}");
        }
        if terms.first {
            info!(pid = group, "server started");
        } else {
            info!(pid = group, "server started again");
        }
        let (outbox, stop) = (Arc::new(Outbox::default()), Arc::new(Notify::new()));
        let life = ChildLife {
            process,
            pipes,
            outbox: outbox.clone(),
            observer: terms.observer,
            stop: stop.clone(),
            stderr: self.stderr.clone(),
            limit: terms.limit,
        };
        let launch = self.clone();
        let run = Box::pin(async move {
            let cause = life.run().await;
            launch.reaper.forget(group);
            LifeEnd { cause, nothing_sent: false }
        });
        Ok(Life { sink: outbox, stop, run })
    }
}
