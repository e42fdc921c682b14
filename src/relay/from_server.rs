//! Messages of the server: answers find whoever asked, progress its call, the rest passes.

use tracing::{debug, warn};

use crate::mcp::params::Params;
use crate::rpc::id::Id;
use crate::rpc::message::Kind;
use crate::rpc::parsed_line::ParsedLine;
use crate::rpc::splice::Edits;
use crate::upstream::From;

use crate::mcp::compose::error_line;

use crate::mcp::error_code::METHOD_NOT_FOUND;

use crate::mcp::meta::{PROGRESS_TOKEN, subscription_id};
use crate::mcp::method::{Method, is_news};

use crate::rpc::message::Message;

use super::pending::{Asker, Pending, What};
use super::session::{Session, State};
use crate::rpc::parsed_line::excerpt;

impl Session {
    pub(super) fn server_line(&self, heard: &ParsedLine, from: &From) {
        match *heard {
            ParsedLine::Object { line, text, envelope } if envelope.is_message() => {
                self.server_message(&Message { line, text, envelope, status: from.status }, from);
            }
            ParsedLine::Array { line, text } => self.server_batch(line, text, from),
            ParsedLine::Object { text, .. } | ParsedLine::NoJson { text, .. } => {
                warn!("skipped a line of the server that is no JSON-RPC: {}", excerpt(text));
            }
            ParsedLine::TooLong { head, tail, length } => self.server_too_long(head, tail, length),
        }
    }

    /// One message of the server, alone or out of a batch.
    pub(super) fn server_message(&self, message: &Message, from: &From) {
        self.upstream.heard();
        message.trace("server");
        match (message.envelope.kind(), message.envelope.id) {
            (Kind::Response, Some(raw)) => match Id::parse(raw) {
                Some(id) => self.server_response(message, &id),
                // An error about a message that the server could not read.
                None => drop(self.client.notify(message.line)),
            },
            (Kind::Request, Some(raw)) => self.server_request(message, raw, from),
            _ => self.server_notification(message, from),
        }
    }

    /// A request of the server is forwarded wherever there is a way to the client, else answered
    /// for it (§1.1).
    fn server_request(&self, message: &Message, raw: &str, from: &From) {
        let mut state = self.state();
        let State { questions, pending, .. } = &mut *state;
        let mut edits = Edits::new();
        let outside = questions.ask(raw, || pending.own_id());
        if let Some(outside) = &outside {
            edits.replace(message.text, raw, outside.to_json());
        }
        if !self.to_client(&state, from.request, &message.edited(edits), true) {
            debug!("a request of the server reaches nobody");
            if let Some(asked) = outside.or_else(|| Id::parse(raw)) {
                state.questions.answered(&asked);
            }
            let cause = "the client has no stream open on which it could be asked";
            self.upstream.send_if_up(&error_line(raw, METHOD_NOT_FOUND, cause), &state.headers);
        }
    }

    pub(super) fn server_response(&self, message: &Message, id: &Id) {
        let mut state = self.state();
        let Some(Pending { asker, what, .. }) = state.pending.remove(id) else {
            debug!(id = message.envelope.id, "dropped an answer that nobody waits for");
            return;
        };
        if !matches!(what, What::Initialize | What::Discover | What::Revival(_)) {
            self.upstream.healthy();
        }
        match what {
            What::Call(call) => self.call_answered(&mut state, *call, asker, message),
            What::Initialize | What::Discover => {
                if matches!(what, What::Initialize) && message.envelope.error.is_some() {
                    state.settings.refused();
                }
                self.greeted(&mut state, asker, message);
            }
            What::List { key, repeat } => {
                if let Some(slot) = repeat {
                    state.deadlines.remove(slot);
                }
                self.list_answered(&mut state, key, asker, message);
            }
            What::Catalog => self.catalog_page(&mut state, message.envelope.result),
            What::Revival(step) => self.step_done(&mut state, step, &message.envelope),
            What::Listen { .. } => self.listen_ended(asker, message),
            What::Plain => self.pass_answer(asker.as_ref(), message),
        }
    }

    fn server_notification(&self, message: &Message, from: &From) {
        match Method::of(&message.envelope) {
            Some(Method::Progress) => self.progress(message),
            Some(Method::Cancelled) => self.server_cancels(message, from),
            Some(Method::LogMessage) if from.request.is_none() => self.log_message(message),
            method => self.subscribed(message, method, from),
        }
    }

    /// A log line of a server that does not say for which request: in the modern era it goes to
    /// one that asked for log lines, the newest of them.
    fn log_message(&self, message: &Message) {
        let state = self.state();
        if self.client.notify(message.line) {
            return;
        }
        if let Some(reply) = state.pending.newest_that_wants_logs() {
            reply.push(message.line);
        }
    }

    /// Progress goes to a client that waits under its own token, and into the job of a call that
    /// nobody waits for; any other is dropped (§1.1.1, §4.3).
    pub(super) fn progress(&self, message: &Message) {
        let params = Params::parse(message.envelope.params);
        let Some(raw) = params.get(PROGRESS_TOKEN) else { return };
        let mut state = self.state();
        let Some(pending) = Id::parse(raw).and_then(|token| state.pending.by_token(&token)) else {
            debug!("dropped progress that nobody asked for");
            return;
        };
        if let What::Call(call) = &mut pending.what {
            call.progress(&params);
        }
        let outside = pending.token.as_ref().and_then(|token| token.outside.as_deref());
        if let (Some(token), Some(asker)) = (outside, &pending.asker) {
            let mut edits = Edits::new();
            if token != raw {
                edits.replace(message.text, raw, token);
            }
            asker.reply.push(&message.edited(edits));
        }
    }

    /// The server takes back a request of its own, or ends a subscription.
    fn server_cancels(&self, message: &Message, from: &From) {
        let params = Params::parse(message.envelope.params);
        let raw = params.get("requestId");
        let Some((raw, id)) = raw.and_then(|raw| Some((raw, Id::parse(raw)?))) else {
            self.client.notify(message.line);
            return;
        };
        let mut state = self.state();
        let mut edits = Edits::new();
        if let Some(outside) = state.questions.taken_back(&id) {
            edits.replace(message.text, raw, outside.to_json());
        }
        let pending = state.pending.get(&id);
        if !pending.is_some_and(|pending| matches!(pending.what, What::Listen { .. })) {
            self.to_client(&state, from.request, &message.edited(edits), false);
            return;
        }
        let Some(asker) = state.pending.remove(&id).and_then(|pending| pending.asker) else {
            return;
        };
        if raw != &*asker.id {
            edits.replace(message.text, raw, &*asker.id);
        }
        asker.reply.push(&message.edited(edits));
        asker.reply.finish();
    }

    /// A notification that may belong to a subscription: it carries the client's own id of it, and
    /// is acknowledged to the client once, however often the server was started anew.
    fn subscribed(&self, message: &Message, method: Option<Method>, from: &From) {
        let acknowledges = method == Some(Method::SubscriptionAcknowledged);
        let mut state = self.state();
        let subscription = message.envelope.params.and_then(subscription_id);
        let id = subscription.and_then(Id::parse);
        let pending = id.as_ref().and_then(|id| state.pending.get_mut(id));
        let Some(Pending { what: What::Listen { acknowledged, .. }, asker, .. }) = pending else {
            match from.request {
                None if is_news(&message.envelope.method_name()) => {
                    self.client.announce(message.line)
                }
                request => drop(self.to_client(&state, request, message.line, false)),
            }
            return;
        };
        if acknowledges && std::mem::replace(acknowledged, true) {
            return;
        }
        let (Some(raw), Some(asker)) = (subscription, asker) else { return };
        let mut edits = Edits::new();
        if raw != &*asker.id {
            edits.replace(message.text, raw, &*asker.id);
        }
        asker.reply.push(&message.edited(edits));
    }

    fn listen_ended(&self, asker: Option<Asker>, message: &Message) {
        let Some(asker) = asker else { return };
        let mut edits = Edits::new();
        if let Some(raw) = message.envelope.result.and_then(subscription_id)
            && raw != &*asker.id
        {
            edits.replace(message.text, raw, &*asker.id);
        }
        self.answer_edited(&asker, message, edits);
    }
}
