//! Lists on their way to the client: edited, kept, repeated; and the pages that we read ourselves.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tracing::debug;

use crate::config::Budget;
use crate::mcp::meta::modern_meta;
use crate::mcp::method::Method;
use crate::rpc::id::Id;
use crate::rpc::lines::keep;
use crate::rpc::splice::Edits;
use crate::upstream::Outgoing;

use super::catalog::{Held, Next};
use super::deadlines::Due;
use super::lists::{ListKey, ListKind};
use super::pending::{Asker, Pending, What};
use super::session::{Session, State};
use crate::mcp::compose::result_line;
use crate::rpc::message::{Message, text_of};

/// A list that the server leaves unanswered for so long is repeated from memory (§1.1.5).
const LIST_PATIENCE: Duration = Duration::from_secs(2);
/// How long the pages that we read ourselves may take, since answers may wait for them.
const WALK: Duration = Duration::from_secs(5);

impl Session {
    pub(super) fn list_asked(&self, state: &mut State, key: ListKey, inside: &Id) -> What {
        if key.kind == ListKind::Tools {
            state.catalog.was_asked();
        }
        let repeat = state.lists.get(&key).map(|_| {
            self.add_deadline(state, Instant::now() + LIST_PATIENCE, Due::List(inside.clone()))
        });
        What::List { key, repeat }
    }

    pub(super) fn list_answered(
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
            return self.late_list(state, key, message, result);
        };
        if key.kind != ListKind::Tools {
            return self.list_out(state, key, Some(asker), message);
        }
        let cursor = state.catalog.note(result);
        if !key.is_first_page() {
            return self.list_out(state, key, Some(asker), message);
        }
        let held = Box::new(Held { key, asker, line: keep(message.line) });
        match state.catalog.hold(cursor, held) {
            Ok(Some(cursor)) => {
                self.bound_walk(state);
                self.read_page(state, Some(&cursor));
            }
            Ok(None) => {}
            Err(held) => self.list_out(state, held.key, Some(held.asker), message),
        }
    }

    /// The answer to a list that was repeated from memory meanwhile: if it is another one, the
    /// client must ask again.
    fn late_list(&self, state: &mut State, key: ListKey, message: &Message, result: &str) {
        if key.kind == ListKind::Tools {
            state.catalog.note(result);
        }
        if state.lists.differs(&key, result) {
            self.tell_changed(key.kind);
        }
        self.list_out(state, key, None, message);
    }

    /// Edits a list for the client, keeps it, and sends it.
    pub(super) fn list_out(
        &self,
        state: &mut State,
        key: ListKey,
        asker: Option<Asker>,
        message: &Message,
    ) {
        let Some(result) = message.envelope.result else { return };
        let edits = match key.kind {
            ListKind::Tools => {
                let policies = &self.config.policy;
                let client = &state.client.policy;
                let deferrable = |name: &str| {
                    policies.budget(&policies.tool(name), client, None, None).0 != Budget::Never
                };
                let how = (key.is_first_page(), self.makes_param_headers());
                state.catalog.edit_page(message.text, result, how, deferrable)
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
        self.bound_walk(state);
        self.read_page(state, None);
    }

    /// What is held while we read the pages must not wait for ever.
    fn bound_walk(&self, state: &mut State) {
        let walk = state.catalog.walk();
        self.add_deadline(state, Instant::now() + WALK, Due::Walk(walk));
    }

    /// The pages take too long: what is known has to do.
    pub(super) fn walk_due(&self, state: &mut State, walk: u64) {
        if state.catalog.is_reading() && state.catalog.walk() == walk {
            self.catalog_page(state, None);
        }
    }

    pub(super) fn read_page(&self, state: &mut State, cursor: Option<&str>) {
        let mut members = Vec::new();
        let client = &state.client;
        if client.is_modern() {
            let meta = modern_meta(&client.protocol, &client.name, &client.version);
            members.push(format!(r#""_meta":{meta}"#));
        }
        members.extend(cursor.map(|cursor| format!(r#""cursor":{cursor}"#)));
        let params = (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")));
        let id = state.pending.own_id();
        let headers = state.headers.clone();
        let out = Outgoing::own_request(&id, Method::ListTools, params.as_deref(), headers);
        state.pending.insert(id.clone(), Pending::own(What::Catalog));
        if self.to_server(state, out).is_err() {
            state.pending.remove(&id);
            self.catalog_page(state, None);
        }
    }

    pub(super) fn catalog_page(&self, state: &mut State, result: Option<&str>) {
        match state.catalog.page_read(result) {
            Next::Read(cursor) => self.read_page(state, Some(&cursor)),
            Next::Done(reading) => {
                for Held { key, asker, line } in reading.held {
                    self.list_out(state, key, Some(asker), &Message::of(&line));
                }
                self.take_up(reading.calls);
            }
        }
    }

    /// Calls that waited for the names of our tools go where they belong.
    pub(super) fn take_up(&self, calls: Vec<(Asker, Bytes)>) {
        let Some(me) = self.me.upgrade().filter(|_| !calls.is_empty()) else { return };
        // Whoever calls this holds the lock.
        tokio::spawn(async move {
            for (asker, line) in calls {
                me.held_request(&Message::of(&line), asker);
            }
        });
    }

    /// The server has not answered a list for 2 s. If it may be blocked, the last answer goes out
    /// again (§1.1.5); else it is given more time.
    pub(super) fn repeat_list(&self, state: &mut State, id: &Id) {
        let Some(pending) = state.pending.get(id) else { return };
        let What::List { key, .. } = &pending.what else { return };
        if state.pending.calls() == 0 && !self.upstream.is_starting() {
            let again = Instant::now() + LIST_PATIENCE;
            let slot = self.add_deadline(state, again, Due::List(id.clone()));
            if let Some(Pending { what: What::List { repeat, .. }, .. }) = state.pending.get_mut(id)
            {
                *repeat = Some(slot);
            }
            return;
        }
        if let Some(result) = state.lists.get(key)
            && let Some(asker) = state.pending.detach(id)
        {
            debug!(id = &*asker.id, "the server is silent, the last list is given again");
            self.answer(&asker, &result_line(&asker.id, text_of(&result)));
        }
    }
}
