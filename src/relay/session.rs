//! One client and one server, and every message between them.
//!
//! Both sides call in with lines, in order; each line is handled at once, under one lock, and
//! leaves by a queue. So the order of the messages of a peer is kept, and of two things that
//! happen to a call at the same time one comes first: that is the whole hand-over between a
//! result and the end of its budget.

use std::collections::{HashMap, HashSet, VecDeque};
use std::str::from_utf8;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use crate::config::{Budget, Config, ToolPolicy};
use crate::downstream::reply::Reply;
use crate::jobs::handle::seconds;
use crate::jobs::job::{Caller, Outcome};
use crate::jobs::registry::Registry;
use crate::rpc::lines::{Line, keep};
use crate::rpc::message::{Envelope, Id, Kind, quoted};
use crate::rpc::object::Members;
use crate::rpc::outbox::Outbox;
use crate::rpc::params::{Params, modern_meta};
use crate::rpc::splice::{Edits, with_id};
use crate::upstream::process::SpawnError;
use crate::upstream::supervisor::{Delivery, Supervisor};
use crate::upstream::{End, Events};

use super::call::Lane;
use super::catalog::{Catalog, Held, Next};
use super::client::Client;
use super::deadlines::{Deadlines, Slot};
use super::greeting::Greeting;
use super::lists::{ListKey, ListKind, Lists};
use super::patience::Patience;
use super::pending::{Asker, Pending, Pendings, Token, What};
use super::revival::{Settings, Step};

/// A list that the server leaves unanswered for so long is repeated from memory (§1.1.5).
const LIST_PATIENCE: Duration = Duration::from_secs(2);
/// Requests of a server that is gone, whose late answers are dropped.
const STALE: usize = 1024;
/// How much of a line that is no JSON-RPC is shown in the log.
const SHOWN: usize = 200;

/// Codes of JSON-RPC that are ours to answer with.
pub const INVALID_REQUEST: i32 = rmcp::model::ErrorCode::INVALID_REQUEST.0;
pub const INTERNAL_ERROR: i32 = rmcp::model::ErrorCode::INTERNAL_ERROR.0;

/// What becomes of jobs that still run when the proxy ends (§11).
const INTERRUPTED: &str =
    "interrupted: the proxy ended. Outcome unknown: check before you repeat it.";

/// What may be due.
#[derive(Debug)]
pub enum Due {
    /// the budget of a call, or the longest time that it may run
    Call(Id),
    /// a list that the server has not answered
    List(Id),
    /// the answer to this `initialize`
    Handshake(Id),
}

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
    sooner: Notify,
    /// fired when a request has been answered
    answered: Notify,
    /// fired when the server can't be started at all
    failed: Notify,
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
    /// polls of jobs that wait, by the client's id
    pub waits: HashMap<Id, AbortHandle>,
    /// policies by tool, so that globs are matched once
    pub policies: HashMap<Arc<str>, Arc<ToolPolicy>>,
    /// the lines of tools with `max_concurrent`
    pub lanes: HashMap<Arc<str>, Lane>,
    /// the server's requests that the client has not answered
    asked_of_client: HashSet<Id>,
    /// those of a server that is gone: answers to them are dropped
    stale: VecDeque<Id>,
    /// why there will never be a server
    failure: Option<Arc<str>>,
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
                waits: HashMap::new(),
                policies: HashMap::new(),
                lanes: HashMap::new(),
                asked_of_client: HashSet::new(),
                stale: VecDeque::new(),
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

    /// Waits until there is room on the way to the server.
    pub async fn room(&self) {
        self.upstream.room().await;
    }

    /// Ends the server.
    pub async fn stop(&self) {
        self.upstream.stop().await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the session is held")
    }

    // ---------------------------------------------------------------- from the client

    /// A line of the client.
    pub fn from_client(self: &Arc<Self>, line: Line) {
        match line {
            Line::Whole(line) => {
                let line = valid(line);
                self.client_line(&line, text_of(&line));
            }
            Line::TooLong { head, tail, length } => {
                warn!(bytes = length, "dropped a message of the client that is above max_message");
                if let Some(id) = id_at_an_end(&head, &tail) {
                    let message = self.too_long("The request", length);
                    self.client.push(&error_line(&id, INVALID_REQUEST, &message));
                }
            }
        }
    }

    fn client_line(self: &Arc<Self>, line: &Bytes, text: &str) {
        if text.starts_with('[') {
            return self.client_batch(line, text);
        }
        match Envelope::parse(text) {
            Ok(envelope) if envelope.kind() != Kind::Unknown => {
                let reply = Reply::Line(self.client.clone());
                self.client_message(&Message { line, text, envelope }, reply);
            }
            _ => warn!("skipped a line of the client that is no JSON-RPC: {}", shown(text)),
        }
    }

    /// One message of the client, alone or out of a batch.
    pub(super) fn client_message(self: &Arc<Self>, message: &Message, reply: Reply) {
        let method = message.envelope.method_name();
        message.trace("client", &method);
        match (message.envelope.kind(), message.envelope.id) {
            (Kind::Request, Some(raw)) => match Id::parse(raw) {
                Some(id) => {
                    let asker = Asker { id: raw.into(), reply };
                    self.client_request(message, &method, id, asker);
                }
                // An id that can't be an id: the server's to judge, and never deferred.
                None => self.upstream.send_if_up(message.line),
            },
            (Kind::Response, Some(raw)) => self.client_response(message.line, raw),
            _ => self.client_notification(message, &method),
        }
    }

    fn client_request(self: &Arc<Self>, message: &Message, method: &str, id: Id, asker: Asker) {
        let params = Params::parse(message.envelope.params);
        let mut state = self.state();
        if let Some(cause) = &state.failure {
            return self.answer(&asker, &error_line(&asker.id, INTERNAL_ERROR, cause));
        }
        self.meet(&mut state, &params);
        if method == "tools/call" {
            return self.call(state, message, &params, id, asker);
        }
        if method == "ping" && (state.pending.calls() > 0 || self.upstream.is_starting()) {
            return self.answer(&asker, &result_line(&asker.id, "{}"));
        }
        state.settings.note(method, message.line, &message.envelope);
        let what = match method {
            "initialize" => self.opening(&mut state, &params, &id),
            "server/discover" => What::Discover,
            "subscriptions/listen" => {
                What::Listen { line: keep(message.line), acknowledged: false }
            }
            _ => match ListKey::of(method, message.envelope.params) {
                Some(key) => self.list_asked(&mut state, key, &id),
                None => What::Plain,
            },
        };
        self.send_request(&mut state, message, &params, id, asker, what);
    }

    /// A modern request says anew who sends it.
    fn meet(&self, state: &mut State, params: &Params) {
        let Some(protocol) = params.protocol_version() else { return };
        if !state.client.is(params.client_info(), &protocol) {
            state.client = Client::new(&self.config.policy, params.client_info(), &protocol);
        }
    }

    fn opening(&self, state: &mut State, params: &Params, id: &Id) -> What {
        let version = params.text("protocolVersion").unwrap_or_default();
        state.client = Client::new(&self.config.policy, params.get("clientInfo"), &version);
        let at = Instant::now() + self.config.upstream.start_timeout;
        self.add_deadline(state, at, Due::Handshake(id.clone()));
        What::Initialize
    }

    fn list_asked(&self, state: &mut State, key: ListKey, id: &Id) -> What {
        if key.kind == ListKind::Tools {
            state.catalog.was_asked();
        }
        let inside = state.pending.inside_id(id);
        let repeat = state
            .lists
            .get(&key)
            .map(|_| self.add_deadline(state, Instant::now() + LIST_PATIENCE, Due::List(inside)));
        What::List { key, repeat }
    }

    /// Sends a request that is no call; id and token are renamed where they collide.
    fn send_request(
        self: &Arc<Self>,
        state: &mut State,
        message: &Message,
        params: &Params,
        id: Id,
        asker: Asker,
        what: What,
    ) {
        let mut edits = Edits::new();
        let inside = state.pending.inside_id(&id);
        let renamed = inside != id;
        if renamed {
            edits.replace(message.text, message.id(), inside.to_json());
        }
        let raw_token = params.progress_token();
        let token = raw_token.map(|raw| name_token(state, message, raw, &mut edits));
        let out = message.edited(edits);
        let pending = Pending { asker: Some(asker), renamed, token, what };
        state.pending.insert(inside.clone(), pending);
        if let Err(cause) = self.to_server(state, &out) {
            self.refuse(state, &inside, &cause);
        }
    }

    fn client_notification(self: &Arc<Self>, message: &Message, method: &str) {
        match method {
            "notifications/cancelled" => return self.cancelled(message),
            "notifications/initialized" => {
                self.state().settings.note(method, message.line, &message.envelope);
            }
            _ => {}
        }
        self.upstream.send_if_up(message.line);
    }

    fn client_response(&self, line: &Bytes, id: &str) {
        if let Some(id) = Id::parse(id) {
            let mut state = self.state();
            if !state.asked_of_client.remove(&id) && state.stale.contains(&id) {
                debug!("dropped an answer to a server that is gone");
                return;
            }
        }
        self.upstream.send_if_up(line);
    }

    // ---------------------------------------------------------------- to the server

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

    // ---------------------------------------------------------------- from the server

    fn server_line(&self, line: &Bytes, text: &str) {
        if text.starts_with('[') {
            return self.server_batch(line, text);
        }
        match Envelope::parse(text) {
            // Log lines may be JSON too, so the version must be there.
            Ok(envelope)
                if envelope.version == Some("\"2.0\"") && envelope.kind() != Kind::Unknown =>
            {
                self.server_message(&Message { line, text, envelope });
            }
            _ => warn!("skipped a line of the server that is no JSON-RPC: {}", shown(text)),
        }
    }

    /// One message of the server, alone or out of a batch.
    pub(super) fn server_message(&self, message: &Message) {
        self.upstream.heard();
        let method = message.envelope.method_name();
        message.trace("server", &method);
        match (message.envelope.kind(), message.envelope.id) {
            (Kind::Response, Some(raw)) => match Id::parse(raw) {
                Some(id) => self.server_response(message, &id),
                // An error about a message that the server could not read.
                None => drop(self.client.push(message.line)),
            },
            (Kind::Request, Some(raw)) => {
                if let Some(id) = Id::parse(raw) {
                    self.state().asked_of_client.insert(id);
                }
                self.client.push(message.line);
            }
            _ => self.server_notification(message, &method),
        }
    }

    fn server_response(&self, message: &Message, id: &Id) {
        let mut state = self.state();
        let Some(Pending { asker, what, renamed, .. }) = state.pending.remove(id) else {
            debug!(id = message.envelope.id, "dropped an answer that nobody waits for");
            return;
        };
        if !matches!(what, What::Initialize | What::Discover | What::Revival(_)) {
            self.upstream.healthy();
        }
        match what {
            What::Call(call) => self.call_answered(&mut state, *call, asker, message),
            What::Initialize | What::Discover => self.greeted(&mut state, asker, message),
            What::List { key, repeat } => {
                if let Some(slot) = repeat {
                    state.deadlines.remove(slot);
                }
                self.list_answered(&mut state, key, asker, message);
            }
            What::Catalog => self.catalog_page(&mut state, message.envelope.result),
            What::Revival(step) => self.step_done(&mut state, step, &message.envelope),
            What::Listen { .. } => self.listen_ended(asker, renamed, message),
            What::Plain => self.pass_answer(asker.as_ref(), message),
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

    /// The greeting of the server: it is noted, and our paragraph is added (§1.1.3).
    fn greeted(&self, state: &mut State, asker: Option<Asker>, message: &Message) {
        let Some(asker) = asker else { return };
        let mut edits = Edits::new();
        if let Some(greeting) = message.envelope.result.and_then(Greeting::parse) {
            if let Some(protocol) = greeting.protocol() {
                state.client = state.client.on(&protocol);
            }
            if self.config.jobs.announce && greeting.has_tools() {
                greeting.announce(message.text, &mut edits);
            }
        }
        self.answer_edited(&asker, message, edits);
    }

    fn answer_edited(&self, asker: &Asker, message: &Message, mut edits: Edits) {
        if message.id() != &*asker.id {
            edits.replace(message.text, message.id(), &*asker.id);
        }
        self.answer(asker, &message.edited(edits));
    }

    // ---------------------------------------------------------------- lists

    fn list_answered(
        &self,
        state: &mut State,
        key: ListKey,
        asker: Option<Asker>,
        message: &Message,
    ) {
        let Some(result) = message.envelope.result else {
            return self.pass_answer(asker.as_ref(), message);
        };
        let Some(asker) = asker else {
            return self.list_out(state, key, None, message);
        };
        if key.kind != ListKind::Tools {
            return self.list_out(state, key, Some(asker), message);
        }
        let cursor = state.catalog.note(result);
        if !key.is_first_page() {
            return self.list_out(state, key, Some(asker), message);
        }
        match state.catalog.hold(cursor, Held { key, asker, line: keep(message.line) }) {
            Ok(Some(cursor)) => self.read_page(state, Some(&cursor)),
            Ok(None) => {}
            Err(Held { key, asker, .. }) => self.list_out(state, key, Some(asker), message),
        }
    }

    /// Edits a list for the client, keeps it, and sends it.
    fn list_out(&self, state: &mut State, key: ListKey, asker: Option<Asker>, message: &Message) {
        let Some(result) = message.envelope.result else { return };
        let edits = match key.kind {
            ListKind::Tools => {
                let policies = &self.config.policy;
                let client = &state.client.policy;
                let deferrable = |name: &str| {
                    policies.budget(&policies.tool(name), client, None, None).0 != Budget::Never
                };
                state.catalog.edit_page(message.text, result, key.is_first_page(), deferrable)
            }
            _ => Edits::new(),
        };
        let out = message.edited(edits);
        let edited = Message::of(&out);
        if let Some(shown) = edited.envelope.result {
            state.lists.put(key, &out.slice_ref(shown.as_bytes()), result);
        }
        self.pass_answer(asker.as_ref(), &edited);
    }

    /// Asks for the tools ourselves, so that the names of ours are sure (§1.1.2).
    pub(super) fn read_catalog(&self, state: &mut State) {
        state.catalog.read_from_start();
        self.read_page(state, None);
    }

    fn read_page(&self, state: &mut State, cursor: Option<&str>) {
        let mut members = Vec::new();
        let client = &state.client;
        if client.is_modern() {
            let meta = modern_meta(&client.protocol, &client.name, &client.version);
            members.push(format!(r#""_meta":{meta}"#));
        }
        members.extend(cursor.map(|cursor| format!(r#""cursor":{cursor}"#)));
        let params = (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")));
        let id = state.pending.own_id();
        let line = request_line(&id, "tools/list", params.as_deref());
        state.pending.insert(id.clone(), Pending::own(What::Catalog));
        if self.to_server(state, &line).is_err() {
            state.pending.remove(&id);
            self.catalog_page(state, None);
        }
    }

    fn catalog_page(&self, state: &mut State, result: Option<&str>) {
        match state.catalog.page_read(result) {
            Next::Read(cursor) => self.read_page(state, Some(&cursor)),
            Next::Done(held) => {
                for Held { key, asker, line } in held {
                    self.list_out(state, key, Some(asker), &Message::of(&line));
                }
            }
        }
    }

    /// The server has not answered a list for 2 s: the last answer goes out again (§1.1.5).
    fn repeat_list(&self, state: &mut State, id: &Id) {
        let Some(pending) = state.pending.get(id) else { return };
        let What::List { key, .. } = &pending.what else { return };
        if let Some(result) = state.lists.get(key)
            && let Some(asker) = state.pending.detach(id)
        {
            debug!(id = &*asker.id, "the server is silent, the last list is given again");
            self.answer(&asker, &result_line(&asker.id, text_of(&result)));
        }
    }

    // ---------------------------------------------------------------- notifications

    fn server_notification(&self, message: &Message, method: &str) {
        match method {
            "notifications/progress" => self.progress(message),
            "notifications/cancelled" => self.server_cancels(message),
            _ => {
                if let Some(line) = self.subscribed(message, method) {
                    self.client.push(&line);
                }
            }
        }
    }

    /// Progress goes to a client that waits under its own token, and into the job of a call that
    /// nobody waits for; any other is dropped (§1.1.1, §4.3).
    fn progress(&self, message: &Message) {
        let params = Params::parse(message.envelope.params);
        let Some(raw) = params.get("progressToken") else { return };
        let mut state = self.state();
        let Some(pending) = Id::parse(raw).and_then(|token| state.pending.by_token(&token)) else {
            debug!("dropped progress that nobody asked for");
            return;
        };
        if let What::Call(call) = &mut pending.what {
            call.progress(&params);
        }
        let outside = pending.token.as_ref().and_then(|token| token.outside.as_deref());
        match outside {
            Some(token) if pending.asker.is_some() => {
                let mut edits = Edits::new();
                if token != raw {
                    edits.replace(message.text, raw, token);
                }
                self.client.push(&message.edited(edits));
            }
            _ => {}
        }
    }

    /// The server takes back a request of its own, or ends a subscription.
    fn server_cancels(&self, message: &Message) {
        let params = Params::parse(message.envelope.params);
        let raw = params.get("requestId");
        let mut edits = Edits::new();
        if let (Some(raw), Some(id)) = (raw, raw.and_then(Id::parse)) {
            let mut state = self.state();
            state.asked_of_client.remove(&id);
            let listens = state.pending.get(&id).map(|p| matches!(p.what, What::Listen { .. }));
            if listens == Some(true)
                && let Some(asker) = state.pending.remove(&id).and_then(|pending| pending.asker)
                && raw != &*asker.id
            {
                edits.replace(message.text, raw, &*asker.id);
            }
        }
        self.client.push(&message.edited(edits));
    }

    /// A notification that may belong to a subscription: it carries the client's own id of it, and
    /// is acknowledged to the client once, however often the server was started anew.
    fn subscribed(&self, message: &Message, method: &str) -> Option<Bytes> {
        let acknowledges = method == "notifications/subscriptions/acknowledged";
        let mut state = self.state();
        if !acknowledges && !state.pending.any_renamed() {
            return Some(message.line.clone());
        }
        let Some(raw) = message.envelope.params.and_then(subscription_id) else {
            return Some(message.line.clone());
        };
        let pending = Id::parse(raw).and_then(|id| state.pending.get_mut(&id));
        let Some(Pending { what: What::Listen { acknowledged, .. }, asker, .. }) = pending else {
            return Some(message.line.clone());
        };
        if acknowledges && std::mem::replace(acknowledged, true) {
            return None;
        }
        let mut edits = Edits::new();
        if let Some(asker) = asker
            && raw != &*asker.id
        {
            edits.replace(message.text, raw, &*asker.id);
        }
        Some(message.edited(edits))
    }

    fn listen_ended(&self, asker: Option<Asker>, renamed: bool, message: &Message) {
        let Some(asker) = asker else { return };
        let mut edits = Edits::new();
        if renamed && let Some(raw) = message.envelope.result.and_then(subscription_id) {
            edits.replace(message.text, raw, &*asker.id);
        }
        self.answer_edited(&asker, message, edits);
    }

    // ---------------------------------------------------------------- time

    /// Adds a deadline and wakes the task that waits for it if need be.
    pub(super) fn add_deadline(&self, state: &mut State, at: Instant, due: Due) -> Slot {
        let (slot, sooner) = state.deadlines.add(at, due);
        if sooner {
            self.sooner.notify_one();
        }
        slot
    }

    /// Acts on deadlines when their time comes; runs for ever.
    pub async fn keep_time(&self) {
        loop {
            let next = {
                let mut state = self.state();
                for due in state.deadlines.take_due(Instant::now()) {
                    self.due(&mut state, due);
                }
                state.deadlines.set_alarm()
            };
            match next {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.sooner.notified() => {}
                },
                None => self.sooner.notified().await,
            }
        }
    }

    fn due(&self, state: &mut State, due: Due) {
        match due {
            Due::Call(id) => self.call_due(state, &id),
            Due::List(id) => self.repeat_list(state, &id),
            Due::Handshake(id) => self.handshake_due(state, &id),
        }
    }

    fn handshake_due(&self, state: &mut State, id: &Id) {
        let Some(pending) = state.pending.get(id) else { return };
        let cause = format!(
            "the server has not answered initialize for {} (upstream.start_timeout)",
            seconds(self.config.upstream.start_timeout)
        );
        match &pending.what {
            What::Initialize => self.fail_locked(state, &cause),
            What::Revival(Step::Initialize) => {
                warn!("{cause}");
                self.upstream.give_up();
            }
            _ => {}
        }
    }

    // ---------------------------------------------------------------- the end

    /// There will never be a server: requests are answered with the cause, and
    /// [`Session::failed`] returns.
    pub fn fail(&self, cause: &str) {
        self.fail_locked(&mut self.state(), cause);
    }

    fn fail_locked(&self, state: &mut State, cause: &str) {
        state.failure = Some(cause.into());
        for id in state.pending.ids() {
            self.refuse(state, &id, cause);
        }
        self.failed.notify_one();
    }

    /// Waits until it is clear that there is no server; returns why.
    pub async fn failed(&self) -> Arc<str> {
        loop {
            if let Some(cause) = self.state().failure.clone() {
                return cause;
            }
            self.failed.notified().await;
        }
    }

    /// Waits until a request has been answered.
    pub async fn answered(&self) {
        self.answered.notified().await;
    }

    /// Waits until the client waits for nothing any more.
    pub async fn idle(&self) {
        loop {
            {
                let state = self.state();
                if !state.pending.any_asked() && state.waits.is_empty() {
                    return;
                }
            }
            self.answered.notified().await;
        }
    }

    /// The client has gone: whatever waits for it is ended, running jobs are recorded.
    pub fn close(&self) {
        let mut state = self.state();
        for (_, wait) in state.waits.drain() {
            wait.abort();
        }
        for id in state.pending.ids() {
            let Some(pending) = state.pending.remove(&id) else { continue };
            if let What::Call(call) = pending.what
                && let Some(job) = &call.job
            {
                self.registry.finish(job, Outcome::Lost(INTERRUPTED.into()));
            }
        }
    }

    /// The server is gone: what it had to answer is lost.
    fn server_lost(&self, end: &End) {
        let mut state = self.state();
        let probed = state.pending.iter().any(|(_, p)| matches!(p.what, What::Discover));
        if end.never_up && !probed {
            return self.fail_locked(&mut state, &end.cause);
        }
        self.forget_server_requests(&mut state);
        for Held { asker, .. } in state.catalog.abandon() {
            self.answer(&asker, &error_line(&asker.id, INTERNAL_ERROR, &end.cause));
        }
        for id in state.pending.ids() {
            let Some(pending) = state.pending.get(&id) else { continue };
            if pending.survives_the_server() {
                continue;
            }
            let pending = state.pending.remove(&id).expect("looked up above");
            self.lost_request(&mut state, pending, &end.cause, !end.during_start);
        }
    }

    fn forget_server_requests(&self, state: &mut State) {
        let gone: Vec<_> = state.asked_of_client.drain().collect();
        state.stale.extend(gone);
        while state.stale.len() > STALE {
            state.stale.pop_front();
        }
    }

    /// Tells whoever waits for a request that no answer will come.
    pub(super) fn lost_request(
        &self,
        state: &mut State,
        pending: Pending,
        cause: &str,
        reached: bool,
    ) {
        match pending.what {
            What::Call(call) => self.call_lost(state, *call, pending.asker, cause, reached),
            What::List { repeat, .. } => {
                if let Some(slot) = repeat {
                    state.deadlines.remove(slot);
                }
                self.answer_lost(pending.asker.as_ref(), cause);
            }
            What::Catalog => self.catalog_page(state, None),
            What::Revival(_) => {}
            _ => self.answer_lost(pending.asker.as_ref(), cause),
        }
    }

    fn answer_lost(&self, asker: Option<&Asker>, cause: &str) {
        if let Some(asker) = asker {
            self.answer(asker, &error_line(&asker.id, INTERNAL_ERROR, cause));
        }
    }

    /// An answer of the server above `max_message` was dropped: its request fails, nothing else.
    fn server_too_long(&self, head: &[u8], tail: &[u8], length: u64) {
        warn!(bytes = length, "dropped a message of the server that is above max_message");
        let Some(raw) = id_at_an_end(head, tail) else { return };
        let Some(id) = Id::parse(&raw) else { return };
        let mut state = self.state();
        if let Some(pending) = state.pending.remove(&id) {
            let cause = self.too_long("The server's answer", length);
            self.lost_request(&mut state, pending, &cause, true);
        }
    }

    fn too_long(&self, what: &str, length: u64) -> String {
        format!(
            "{what} of {length} bytes is longer than max_message ({} bytes) and was dropped",
            self.config.max_message
        )
    }
}

impl Events for Session {
    fn message(&self, line: Line) {
        match line {
            Line::Whole(line) => {
                let line = valid(line);
                self.server_line(&line, text_of(&line));
            }
            Line::TooLong { head, tail, length } => self.server_too_long(&head, &tail, length),
        }
    }

    fn lost(&self, end: &End) {
        self.server_lost(end);
    }
}

/// A message on its way through.
pub struct Message<'a> {
    pub line: &'a Bytes,
    pub text: &'a str,
    pub envelope: Envelope<'a>,
}

impl<'a> Message<'a> {
    /// A message of our own making.
    pub fn of(line: &'a Bytes) -> Self {
        let text = text_of(line);
        Message { line, text, envelope: Envelope::parse(text).unwrap_or_default() }
    }

    /// The raw id; empty where there is none.
    pub fn id(&self) -> &'a str {
        self.envelope.id.unwrap_or_default()
    }

    /// The bytes to send on.
    pub fn edited(&self, edits: Edits) -> Bytes {
        if edits.is_empty() { self.line.clone() } else { edits.apply(self.text).into() }
    }

    fn trace(&self, from: &str, method: &str) {
        debug!(from, method, id = self.envelope.id, bytes = self.line.len());
    }
}

/// Gives a client's progress token its name inside. `raw` is a slice of the message.
pub(super) fn name_token(
    state: &mut State,
    message: &Message,
    raw: &str,
    edits: &mut Edits,
) -> Token {
    let outside = Id::parse(raw).expect("progress_token() checked it");
    let inside = state.pending.inside_token(&outside);
    if inside != outside {
        edits.replace(message.text, raw, inside.to_json());
    }
    Token { inside, outside: Some(raw.into()) }
}

/// Invalid UTF-8 would kill the other side's reader; it alone is replaced (§1.1).
fn valid(line: Bytes) -> Bytes {
    match from_utf8(&line) {
        Ok(_) => line,
        Err(_) => String::from_utf8_lossy(&line).into_owned().into(),
    }
}

/// The text of a line that went through [`valid`], or that we made.
pub(super) fn text_of(line: &Bytes) -> &str {
    from_utf8(line).unwrap_or_default()
}

/// The start of a line, for the log.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

/// The raw `_meta["io.modelcontextprotocol/subscriptionId"]` of params or a result.
fn subscription_id(object: &str) -> Option<&str> {
    Members::parse(object)?.object("_meta")?.get("io.modelcontextprotocol/subscriptionId")
}

/// The raw id of a message of which only the two ends are left: most writers put it first or last.
fn id_at_an_end(head: &[u8], tail: &[u8]) -> Option<String> {
    let number_or_string = |text: &str| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let raw = values.next()?.ok()?.get();
        Id::parse(raw).map(|_| raw.to_owned())
    };
    let head = String::from_utf8_lossy(head);
    let start = head.split_once("\"id\":").filter(|(before, _)| before.len() < 24);
    if let Some(id) = start.and_then(|(_, rest)| number_or_string(rest)) {
        return Some(id);
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, end) = tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\":")?;
    number_or_string(end).filter(|id| id == end.trim())
}

/// A request of our own.
pub(super) fn request_line(id: &Id, method: &str, params: Option<&str>) -> Bytes {
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"{params}}}"#, id.to_json()).into()
}

/// An answer of our own; `result` is raw JSON.
pub(super) fn result_line(id: &str, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

/// An error of our own.
pub(super) fn error_line(id: &str, code: i32, message: &str) -> Bytes {
    raw_error_line(id, &format!(r#"{{"code":{code},"message":{}}}"#, quoted(message)))
}

/// An error; `error` is raw JSON.
pub(super) fn raw_error_line(id: &str, error: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
}
