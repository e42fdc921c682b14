//! How a server is reached, and whether it can be.

use std::sync::Arc;

use super::child::{Launch, SpawnError};
use super::http::{self, RemoteServer, Unreachable};
use super::life::{Life, LifeTerms};

/// A server, as often as it is started.
#[derive(Clone)]
pub(crate) enum Server {
    /// a process of our own
    Command(Arc<Launch>),
    /// at a URL
    Remote(Arc<RemoteServer>),
}

/// Why a server can't be started: one sentence.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum StartError {
    /// its process can't be
    Spawn(#[from] SpawnError),
}

/// Why calls can't be served now: one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotReady {
    /// the last process ended like that
    #[error("the server ended before it said anything")]
    Fails,
    /// its command is not there
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// its URL is not answered
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

impl Server {
    /// Begins a life of it.
    ///
    /// # Errors
    /// The process can't be started. A server at a URL is connected to later, in its life.
    pub(super) fn begin(&self, terms: LifeTerms) -> Result<Life, StartError> {
        match self {
            Server::Command(launch) => Ok(launch.begin(terms)?),
            Server::Remote(remote) => Ok(http::begin(remote, terms)),
        }
    }

    /// Whether calls can be served, as far as can be told without one.
    ///
    /// # Errors
    /// See [`NotReady`].
    pub(crate) async fn ready(&self) -> Result<(), NotReady> {
        match self {
            Server::Command(launch) if launch.fails() => Err(NotReady::Fails),
            Server::Command(launch) => Ok(launch.find()?),
            Server::Remote(remote) => Ok(remote.reach().await?),
        }
    }

    /// Notes whether a process that was started has said anything.
    pub(super) fn note_works(&self, works: bool) {
        match self {
            Server::Command(launch) => launch.note_works(works),
            Server::Remote(_) => {}
        }
    }
}
