//! Lists on their way to the client: edited, kept, and sent again.

use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use crate::config::Budget;
use crate::mcp::compose::result_line;
use crate::relay::session::Session;
use crate::relay::state::calls::RequestKind;
use crate::relay::state::lists::{HeldPage, ListKey, ListKind};
use crate::relay::state::requester::Requester;
use crate::relay::state::{Due, State};
use crate::rpc::id::Id;
use crate::rpc::lines::compact;
use crate::rpc::message::{Message, text_of};
use crate::rpc::splice::Edits;

/// How long the server may leave a list unanswered before the last answer is sent again (§1.1.5).
const SILENCE: Duration = Duration::from_secs(2);

impl Session {
    /// A list request of the client: if the server does not answer it, the last answer is sent
    /// again.
    pub(in crate::relay) fn list_asked(
        &self,
        state: &mut State,
        key: ListKey,
        upstream_id: &Id,
    ) -> RequestKind {
        if key.kind == ListKind::Tools {
            state.lists.catalog.mark_asked();
        }
        let repeat = state.lists.cache.get(&key).map(|_| {
            self.add_deadline(state, Instant::now() + SILENCE, Due::List(upstream_id.clone()))
        });
        RequestKind::List { key, repeat }
    }

    /// The server's answer to a list request of the client.
    pub(in crate::relay) fn list_answered(
        &self,
        state: &mut State,
        key: ListKey,
        requester: Option<Requester>,
        message: &Message,
    ) {
        let Some(result) = message.envelope.result else {
            return self.forward_answer(requester.as_ref(), message);
        };
        let Some(requester) = requester else {
            return self.late_list(state, key, message, result);
        };
        if key.kind != ListKind::Tools {
            return self.send_list(state, key, Some(requester), message);
        }
        let cursor = state.lists.catalog.add_page(result);
        if !key.is_first_page() {
            return self.send_list(state, key, Some(requester), message);
        }
        let held = Box::new(HeldPage { key, requester, line: compact(message.line) });
        match state.lists.catalog.hold_page(cursor, held) {
            Ok(Some(cursor)) => {
                self.limit_reading(state);
                self.read_page(state, Some(&cursor));
            }
            Ok(None) => {}
            Err(held) => self.send_list(state, held.key, Some(held.requester), message),
        }
    }

    /// The answer to a list request that got the last answer meanwhile: if it differs, the client
    /// is told to ask again.
    fn late_list(&self, state: &mut State, key: ListKey, message: &Message, result: &str) {
        if key.kind == ListKind::Tools {
            state.lists.catalog.add_page(result);
        }
        if state.lists.cache.differs(&key, result) {
            self.notify_list_changed(key.kind);
        }
        self.send_list(state, key, None, message);
    }

    /// Edits a list for the client, keeps it, and sends it.
    pub(super) fn send_list(
        &self,
        state: &mut State,
        key: ListKey,
        requester: Option<Requester>,
        message: &Message,
    ) {
        let Some(result) = message.envelope.result else { return };
        let edits = match key.kind {
            ListKind::Tools => {
                let policies = &self.config.policy;
                let client = &state.client.info.policy;
                let deferrable = |name: &str| {
                    policies.budget(&policies.tool(name), client, None, None).0 != Budget::Never
                };
                let how = (key.is_first_page(), self.makes_param_headers());
                state.lists.catalog.edit_page(message.text, result, how, deferrable)
            }
            _ => Edits::new(),
        };
        let out = message.edited(edits);
        let edited = Message::parse(&out);
        if let Some(shown) = edited.envelope.result {
            state.lists.cache.put(key, &out.slice_ref(shown.as_bytes()), result);
        }
        self.forward_answer(requester.as_ref(), &edited);
    }

    /// The server has not answered a list for 2 s. If it may be blocked by a call, the last answer
    /// is sent again (§1.1.5); else the server gets more time.
    pub(in crate::relay) fn repeat_list(&self, state: &mut State, id: &Id) {
        let Some(pending) = state.calls.pending.get(id) else { return };
        let RequestKind::List { key, .. } = &pending.kind else { return };
        if state.calls.pending.call_count() == 0 && !self.upstream.is_starting() {
            let again = Instant::now() + SILENCE;
            let slot = self.add_deadline(state, again, Due::List(id.clone()));
            let pending = state.calls.pending.get_mut(id);
            if let Some(RequestKind::List { repeat, .. }) = pending.map(|pending| &mut pending.kind)
            {
                *repeat = Some(slot);
            }
            return;
        }
        if let Some(result) = state.lists.cache.get(key)
            && let Some(requester) = state.calls.pending.take_requester(id)
        {
            debug!(id = &*requester.id, "the server is silent, the last list is given again");
            self.answer(&requester, &result_line(&requester.id, text_of(&result)));
        }
    }
}
