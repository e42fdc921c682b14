//! All of a session that changes, divided by what it is about, under one lock.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use tracing::warn;
use uuid::Uuid;

use crate::config::Config;
use crate::downstream::Batch;
use crate::jobs::registry::Registry;
use crate::jobs::store::StoreFuture;
use crate::rpc::id::Id;
use crate::upstream::Headers;

use super::calls::Calls;
use super::client::Client;
use super::deadlines::Deadlines;
use super::lifecycle::Settings;
use super::lists::ListState;
use super::routing::ServerRequests;

/// The state of a session.
pub(crate) struct State {
    pub calls: Calls,
    pub lists: ListState,
    pub client: ClientState,
    pub deadlines: Deadlines<Due>,
    /// why there will never be a server
    pub failure: Option<Arc<str>>,
    /// what follows once the lock is dropped
    pub after_unlock: VecDeque<AfterUnlock>,
}

impl State {
    pub(crate) fn new(config: &Config) -> Self {
        State {
            calls: Calls::default(),
            lists: ListState::new(&config.jobs.tool_prefix),
            client: ClientState {
                info: Client::unknown(&config.policy),
                headers: None,
                settings: Settings::default(),
                server_requests: ServerRequests::default(),
            },
            deadlines: Deadlines::default(),
            failure: None,
            after_unlock: VecDeque::new(),
        }
    }

    /// Whether a client waits for anything that has an end.
    pub(crate) fn has_requester(&self) -> bool {
        self.calls.has_requester() || self.lists.catalog.is_holding()
    }
}

/// What is known of the client.
pub(crate) struct ClientState {
    /// what it said of itself
    pub info: Arc<Client>,
    /// what went with its last request over HTTP, for requests of our own
    pub headers: Headers,
    /// what it has set at the server
    pub settings: Settings,
    /// what the server asks it
    pub server_requests: ServerRequests,
}

/// What may be due at a time.
#[derive(Debug)]
pub(crate) enum Due {
    /// the budget of a call, or the longest time that it may run
    Call(Id),
    /// a list that the server has not answered
    List(Id),
    /// the end of this walk through the pages of the tools
    Reading(u64),
    /// what a batch has so far
    Batch(Weak<Batch>),
    /// an answer to the question of a job
    Input(Uuid),
    /// the answer to this `initialize`
    Handshake(Id),
}

/// Something that may leave only once a job is stored (contract §11). No lock is held meanwhile, since
/// a store may take its time.
pub(crate) struct AfterUnlock {
    stored: StoreFuture<()>,
    then: Box<dyn FnOnce() + Send>,
}

impl AfterUnlock {
    pub(crate) fn new(stored: StoreFuture<()>, then: impl FnOnce() + Send + 'static) -> Self {
        AfterUnlock { stored, then: Box::new(then) }
    }

    /// Waits for the store where it has to, and goes on.
    pub(crate) fn run(self, registry: &Registry) {
        registry.when(self.stored, |stored| {
            if let Err(error) = stored {
                // The call goes on all the same; only a restart of the proxy would lose it.
                warn!("a job is kept in memory alone: {error}");
            }
            (self.then)();
        });
    }
}
