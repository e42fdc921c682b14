//! One client and one server, and every message between them.
//!
//! Both sides call in with lines, in order; each line is handled at once, under one lock, and
//! leaves by a queue. So the order of the messages of a peer is kept, and of two things that
//! happen to a call at the same time one comes first: that is the whole hand-over between a
//! result and the end of its budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::debug;
use uuid::Uuid;

use crate::config::{Config, ToolPolicy};
use crate::jobs::job::Caller;
use crate::jobs::registry::Registry;
use crate::rpc::lines::Line;
use crate::rpc::message::Id;
use crate::rpc::outbox::Outbox;
use crate::rpc::splice::{Edits, with_id};
use crate::upstream::process::SpawnError;
use crate::upstream::supervisor::{Delivery, Supervisor};
use crate::upstream::{End, Events};

use super::call::Call;
use super::catalog::Catalog;
use super::client::Client;
use super::deadlines::{Deadlines, Due};
use super::lanes::Lane;
use super::lists::{ListKind, Lists};
use super::message::{Message, with_text};
use super::patience::Patience;
use super::pending::{Asker, Pendings, Recent};
use super::questions::Questions;
use super::revival::Settings;

/// Requests that are over and remembered, so that what comes late for them is dropped.
pub(super) const STALE: usize = 1024;
/// The relay between one client and one server.
pub struct Session {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) upstream: Arc<Supervisor>,
    /// the way to the client
    pub(super) client: Arc<Outbox>,
    pub(super) caller: Caller,
    pub(super) patience: Patience,
    pub(super) me: Weak<Session>,
    state: Mutex<State>,
    /// wakes the task that waits for the next deadline
    pub(super) sooner: Notify,
    /// fired when a request has been answered
    pub(super) answered: Notify,
    /// fired when the server can't be started at all
    pub(super) failed: Notify,
}

/// All that changes, under one lock.
pub struct State {
    pub client: Arc<Client>,
    pub pending: Pendings,
    pub deadlines: Deadlines<Due>,
    pub catalog: Catalog,
    pub lists: Lists,
    pub settings: Settings,
    /// lists of which the client was told that they changed, in this life of the server
    pub changed: Vec<ListKind>,
    /// calls in the background whose question is not answered
    pub parked: HashMap<Uuid, Call>,
    /// polls of jobs that wait, by the client's id
    pub waits: HashMap<Id, Waiting>,
    /// policies by tool, so that globs are matched once
    pub policies: HashMap<Arc<str>, Arc<ToolPolicy>>,
    /// the lines of tools with `max_concurrent`
    pub lanes: HashMap<Arc<str>, Lane>,
    pub questions: Questions,
    /// the client's ids of calls whose server's answer it does not get: a late cancel is ignored
    parted: Recent,
    /// why there will never be a server
    pub(super) failure: Option<Arc<str>>,
}

/// A poll that waits.
pub struct Waiting {
    pub task: AbortHandle,
    pub since: Instant,
    pub client: Arc<Client>,
}

impl Session {
    /// A session whose upstream is made by `upstream`, which gets a handle on the session for
    /// its events. Nothing is started.
    pub fn new(
        config: Arc<Config>,
        registry: Arc<Registry>,
        client: Arc<Outbox>,
        caller: Caller,
        upstream: impl FnOnce(Weak<dyn Events>) -> Arc<Supervisor>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Session>| Session {
            upstream: upstream(me.clone()),
            state: Mutex::new(State {
                client: Client::unknown(&config.policy),
                pending: Pendings::default(),
                deadlines: Deadlines::default(),
                catalog: Catalog::new(&config.jobs.tool_prefix),
                lists: Lists::default(),
                settings: Settings::default(),
                changed: Vec::new(),
                parked: HashMap::new(),
                waits: HashMap::new(),
                policies: HashMap::new(),
                lanes: HashMap::new(),
                questions: Questions::default(),
                parted: Recent::default(),
                failure: None,
            }),
            config,
            registry,
            client,
            caller,
            patience: Patience::default(),
            me: me.clone(),
            sooner: Notify::new(),
            answered: Notify::new(),
            failed: Notify::new(),
        })
    }

    /// Starts the server.
    pub fn start(&self) -> Result<(), SpawnError> {
        self.upstream.start()
    }

    /// What to wait for until there is room on the way to the server, and for what we answer
    /// ourselves; `None` where there is.
    pub fn room(&self) -> Option<impl Future<Output = ()>> {
        let there_is = self.upstream.has_room() && self.client.has_room();
        (!there_is).then_some(async {
            self.upstream.room().await;
            self.client.answers_room().await;
        })
    }

    /// Ends the server.
    pub async fn stop(&self) {
        self.upstream.stop().await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the session is held")
    }

    /// Sends what the server must get, starting it if need be. The error is one sentence.
    pub(super) fn to_server(&self, state: &mut State, message: &Bytes) -> Result<(), String> {
        match self.upstream.send(message) {
            Ok(Delivery::Sent | Delivery::Waiting) => Ok(()),
            Ok(Delivery::Started) => {
                self.revive(state);
                Ok(())
            }
            Err(unavailable) => Err(unavailable.0),
        }
    }

    /// A request that could not be sent is answered with the cause.
    pub(super) fn refuse(&self, state: &mut State, inside: &Id, cause: &str) {
        if let Some(pending) = state.pending.remove(inside) {
            self.lost_request(state, pending, cause, false);
        }
    }

    /// Sends the server's answer on, under the id that the client wrote.
    pub(super) fn pass_answer(&self, asker: Option<&Asker>, message: &Message) {
        let Some(asker) = asker else { return };
        if message.id() == &*asker.id {
            self.answer(asker, message.line);
        } else {
            self.answer(asker, &with_id(message.text, message.id(), &asker.id).into());
        }
    }

    /// Sends an answer to whoever asked.
    pub(super) fn answer(&self, asker: &Asker, line: &Bytes) {
        debug!(to = "client", id = &*asker.id, bytes = line.len());
        asker.reply.send(line);
        self.note_answered();
    }

    /// A request is over, with an answer or without.
    pub(super) fn note_answered(&self) {
        self.answered.notify_one();
    }

    pub(super) fn answer_edited(&self, asker: &Asker, message: &Message, mut edits: Edits) {
        if message.id() != &*asker.id {
            edits.replace(message.text, message.id(), &*asker.id);
        }
        self.answer(asker, &message.edited(edits));
    }
}

impl Events for Session {
    fn message(&self, line: Line) {
        match line {
            Line::Whole(line) => {
                with_text(line, |line, text| self.server_line(line, text));
            }
            Line::TooLong { head, tail, length } => self.server_too_long(&head, &tail, length),
        }
    }

    fn lost(&self, end: &End) {
        self.server_lost(end);
    }
}

impl State {
    /// The client has got something else than the server's answer, or gave up: §4.3.
    pub fn part(&mut self, asker: &Asker) {
        if let Some(id) = asker.key() {
            self.parted.insert(id);
        }
    }

    pub fn has_parted(&self, outside: &Id) -> bool {
        self.parted.contains(outside)
    }
}
