//! Messages of the server: answers find whoever asked, progress its call, the rest passes.

use bytes::Bytes;
use tracing::{debug, warn};

use crate::rpc::message::{Envelope, Id, Kind};
use crate::rpc::params::Params;
use crate::rpc::splice::Edits;

use super::message::{Message, shown, subscription_id};
use super::pending::{Asker, Pending, What};
use super::session::Session;

impl Session {
    pub(super) fn server_line(&self, line: &Bytes, text: &str) {
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

    pub(super) fn server_response(&self, message: &Message, id: &Id) {
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

    pub(super) fn server_notification(&self, message: &Message, method: &str) {
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
    pub(super) fn progress(&self, message: &Message) {
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
    pub(super) fn server_cancels(&self, message: &Message) {
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
    pub(super) fn subscribed(&self, message: &Message, method: &str) -> Option<Bytes> {
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

    pub(super) fn listen_ended(&self, asker: Option<Asker>, renamed: bool, message: &Message) {
        let Some(asker) = asker else { return };
        let mut edits = Edits::new();
        if renamed && let Some(raw) = message.envelope.result.and_then(subscription_id) {
            edits.replace(message.text, raw, &*asker.id);
        }
        self.answer_edited(&asker, message, edits);
    }
}
