//! Messages of the client: what each is, and which way it goes.

use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use tracing::{debug, warn};

use crate::downstream::Reply;
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::rpc::id::Id;
use crate::rpc::lines::{Line, keep, with_text};
use crate::rpc::message::{Envelope, Kind};
use crate::rpc::splice::{Edits, with_id};
use crate::upstream::Headers;

use super::lists::ListKey;
use super::pending::{Asker, Pending, What, name_token};
use super::questions::Way;
use super::session::{Session, State};
use crate::mcp::compose::{error_line, result_line};
use crate::mcp::error_code::{INTERNAL_ERROR, INVALID_REQUEST};
use crate::rpc::message::Message;
use crate::rpc::parsed_line::excerpt;
use crate::rpc::truncated::{id_at_an_end, is_request};

impl Session {
    /// A line of the client; `to` is where its answers go.
    pub fn from_client(self: &Arc<Self>, line: Line, to: &Reply) {
        match line {
            Line::Whole(line) => {
                with_text(&line, |line, text| self.client_line(line, text, to));
            }
            Line::TooLong { head, tail, length } => {
                warn!(bytes = length, "dropped a message of the client that is above max_message");
                if let Some(id) = id_at_an_end(&head, &tail).filter(|_| is_request(&head)) {
                    let message = self.too_long("The request", length);
                    self.client.notify(&error_line(&id, INVALID_REQUEST, &message));
                }
            }
        }
    }

    fn client_line(self: &Arc<Self>, line: &Bytes, text: &str, to: &Reply) {
        if text.starts_with('[') {
            return self.client_batch(line, text, to, &None);
        }
        match Envelope::parse(text) {
            Ok(envelope) if envelope.kind() != Kind::Unknown => {
                let params = Params::parse(envelope.params);
                let message = Message::new(line, text, envelope);
                self.client_message(&message, &params, to.clone(), &None);
            }
            // It may be half a call with its arguments, so its text is not for everybody (§10).
            _ => {
                warn!(bytes = text.len(), "skipped a line of the client that is no JSON-RPC");
                debug!("the skipped line: {}", excerpt(text));
            }
        }
    }

    /// One message of the client, alone or out of a batch; `headers` go with it over HTTP.
    pub fn client_message(
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
                    let asker = Asker::new(key, raw, reply, headers.clone());
                    self.client_request(message, params, asker);
                }
                // An id that can't be an id: the server's to judge, and never deferred.
                None => self.upstream.send_if_up(message.line, headers),
            },
            (Kind::Response, Some(raw)) => self.client_response(message, raw, headers),
            _ => self.client_notification(message, params, headers),
        }
    }

    /// A request of the client, by whatever way it came.
    pub fn client_request(self: &Arc<Self>, message: &Message, params: &Params, asker: Asker) {
        self.request(self.state(), message, params, asker);
    }

    /// A request that was held; whoever has left meanwhile wants it no more.
    pub(super) fn held_request(self: &Arc<Self>, message: &Message, asker: Asker) {
        let state = self.state();
        if asker.reply.is_open() {
            self.request(state, message, &Params::parse(message.envelope.params), asker);
        }
    }

    fn request(
        self: &Arc<Self>,
        mut state: MutexGuard<State>,
        message: &Message,
        params: &Params,
        asker: Asker,
    ) {
        let method = Method::of(&message.envelope);
        if asker.headers.is_some() {
            state.headers = asker.headers.clone();
        }
        if let Some(cause) = &state.failure {
            return self.answer_error(&asker, INTERNAL_ERROR, cause);
        }
        self.meet(&mut state, params);
        if method == Some(Method::CallTool) {
            return self.call(state, message, params, asker);
        }
        let busy = || state.pending.calls() > 0 || state.pending.any_opening();
        if method == Some(Method::Ping) && (busy() || self.upstream.is_starting()) {
            return self.answer(&asker, &result_line(&asker.id, "{}"));
        }
        state.settings.note(method, message.line, &message.envelope);
        let inside = state.pending.inside_id(&asker.key);
        let what = match method {
            Some(Method::Initialize) => self.opening(&mut state, params, &inside),
            Some(Method::Discover) => What::Discover,
            Some(Method::Listen) => {
                What::Listen { line: keep(message.line), acknowledged: false, lost: false }
            }
            _ => match method.and_then(|method| ListKey::of(method, message.envelope.params)) {
                Some(key) => self.list_asked(&mut state, key, &inside),
                None => What::Plain,
            },
        };
        self.send_request(&mut state, message, params, inside, asker, what);
    }

    /// Sends a request that is no call; id and token are renamed where they collide.
    pub(super) fn send_request(
        self: &Arc<Self>,
        state: &mut State,
        message: &Message,
        params: &Params,
        inside: Id,
        asker: Asker,
        what: What,
    ) {
        let mut edits = Edits::new();
        let renamed = inside != asker.key;
        message.go_by(&inside, &mut edits);
        let raw_token = params.progress_token();
        let token = raw_token.map(|raw| name_token(state, message, raw, &mut edits));
        let out = message.edited(edits);
        let headers = asker.headers.clone();
        let pending = Pending { asker: Some(asker), renamed, token, what };
        state.pending.insert(inside.clone(), pending);
        if let Err(cause) = self.to_server(state, &out, &headers) {
            self.refuse(state, &inside, &cause);
        }
    }

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
                self.state().settings.note(method, message.line, &message.envelope);
            }
            _ => {}
        }
        self.upstream.send_if_up(message.line, headers);
    }

    fn client_response(&self, message: &Message, raw: &str, headers: &Headers) {
        let way = Id::parse(raw).map(|id| self.state().questions.answered(&id));
        match way {
            None | Some(Way::Straight) => self.upstream.send_if_up(message.line, headers),
            Some(Way::Under(inside)) => {
                self.upstream.send_if_up(&with_id(message.text, raw, &inside).into(), headers);
            }
            Some(Way::Nowhere) => debug!("dropped an answer to a server that is gone"),
        }
    }
}
