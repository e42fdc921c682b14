//! The state of a session: all of it that changes, under one lock.

pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod deadlines;
pub(crate) mod lists;
pub(crate) mod requester;
pub(crate) mod restart_step;
pub(crate) mod server_requests;
pub(crate) mod settings;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use tracing::warn;
use uuid::Uuid;

use crate::config::Config;
use crate::downstream::Batch;
use crate::jobs::registry::Registry;
use crate::jobs::store::StoreFuture;
use crate::relay::state::calls::Calls;
use crate::relay::state::client::Client;
use crate::relay::state::deadlines::Deadlines;
use crate::relay::state::lists::ListState;
use crate::relay::state::server_requests::ServerRequests;
use crate::relay::state::settings::Settings;
use crate::rpc::id::Id;
use crate::upstream::Headers;

/// The state of a session.
pub(crate) struct State {
    pub calls: Calls,
    pub lists: ListState,
    pub client: ClientState,
    pub deadlines: Deadlines<Due>,
    /// why there will never be a server
    pub failure: Option<Arc<str>>,
    /// what is done once the lock is dropped
    pub after_unlock: VecDeque<AfterUnlock>,
}

impl State {
    /// The state of a session that has begun.
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

    /// Whether a client waits for an answer.
    pub(crate) fn has_requester(&self) -> bool {
        self.calls.has_requester() || self.lists.catalog.is_holding()
    }
}

/// What is known of the client.
pub(crate) struct ClientState {
    /// what it said of itself
    pub info: Arc<Client>,
    /// the headers of its last request over HTTP; requests of our own get them too
    pub headers: Headers,
    /// what it has set at the server, to be set again after a restart
    pub settings: Settings,
    /// requests of the server that it has not answered
    pub server_requests: ServerRequests,
}

/// What is done when a deadline is reached.
#[derive(Debug)]
pub(crate) enum Due {
    /// the budget of a call is over, or its `max_runtime`
    Call(Id),
    /// the server has not answered a list request
    List(Id),
    /// we have read the pages of the tools for too long; see `Catalog::reading_number`
    Reading(u64),
    /// the answers that a batch has so far leave
    Batch(Weak<Batch>),
    /// nobody has answered the question of a job
    Input(Uuid),
    /// the server has not answered this `initialize`
    Handshake(Id),
}

/// What is done once a job is stored and the session is not locked (contract §11), such as sending
/// its handle. A store may take its time.
pub(crate) struct AfterUnlock {
    stored: StoreFuture<()>,
    then: Box<dyn FnOnce() + Send>,
}

impl AfterUnlock {
    /// `stored`: the answer of the store to wait for. `then`: what is done after it.
    pub(crate) fn new(stored: StoreFuture<()>, then: impl FnOnce() + Send + 'static) -> Self {
        AfterUnlock { stored, then: Box::new(then) }
    }

    /// Waits for the store where it has not answered yet, and calls `then`.
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
