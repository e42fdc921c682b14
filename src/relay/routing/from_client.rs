//! Messages of the client: each goes to the server, or is answered here.

use std::sync::Arc;

use bytes::Bytes;
use tracing::{debug, warn};

use crate::downstream::Reply;
use crate::jobs::wording;
use crate::mcp::compose::{error_line, result_line};
use crate::mcp::error_code::{INTERNAL_ERROR, INVALID_REQUEST};
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::relay::session::Locked;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::{PendingRequest, RequestKind};
use crate::relay::state::lists::ListKey;
use crate::relay::state::requester::Requester;
use crate::relay::state::server_requests::AnswerDestination;
use crate::rpc::id::Id;
use crate::rpc::line::Line;
use crate::rpc::lines::compact;
use crate::rpc::message::{Kind, Message};
use crate::rpc::parsed_line::{ParsedLine, excerpt};
use crate::rpc::splice::{Edits, with_id};
use crate::rpc::truncated::{id_at_an_end, is_request};
use crate::upstream::{Headers, Outgoing};

impl Session {
    /// A line of the client; `to` is where its answers go.
    pub(crate) fn from_client(self: &Arc<Self>, line: &Line, to: &Reply) {
        ParsedLine::parse(line, |line| match *line {
            ParsedLine::Object { line, text, envelope } if envelope.kind() != Kind::Unknown => {
                let message = Message::new(line, text, envelope);
                let params = Params::parse(envelope.params);
                self.client_message(&message, &params, to.clone(), &None);
            }
            ParsedLine::Array { line, text } => self.client_batch(line, text, to, &None),
            // It may hold the arguments of a call, so its text is logged at `debug` alone (§10).
            ParsedLine::Object { text, .. } | ParsedLine::NoJson { text, .. } => {
                warn!(bytes = text.len(), "skipped a line of the client that is no JSON-RPC");
                debug!("the skipped line: {}", excerpt(text));
            }
            ParsedLine::TooLong { head, tail, length } => self.client_too_long(head, tail, length),
        });
    }

    fn client_too_long(&self, head: &[u8], tail: &[u8], length: u64) {
        warn!(bytes = length, "dropped a message of the client that is above max_message");
        if let Some(id) = id_at_an_end(head, tail).filter(|_| is_request(head)) {
            let problem = wording::too_long("The request", length, self.config.max_message);
            self.client.notify(&error_line(&id, INVALID_REQUEST, &problem));
        }
    }

    /// One message of the client, alone or out of a batch; `headers` go with it over HTTP.
    pub(crate) fn client_message(
        self: &Arc<Self>,
        message: &Message,
        params: &Params,
        reply: Reply,
        headers: &Headers,
    ) {
        message.trace("client");
        match (message.envelope.kind(), message.envelope.id) {
            (Kind::Request, Some(raw)) => match Id::parse(raw) {
                Some(key) => {
                    let requester = Requester::new(key, raw, reply, headers.clone());
                    self.client_request(message, params, requester);
                }
                // The id is no valid one, such as `null`: the server answers, and nothing is
                // deferred.
                None => {
                    let (line, headers) = (message.line.clone(), headers.clone());
                    self.upstream.send_if_up(Outgoing::parse(line, headers));
                }
            },
            (Kind::Response, Some(raw)) => self.client_response(message, raw, headers),
            _ => self.client_notification(message, params, headers),
        }
    }

    /// A request of the client.
    pub(crate) fn client_request(
        self: &Arc<Self>,
        message: &Message,
        params: &Params,
        requester: Requester,
    ) {
        self.request(self.state(), message, params, requester);
    }

    /// A request that was held until the tools were known; dropped where its client has gone.
    pub(in crate::relay) fn held_request(
        self: &Arc<Self>,
        message: &Message,
        requester: Requester,
    ) {
        let state = self.state();
        if requester.reply.is_open() {
            self.request(state, message, &Params::parse(message.envelope.params), requester);
        }
    }

    fn request(
        self: &Arc<Self>,
        mut state: Locked,
        message: &Message,
        params: &Params,
        requester: Requester,
    ) {
        let method = Method::of(&message.envelope);
        if requester.headers.is_some() {
            state.client.headers = requester.headers.clone();
        }
        if let Some(cause) = &state.failure {
            return self.answer_error(&requester, INTERNAL_ERROR, cause);
        }
        self.note_modern_client(&mut state, params);
        if method == Some(Method::CallTool) {
            return self.call(state, message, params, requester);
        }
        let busy = || state.calls.pending.call_count() > 0 || state.calls.pending.any_opening();
        if method == Some(Method::Ping) && (busy() || self.upstream.is_starting()) {
            return self.answer(&requester, &result_line(&requester.id, "{}"));
        }
        state.client.settings.update(method, message, params);
        let upstream_id = state.calls.pending.upstream_id_for(&requester.key);
        let kind = match method {
            Some(Method::Initialize) => self.initialize_asked(&mut state, params, &upstream_id),
            Some(Method::Discover) => RequestKind::Discover,
            Some(Method::Listen) => RequestKind::Listen {
                line: compact(message.line),
                acknowledged: false,
                lost: false,
            },
            _ => match method.and_then(|method| ListKey::of(method, params)) {
                Some(key) => self.list_asked(&mut state, key, &upstream_id),
                None => RequestKind::Other,
            },
        };
        self.send_request(&mut state, message, (method, params), upstream_id, requester, kind);
    }

    /// Sends a request that is no call; its id and progress token are replaced where they are in
    /// use.
    fn send_request(
        &self,
        state: &mut State,
        message: &Message,
        (method, params): (Option<Method>, &Params),
        upstream_id: Id,
        requester: Requester,
        kind: RequestKind,
    ) {
        let mut edits = Edits::new();
        let renamed = upstream_id != requester.key;
        message.set_id(&upstream_id, &mut edits);
        let token = params
            .progress_token()
            .and_then(|raw| state.calls.pending.map_token(message.text, raw, &mut edits));
        let out = message.edited(edits);
        let (id, headers) = (upstream_id.clone(), requester.headers.clone());
        let out = Outgoing::request(out, headers, id, method, &message.envelope, params);
        let pending = PendingRequest { requester: Some(requester), renamed, token, kind };
        state.calls.pending.insert(upstream_id.clone(), pending);
        if let Err(cause) = self.send_to_server(state, out) {
            self.fail_unsent(state, &upstream_id, &cause);
        }
    }

    /// A notification of the client.
    fn client_notification(
        self: &Arc<Self>,
        message: &Message,
        params: &Params,
        headers: &Headers,
    ) {
        let method = Method::of(&message.envelope);
        match method {
            Some(Method::Cancelled) => return self.cancelled(message, params, headers),
            Some(Method::Initialized) => {
                self.state().client.settings.update(method, message, params);
            }
            _ => {}
        }
        let (line, headers) = (message.line.clone(), headers.clone());
        let out = Outgoing::notification(line, headers, method, &message.envelope, params);
        self.upstream.send_if_up(out);
    }

    /// An answer of the client to a request of the server.
    fn client_response(&self, message: &Message, raw: &str, headers: &Headers) {
        let destination = Id::parse(raw).map(|id| self.state().client.server_requests.take(&id));
        match destination {
            None | Some(AnswerDestination::AsIs) => {
                self.send_response(message.line.clone(), headers)
            }
            Some(AnswerDestination::WithId(id)) => {
                self.send_response(with_id(message.text, raw, &id).into(), headers);
            }
            Some(AnswerDestination::Dropped) => {
                debug!("dropped an answer to a server that is gone")
            }
        }
    }

    /// Sends an answer to a request of the server.
    pub(super) fn send_response(&self, line: Bytes, headers: &Headers) {
        self.upstream.send_if_up(Outgoing::response(line, headers.clone()));
    }
}
