//! What a server that was started anew is told, so that it stands where the old one stood
//! (contract §9): the client's own `initialize`, its log level, its subscriptions.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::time::Instant;

use crate::mcp::method::Method;
use crate::rpc::id::Id;
use crate::rpc::lines::keep;

use crate::rpc::message::Envelope;
use crate::rpc::object::Members;
use crate::rpc::splice::with_id;
use crate::upstream::Outgoing;

use super::deadlines::Due;
use super::lists::{ListKey, ListKind};
use super::pending::{Pending, What};
use super::session::{Session, State};
use crate::mcp::compose::notification_line;

/// Subscriptions remembered, at the most.
const SUBSCRIPTIONS: usize = 10_000;

/// What the client has set so far.
#[derive(Default)]
pub struct Settings {
    /// raw `params` of `initialize`
    initialize: Option<Box<str>>,
    /// the line of `notifications/initialized`
    initialized: Option<Bytes>,
    /// raw `params` of the last `logging/setLevel`
    log_level: Option<Box<str>>,
    /// raw `params` of `resources/subscribe`, by raw uri
    subscriptions: BTreeMap<Box<str>, Box<str>>,
}

/// A step of the handshake that waits for the server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Initialize,
    /// a setting that was repeated; its answer says nothing new
    Setting,
    /// a list that may have changed
    Relist(ListKey),
}

impl Settings {
    /// The server refused the client's handshake: there is none to repeat.
    pub fn refused(&mut self) {
        self.initialize = None;
    }

    /// Notes what a message of the client sets.
    pub fn note(&mut self, method: Option<Method>, line: &Bytes, envelope: &Envelope) {
        let params = envelope.params.unwrap_or("{}");
        let uri = || Members::parse(params).and_then(|members| members.get("uri"));
        match method {
            Some(Method::Initialize) => self.initialize = Some(params.into()),
            Some(Method::Initialized) => self.initialized = Some(keep(line)),
            Some(Method::SetLogLevel) => self.log_level = Some(params.into()),
            Some(Method::Subscribe) if self.subscriptions.len() < SUBSCRIPTIONS => {
                if let Some(uri) = uri() {
                    self.subscriptions.insert(uri.into(), params.into());
                }
            }
            Some(Method::Unsubscribe) => {
                if let Some(uri) = uri() {
                    self.subscriptions.remove(uri);
                }
            }
            _ => {}
        }
    }
}

impl Session {
    /// A server was started for a message that waits: begins its handshake.
    pub(super) fn revive(&self, state: &mut State) {
        match state.settings.initialize.clone() {
            // The modern era has no handshake.
            None => self.revived(state),
            // The client brings it itself, as after a `server/discover` that ended the first one.
            Some(_) if state.pending.iter().any(|(_, p)| matches!(p.what, What::Initialize)) => {
                self.upstream.ready();
            }
            Some(params) => {
                let id = self.ask(state, Step::Initialize, Method::Initialize, Some(&params));
                let at = Instant::now() + self.config.start_timeout;
                self.add_deadline(state, at, Due::Handshake(id));
            }
        }
    }

    fn ask(&self, state: &mut State, step: Step, method: Method, params: Option<&str>) -> Id {
        let id = state.pending.own_id();
        state.pending.insert(id.clone(), Pending::own(What::Revival(step)));
        self.upstream.send_first(Outgoing::own_request(&id, method, params, state.headers.clone()));
        id
    }

    /// The answer to a step of the handshake.
    pub(super) fn step_done(&self, state: &mut State, step: Step, envelope: &Envelope) {
        match step {
            Step::Initialize if envelope.error.is_some() => {
                self.upstream.give_up("the server, started again, refused the client's initialize");
            }
            Step::Initialize => self.revived(state),
            Step::Setting => {}
            Step::Relist(key) => {
                if let Some(result) = envelope.result
                    && state.lists.differs(&key, result)
                {
                    self.announce_change(state, key.kind);
                }
            }
        }
    }

    fn revived(&self, state: &mut State) {
        if let Some(line) = &state.settings.initialized {
            self.upstream.send_first(Outgoing::parse(line.clone(), state.headers.clone()));
        }
        if let Some(params) = state.settings.log_level.clone() {
            self.ask(state, Step::Setting, Method::SetLogLevel, Some(&params));
        }
        for params in state.settings.subscriptions.values().cloned().collect::<Vec<_>>() {
            self.ask(state, Step::Setting, Method::Subscribe, Some(&params));
        }
        self.listen_again(state);
        if state.settings.initialize.is_some() {
            self.compare_lists(state);
        }
        self.upstream.ready();
    }

    /// Modern subscriptions are open requests; those of the last server are sent again.
    fn listen_again(&self, state: &mut State) {
        for id in state.pending.ids() {
            if let Some(Pending { what: What::Listen { line, lost, .. }, asker, .. }) =
                state.pending.get_mut(&id)
                && std::mem::take(lost)
            {
                let headers = asker.as_ref().and_then(|asker| asker.headers.clone());
                self.upstream.send_first(Outgoing::parse(relabelled(line, &id), headers));
            }
        }
    }

    /// Asks again for the lists that the client knows: if one differs, the client is told.
    fn compare_lists(&self, state: &mut State) {
        state.changed.clear();
        for key in state.lists.keys() {
            let params = key.cursor.as_ref().map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
            let method = key.kind.method();
            self.ask(state, Step::Relist(key), method, params.as_deref());
        }
    }

    fn announce_change(&self, state: &mut State, kind: ListKind) {
        // Several pages may differ; the client is told once.
        if !state.changed.contains(&kind) {
            state.changed.push(kind);
            self.tell_changed(kind);
        }
    }

    /// Tells the client to ask for a list again.
    pub(super) fn tell_changed(&self, kind: ListKind) {
        self.client.announce(&notification_line(kind.changed(), None));
    }
}

/// A request under the id that the server knows it by.
fn relabelled(line: &Bytes, id: &Id) -> Bytes {
    let text = String::from_utf8_lossy(line);
    match Envelope::parse(&text).ok().and_then(|envelope| envelope.id) {
        Some(old) if Id::parse(old).as_ref() != Some(id) => {
            with_id(&text, old, &id.to_json()).into()
        }
        _ => line.clone(),
    }
}
