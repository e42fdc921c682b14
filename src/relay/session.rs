//! One client and one server, and every message between them.
//!
//! Both sides call in with lines, in order; each line is handled at once, under one lock, and
//! leaves by a queue. So the order of the messages of a peer is kept, and of two things that
//! happen to a call at the same time one comes first: that is the whole hand-over between a
//! result and the end of its budget.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::debug;
use uuid::Uuid;

use crate::config::{Config, ToolPolicy};
use crate::downstream::{Answer, Channel, Reply};
use crate::jobs::caller::Caller;
use crate::jobs::duplicates::{Fingerprint, fingerprint};
use crate::jobs::job::Outcome;
use crate::jobs::registry::Registry;
use crate::rpc::id::Id;
use crate::rpc::outbox::Room;
use crate::rpc::parsed_line::ParsedLine;
use crate::rpc::splice::{Edits, with_id};
use crate::upstream::supervisor::{Delivery, Supervisor};
use crate::upstream::{End, Events, From, Headers, Loss, StartError, without_details};

use super::call::Call;
use super::catalog::Catalog;
use super::client::Client;
use super::deadlines::{Deadlines, Due};
use super::departure::Away;
use super::lanes::Lanes;
use super::lists::{ListKind, Lists};
use super::patience::Patience;
use super::pending::{Asker, Pendings, Recent};
use super::questions::Questions;
use super::revival::Settings;
use crate::mcp::compose::error_line;
use crate::rpc::message::Message;

/// Requests that are over and remembered, so that what comes late for them is dropped.
pub(super) const STALE: usize = 1024;
/// The relay between one client and one server.
pub struct Session {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) upstream: Arc<Supervisor>,
    /// the way to the client
    pub(super) client: Arc<dyn Channel>,
    pub(super) caller: Caller,
    pub(super) patience: Arc<Patience>,
    /// the lines of tools with `max_concurrent`
    pub(super) lanes: Arc<Lanes>,
    /// calls whose turn has come in a line that is shared
    pub(super) turns: Mutex<VecDeque<(Arc<str>, Id)>>,
    /// what tells this session's jobs from those of others where the server keeps state
    id: Uuid,
    /// without its server the program ends, as over stdio; else the next message starts it again
    pub(super) ends_with_server: bool,
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
    /// what went with the client's last request over HTTP, for requests of our own
    pub headers: Headers,
    pub pending: Pendings,
    pub deadlines: Deadlines<Due>,
    pub catalog: Catalog,
    pub lists: Lists,
    pub settings: Settings,
    /// lists of which the client was told that they changed, in this life of the server
    pub changed: Vec<ListKind>,
    /// calls in the background whose question is not answered
    pub parked: HashMap<Uuid, Call>,
    /// long answers that a client has not taken yet, by the name of its request
    pub undelivered: HashMap<Id, (Call, Outcome)>,
    /// clients that left a call, by the name of their request
    pub away: HashMap<Id, Away>,
    /// polls of jobs that wait, by the name of their request
    pub waits: HashMap<Id, Waiting>,
    /// policies by tool, so that globs are matched once
    pub policies: HashMap<Arc<str>, Arc<ToolPolicy>>,
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

/// What sessions have in common.
#[derive(Clone)]
pub struct Shared {
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
    pub patience: Arc<Patience>,
    /// of the one server, where all sessions have the same
    lanes: Option<Arc<Lanes>>,
}

impl Shared {
    pub fn new(config: Arc<Config>) -> Self {
        let registry = Registry::new(config.jobs.max_running, config.jobs.max_stored);
        let lanes = config.remote().map(|_| Arc::default());
        Shared { config, registry: Arc::new(registry), patience: Arc::default(), lanes }
    }
}

impl Session {
    /// A session whose upstream is made by `upstream`, which gets a handle on the session for
    /// its events. Nothing is started.
    pub fn new(
        shared: &Shared,
        client: Arc<dyn Channel>,
        caller: Caller,
        ends_with_server: bool,
        upstream: impl FnOnce(Weak<dyn Events>) -> Arc<Supervisor>,
    ) -> Arc<Self> {
        let Shared { config, registry, patience, lanes } = shared.clone();
        Arc::new_cyclic(|me: &Weak<Session>| Session {
            upstream: upstream(me.clone()),
            state: Mutex::new(State {
                client: Client::unknown(&config.policy),
                headers: None,
                pending: Pendings::default(),
                deadlines: Deadlines::default(),
                catalog: Catalog::new(&config.jobs.tool_prefix),
                lists: Lists::default(),
                settings: Settings::default(),
                changed: Vec::new(),
                parked: HashMap::new(),
                undelivered: HashMap::new(),
                away: HashMap::new(),
                waits: HashMap::new(),
                policies: HashMap::new(),
                questions: Questions::default(),
                parted: Recent::default(),
                failure: None,
            }),
            config,
            registry,
            client,
            caller,
            patience,
            lanes: lanes.unwrap_or_default(),
            turns: Mutex::default(),
            id: Uuid::new_v4(),
            ends_with_server,
            me: me.clone(),
            sooner: Notify::new(),
            answered: Notify::new(),
            failed: Notify::new(),
        })
    }

    /// Starts the server.
    pub fn start(&self) -> Result<(), StartError> {
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
    pub(super) fn to_server(
        &self,
        state: &mut State,
        message: &Bytes,
        headers: &Headers,
    ) -> Result<(), String> {
        match self.upstream.send(message, headers) {
            Ok(Delivery::Sent | Delivery::Waiting) => Ok(()),
            Ok(Delivery::Started) => {
                self.revive(state);
                Ok(())
            }
            Err(unavailable) => Err(self.shown(&unavailable.0).to_owned()),
        }
    }

    /// What the client may read of a cause: over HTTP it may be anybody.
    pub(super) fn shown<'a>(&self, cause: &'a str) -> &'a str {
        if self.client.shows_details() { cause } else { without_details(cause) }
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
            self.send_answer(asker, &Answer::of(message, message.line));
        } else {
            let line = with_id(message.text, message.id(), &asker.id).into();
            self.send_answer(asker, &Answer::of(message, &line));
        }
    }

    /// Sends a result of ours to whoever asked.
    pub(super) fn answer(&self, asker: &Asker, line: &Bytes) {
        self.send_answer(asker, &Answer::result(line));
    }

    /// Sends an error of ours to whoever asked.
    pub(super) fn answer_error(&self, asker: &Asker, code: i32, message: &str) {
        let line = error_line(&asker.id, code, message);
        self.send_answer(asker, &Answer::error(&line, code));
    }

    pub(super) fn send_answer(&self, asker: &Asker, answer: &Answer) {
        debug!(to = "client", id = &*asker.id, bytes = answer.line.len());
        asker.reply.send(answer);
        self.note_answered();
    }

    /// Sends what is no answer: on the stream of the request that it belongs to, where that is
    /// known, else wherever the client listens. `false`: it reaches nobody.
    pub(super) fn to_client(
        &self,
        state: &State,
        request: Option<&Id>,
        line: &Bytes,
        is_request: bool,
    ) -> bool {
        let asker = request.and_then(|id| state.pending.get(id)?.asker.as_ref());
        if asker.is_some_and(|asker| asker.reply.push(line)) {
            return true;
        }
        if is_request { self.client.ask(line) } else { self.client.notify(line) }
    }

    /// A request is over, with an answer or without.
    pub(super) fn note_answered(&self) {
        self.answered.notify_one();
    }

    pub(super) fn answer_edited(&self, asker: &Asker, message: &Message, mut edits: Edits) {
        if message.id() != &*asker.id {
            edits.replace(message.text, message.id(), &*asker.id);
        }
        self.send_answer(asker, &Answer::of(message, &message.edited(edits)));
    }

    /// What a call is known by if an equal one comes (§7); `None` where it may not be joined.
    pub(super) fn fingerprint(&self, headers: &Headers, params: &str) -> Option<Fingerprint> {
        let own = self.caller.own()?;
        let scope = [own.as_bytes(), self.id.as_bytes()];
        let headers = headers.iter().flat_map(|headers| headers.iter());
        let headers =
            headers.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        fingerprint(scope.into_iter().chain(headers), params)
    }
}

impl Events for Session {
    fn message(&self, heard: &ParsedLine, from: From) {
        self.server_line(heard, &from);
    }

    fn lost(&self, end: &End) {
        self.server_lost(end);
    }

    fn request_lost(&self, id: &Id, loss: Loss) {
        self.request_without_answer(id, loss);
    }

    fn renewed(&self) {
        self.revive(&mut self.state());
    }

    fn primed(&self, request: &Id, retry: Option<Duration>) {
        if let Some(reply) = self.state().reply_of(request) {
            reply.prime(retry);
        }
    }

    fn paused(&self, request: &Id) {
        if let Some(reply) = self.state().reply_of(request) {
            reply.pause();
        }
    }

    fn room(&self) -> Option<Room> {
        self.client.room()
    }
}

impl State {
    /// Where a request's answer goes.
    fn reply_of(&self, request: &Id) -> Option<Reply> {
        Some(self.pending.get(request)?.asker.as_ref()?.reply.clone())
    }

    /// The client has got something else than the server's answer, or gave up: §4.3.
    pub fn part(&mut self, asker: &Asker) {
        self.parted.insert(asker.key.clone());
    }

    pub fn has_parted(&self, outside: &Id) -> bool {
        self.parted.contains(outside)
    }
}
