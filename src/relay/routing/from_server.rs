//! Messages of the server: answers go to the requester, progress to its call, the rest passes as it
//! is.

use tracing::{debug, warn};

use crate::mcp::compose::error_line;
use crate::mcp::error_code::METHOD_NOT_FOUND;
use crate::mcp::meta::{PROGRESS_TOKEN, subscription_id};
use crate::mcp::method::{Method, is_change_notification};
use crate::mcp::params::Params;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::{PendingRequest, RequestKind};
use crate::relay::state::requester::Requester;
use crate::rpc::id::Id;
use crate::rpc::message::{Kind, Message};
use crate::rpc::parsed_line::{ParsedLine, excerpt};
use crate::rpc::splice::Edits;
use crate::upstream::MessageOrigin;

impl Session {
    /// A line of the server.
    pub(in crate::relay) fn server_line(&self, line: &ParsedLine, from: &MessageOrigin) {
        match *line {
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
    pub(super) fn server_message(&self, message: &Message, from: &MessageOrigin) {
        self.upstream.note_message();
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

    /// A request of the server is forwarded where there is a way to the client, else answered with
    /// an error (§1.1).
    fn server_request(&self, message: &Message, raw: &str, from: &MessageOrigin) {
        let mut state = self.state();
        let State { client, calls, .. } = &mut *state;
        let mut edits = Edits::new();
        let new_id = client.server_requests.insert(raw, || calls.pending.new_id());
        if let Some(new_id) = &new_id {
            edits.replace(message.text, raw, new_id.to_json());
        }
        if !self.send_to_client(&state, from.request, &message.edited(edits), true) {
            debug!("a request of the server reaches nobody");
            if let Some(asked) = new_id.or_else(|| Id::parse(raw)) {
                state.client.server_requests.take(&asked);
            }
            let cause = "the client has no stream open on which it could be asked";
            let refusal = error_line(raw, METHOD_NOT_FOUND, cause);
            self.send_response(refusal, &state.client.headers);
        }
    }

    /// An answer of the server.
    fn server_response(&self, message: &Message, id: &Id) {
        let mut state = self.state();
        let Some(PendingRequest { requester, kind, .. }) = state.calls.pending.remove(id) else {
            debug!(id = message.envelope.id, "dropped an answer that nobody waits for");
            return;
        };
        if !matches!(
            kind,
            RequestKind::Initialize | RequestKind::Discover | RequestKind::Restart(_)
        ) {
            self.upstream.note_answer();
        }
        match kind {
            RequestKind::Call(call) => self.call_answered(&mut state, *call, requester, message),
            RequestKind::Initialize | RequestKind::Discover => {
                if matches!(kind, RequestKind::Initialize) && message.envelope.error.is_some() {
                    state.client.settings.initialize_refused();
                }
                self.opening_answered(&mut state, requester, message);
            }
            RequestKind::List { key, repeat } => {
                if let Some(slot) = repeat {
                    state.deadlines.remove(slot);
                }
                self.list_answered(&mut state, key, requester, message);
            }
            RequestKind::ToolsPage => self.tools_page(&mut state, message.envelope.result),
            RequestKind::Restart(step) => {
                self.restart_step_answered(&mut state, step, &message.envelope)
            }
            RequestKind::Listen { .. } => self.listen_ended(requester, message),
            RequestKind::Other => self.forward_answer(requester.as_ref(), message),
        }
    }

    fn server_notification(&self, message: &Message, from: &MessageOrigin) {
        let params = Params::parse(message.envelope.params);
        match Method::of(&message.envelope) {
            Some(Method::Progress) => self.progress(message, &params),
            Some(Method::Cancelled) => self.server_cancels(message, &params, from),
            Some(Method::LogMessage) if from.request.is_none() => self.log_message(message),
            method => self.subscription_notification(message, &params, method, from),
        }
    }

    /// A `notifications/message` that belongs to no request. In the modern era, where the client
    /// has no channel for it, it goes to the newest request that wants log messages.
    fn log_message(&self, message: &Message) {
        let state = self.state();
        if self.client.notify(message.line) {
            return;
        }
        if let Some(reply) = state.calls.pending.newest_that_wants_logs() {
            reply.push(message.line);
        }
    }

    /// Progress goes to the client that waits, with the client's own token, or into the job; any
    /// other is dropped (§1.1.1, §4.3).
    fn progress(&self, message: &Message, params: &Params) {
        let Some(raw) = params.get(PROGRESS_TOKEN) else { return };
        let mut state = self.state();
        let Some(pending) = Id::parse(raw).and_then(|token| state.calls.pending.by_token(&token))
        else {
            debug!("dropped progress that nobody asked for");
            return;
        };
        if let RequestKind::Call(call) = &mut pending.kind {
            call.set_progress(params);
        }
        let token = pending.token.as_ref().and_then(|token| token.downstream.as_deref());
        if let (Some(token), Some(requester)) = (token, &pending.requester) {
            let mut edits = Edits::new();
            if token != raw {
                edits.replace(message.text, raw, token);
            }
            requester.reply.push(&message.edited(edits));
        }
    }

    /// The server cancels a request of its own, or ends a subscription.
    fn server_cancels(&self, message: &Message, params: &Params, from: &MessageOrigin) {
        let raw = params.get("requestId");
        let Some((raw, id)) = raw.and_then(|raw| Some((raw, Id::parse(raw)?))) else {
            self.client.notify(message.line);
            return;
        };
        let mut state = self.state();
        let mut edits = Edits::new();
        if let Some(downstream_id) = state.client.server_requests.cancelled(&id) {
            edits.replace(message.text, raw, downstream_id.to_json());
        }
        let pending = state.calls.pending.get(&id);
        if !pending.is_some_and(|pending| matches!(pending.kind, RequestKind::Listen { .. })) {
            self.send_to_client(&state, from.request, &message.edited(edits), false);
            return;
        }
        let Some(requester) = state.calls.pending.remove(&id).and_then(|pending| pending.requester)
        else {
            return;
        };
        if raw != &*requester.id {
            edits.replace(message.text, raw, &*requester.id);
        }
        requester.reply.push(&message.edited(edits));
        requester.reply.finish();
    }

    /// A notification that may belong to a subscription: then the client gets it with its own
    /// subscription id. The client gets one acknowledgement, however often the server is restarted.
    fn subscription_notification(
        &self,
        message: &Message,
        params: &Params,
        method: Option<Method>,
        from: &MessageOrigin,
    ) {
        let acknowledges = method == Some(Method::SubscriptionAcknowledged);
        let mut state = self.state();
        let subscription = params.subscription_id();
        let id = subscription.and_then(Id::parse);
        let pending = id.as_ref().and_then(|id| state.calls.pending.get_mut(id));
        let Some(PendingRequest {
            kind: RequestKind::Listen { acknowledged, .. }, requester, ..
        }) = pending
        else {
            match from.request {
                None if is_change_notification(&message.envelope.method_name()) => {
                    self.client.announce(message.line)
                }
                request => drop(self.send_to_client(&state, request, message.line, false)),
            }
            return;
        };
        if acknowledges && std::mem::replace(acknowledged, true) {
            return;
        }
        let (Some(raw), Some(requester)) = (subscription, requester) else { return };
        let mut edits = Edits::new();
        if raw != &*requester.id {
            edits.replace(message.text, raw, &*requester.id);
        }
        requester.reply.push(&message.edited(edits));
    }

    /// The answer to `subscriptions/listen`: the end of the subscription.
    fn listen_ended(&self, requester: Option<Requester>, message: &Message) {
        let Some(requester) = requester else { return };
        let mut edits = Edits::new();
        if let Some(raw) = message.envelope.result.and_then(subscription_id)
            && raw != &*requester.id
        {
            edits.replace(message.text, raw, &*requester.id);
        }
        self.forward_edited_answer(&requester, message, edits);
    }
}
