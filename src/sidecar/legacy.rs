//! 2025-03-26 to 2025-11-25: sessions, each with the stream of its GET (protocol §6.2).

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use smallvec::SmallVec;

use crate::downstream::Reply;
use crate::downstream::http::Body;
use crate::downstream::http::SseBody;
use crate::downstream::http::{HttpResponder, ResponseReader};
use crate::mcp::error_code::{INVALID_REQUEST, NO_SESSION, PARSE_ERROR, REFUSED};
use crate::mcp::header::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::mcp::revision;
use crate::relay::pending::Asker;
use crate::rpc::id::Id;
use crate::rpc::message::Message;
use crate::rpc::message::{Envelope, Kind};
use crate::rpc::object::elements;

use super::answers::{empty, error, events, not_allowed, unavailable};
use super::endpoint::Sidecar;
use super::post::{Asked, Takes};
use super::sessions::{Legacy, NoSession, Sessions};

impl Sidecar {
    /// One message of a legacy client.
    pub(super) fn legacy(
        &self,
        headers: &HeaderMap,
        takes: Takes,
        message: &Message,
        params: &Params,
    ) -> Asked {
        let kind = message.envelope.kind();
        if kind == Kind::Request && Method::of(&message.envelope) == Some(Method::Initialize) {
            return self.initialize(headers, takes, message, params);
        }
        let legacy = match self.session_of(headers) {
            Ok(legacy) => legacy,
            Err(refusal) => return Asked::Answered(refusal),
        };
        let forwarded = self.forwarded(headers, false);
        if kind != Kind::Request {
            let nowhere: Reply = legacy.streams.get_stream().clone();
            legacy.session.client_message(message, params, nowhere, &forwarded);
            return empty(StatusCode::ACCEPTED).into();
        }
        let Some(key) = Id::parse(message.id()) else { return bad_id().into() };
        let responder = legacy.streams.open([key.clone()].into(), takes.stream);
        let reader = ResponseReader::new(&responder);
        let asker = Asker::new(key, message.id(), responder, forwarded);
        legacy.session.client_request(message, params, asker);
        Asked::Waits(reader)
    }

    /// Begins a session. A stale session id that comes with it says nothing.
    fn initialize(
        &self,
        headers: &HeaderMap,
        takes: Takes,
        message: &Message,
        params: &Params,
    ) -> Asked {
        let id = message.id();
        let Some(key) = Id::parse(id) else { return bad_id().into() };
        let legacy = match self.sessions.begin(self.principals.of(headers)) {
            Ok(legacy) => legacy,
            Err(problem) => return no_session(&problem, id).into(),
        };
        let responder = legacy.streams.open([key.clone()].into(), takes.stream);
        let reader = ResponseReader::new(&responder);
        let forwarded = self.forwarded(headers, false);
        let asker = Asker::new(key, id, responder, forwarded);
        let begun = Begun { sessions: self.sessions.clone(), legacy: Some(legacy.clone()) };
        legacy.session.client_request(message, params, asker);
        Asked::Begins(reader, begun)
    }

    /// The caller's session that the headers name.
    fn session_of(&self, headers: &HeaderMap) -> Result<Arc<Legacy>, Box<Response<Body>>> {
        let Some(id) = headers.get(SESSION_ID) else {
            let message = "Mcp-Session-Id is missing: begin with initialize";
            return Err(Box::new(error(StatusCode::BAD_REQUEST, None, REFUSED, message)));
        };
        if let Some(version) = headers.get(PROTOCOL_VERSION)
            && !revision::LEGACY.iter().any(|known| version == known)
        {
            let message =
                format!("MCP-Protocol-Version must be one of {}", revision::LEGACY.join(", "));
            return Err(Box::new(error(StatusCode::BAD_REQUEST, None, REFUSED, &message)));
        }
        let principal = self.principals.of(headers);
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id, &principal));
        found.ok_or_else(|| {
            let message = "no such session: begin a new one with initialize";
            Box::new(error(StatusCode::NOT_FOUND, None, NO_SESSION, message))
        })
    }

    /// An array of messages, which 2025-03-26 alone allows.
    pub(super) fn legacy_batch(
        &self,
        headers: &HeaderMap,
        takes: Takes,
        body: &Bytes,
        text: &str,
    ) -> Asked {
        let refused = |code, problem| error(StatusCode::BAD_REQUEST, None, code, problem).into();
        let Some(elements) = elements(text) else {
            return refused(PARSE_ERROR, "the body is no JSON");
        };
        let legacy = match self.session_of(headers) {
            Ok(legacy) => legacy,
            Err(refusal) => return Asked::Answered(refusal),
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
        let responder = legacy.streams.open(keys, takes.stream);
        let reader = ResponseReader::new(&responder);
        let forwarded = self.forwarded(headers, false);
        legacy.session.batch_elements(body, elements, responder, &forwarded);
        Asked::Waits(reader)
    }

    /// The standing stream, or one that broke and is resumed.
    pub(super) fn get(&self, request: &Request<Incoming>) -> Response<Body> {
        let headers = request.headers();
        if !headers.contains_key(SESSION_ID) {
            return not_allowed("POST");
        }
        if !Takes::of(headers).stream {
            let message = "Accept must name text/event-stream";
            return error(StatusCode::NOT_ACCEPTABLE, None, REFUSED, message);
        }
        let legacy = match self.session_of(headers) {
            Ok(legacy) => legacy,
            Err(refusal) => return *refusal,
        };
        match headers.get(LAST_EVENT_ID) {
            None => stream(legacy.streams.open_get_stream(), Vec::new()),
            Some(event) => resume(&legacy, event),
        }
    }

    pub(super) fn delete(&self, request: &Request<Incoming>) -> Response<Body> {
        if !request.headers().contains_key(SESSION_ID) {
            return not_allowed("POST");
        }
        match self.session_of(request.headers()) {
            Ok(legacy) => {
                self.sessions.retire(&legacy);
                empty(StatusCode::NO_CONTENT)
            }
            Err(refusal) => *refusal,
        }
    }
}

/// A session that is not one yet: unless the handshake succeeds, it ends.
pub struct Begun {
    sessions: Arc<Sessions>,
    legacy: Option<Arc<Legacy>>,
}

impl Begun {
    /// The response to `initialize`, with the session's id unless the server has refused.
    pub fn greeted(mut self, mut response: Response<Body>, refused: bool) -> Response<Body> {
        if !refused
            && let Some(legacy) = self.legacy.take()
            && let Ok(id) = HeaderValue::from_str(&legacy.id)
        {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(legacy) = &self.legacy {
            self.sessions.retire(legacy);
        }
    }
}

fn resume(legacy: &Legacy, event: &HeaderValue) -> Response<Body> {
    let Some((responder, number)) = event.to_str().ok().and_then(|id| legacy.streams.reopen(id))
    else {
        let message = "no stream of this session has an event of this id";
        return error(StatusCode::NOT_FOUND, None, REFUSED, message);
    };
    let missed = responder.sent_after(number);
    let response = stream(&responder, missed);
    if !responder.has_ended() {
        let key = responder.request.keys.first().cloned();
        key.iter().for_each(|key| legacy.session.came_back(key, responder.clone()));
    }
    response
}

fn stream(responder: &Arc<HttpResponder>, missed: Vec<(String, Bytes)>) -> Response<Body> {
    let mut stream = SseBody::new(ResponseReader::new(&responder), true);
    stream.replay(missed);
    events(Body::Events(Box::new(stream)))
}

/// No answer could name the request.
pub(super) fn bad_id() -> Response<Body> {
    let problem = "the id must be a string or a number";
    error(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, problem)
}

pub(super) fn no_session(problem: &NoSession, id: &str) -> Response<Body> {
    unavailable(Some(id), &problem.to_string())
}
