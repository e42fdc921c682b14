//! Messages of 2025-03-26 to 2025-11-25, which belong to a session (protocol §6.2).

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use smallvec::SmallVec;

use crate::downstream::Reply;
use crate::downstream::http::ResponseReader;
use crate::mcp::error_code::{INVALID_REQUEST, PARSE_ERROR};
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::relay::Requester;
use crate::rpc::id::Id;
use crate::rpc::message::{Envelope, Kind, Message};
use crate::rpc::object::elements;

use super::accept::AcceptedTypes;
use super::answers::{bad_id, empty, error, unavailable};
use super::handshake::Handshake;
use super::outcome::PostOutcome;
use super::service::Sidecar;

impl Sidecar {
    /// One message of a legacy client.
    pub(super) fn legacy(
        &self,
        headers: &HeaderMap,
        accept: AcceptedTypes,
        message: &Message,
        params: &Params,
    ) -> PostOutcome {
        let kind = message.envelope.kind();
        if kind == Kind::Request && Method::of(&message.envelope) == Some(Method::Initialize) {
            return self.initialize(headers, accept, message, params);
        }
        let legacy = match self.session_of(headers) {
            Ok(legacy) => legacy,
            Err(problem) => return problem.response().into(),
        };
        let forwarded = self.forwarded_headers(headers, false);
        if kind != Kind::Request {
            // It is not answered, so nothing is sent there.
            let unused: Reply = legacy.streams.get_stream().clone();
            legacy.session.client_message(message, params, unused, &forwarded);
            return empty(StatusCode::ACCEPTED).into();
        }
        let Some(key) = Id::parse(message.id()) else { return bad_id().into() };
        let responder = legacy.streams.open([key.clone()].into(), accept.events);
        let reader = ResponseReader::new(&responder);
        let requester = Requester::new(key, message.id(), responder, forwarded);
        legacy.session.client_request(message, params, requester);
        PostOutcome::Waiting(reader)
    }

    /// Begins a session. A stale session id that comes with it says nothing.
    fn initialize(
        &self,
        headers: &HeaderMap,
        accept: AcceptedTypes,
        message: &Message,
        params: &Params,
    ) -> PostOutcome {
        let id = message.id();
        let Some(key) = Id::parse(id) else { return bad_id().into() };
        let legacy = match self.sessions.begin(self.principals.of(headers)) {
            Ok(legacy) => legacy,
            Err(problem) => return unavailable(Some(id), &problem.to_string()).into(),
        };
        let responder = legacy.streams.open([key.clone()].into(), accept.events);
        let reader = ResponseReader::new(&responder);
        let forwarded = self.forwarded_headers(headers, false);
        let requester = Requester::new(key, id, responder, forwarded);
        let handshake = Handshake::new(self.sessions.clone(), legacy.clone());
        legacy.session.client_request(message, params, requester);
        PostOutcome::Beginning(reader, handshake)
    }

    /// An array of messages, which 2025-03-26 alone allows.
    pub(super) fn legacy_batch(
        &self,
        headers: &HeaderMap,
        accept: AcceptedTypes,
        body: &Bytes,
        text: &str,
    ) -> PostOutcome {
        let refused = |code, problem| error(StatusCode::BAD_REQUEST, None, code, problem).into();
        let Some(elements) = elements(text) else {
            return refused(PARSE_ERROR, "the body is no JSON");
        };
        let legacy = match self.session_of(headers) {
            Ok(legacy) => legacy,
            Err(problem) => return problem.response().into(),
        };
        if !legacy.session.takes_batches() {
            return refused(INVALID_REQUEST, "arrays of messages are legal under 2025-03-26 alone");
        }
        if elements.is_empty() {
            return refused(INVALID_REQUEST, "the array is empty");
        }
        let elements: Vec<_> =
            elements.into_iter().map(|text| (text, Envelope::parse(text).ok())).collect();
        let keys: SmallVec<[Id; 1]> =
            elements.iter().filter_map(|(_, envelope)| envelope.as_ref()?.request_id()).collect();
        let responder = legacy.streams.open(keys, accept.events);
        let reader = ResponseReader::new(&responder);
        let forwarded = self.forwarded_headers(headers, false);
        legacy.session.batch_elements(body, elements, responder, &forwarded);
        PostOutcome::Waiting(reader)
    }
}
