//! The stream of a legacy client's GET, streams that are resumed, and the DELETE of a session
//! (protocol §6.2).

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::downstream::http::{Body, HttpResponder, ResponseReader, SseBody};
use crate::mcp::error_code::REFUSED;
use crate::mcp::header::{LAST_EVENT_ID, SESSION_ID};

use super::accept::AcceptedTypes;
use super::answers::{empty, error, events, not_allowed};
use super::client_session::LegacySession;
use super::service::Sidecar;

impl Sidecar {
    /// A GET: the stream that belongs to no request, or one that broke and is resumed.
    pub(super) fn get(&self, request: &Request<Incoming>) -> Response<Body> {
        let headers = request.headers();
        if !headers.contains_key(SESSION_ID) {
            return not_allowed("POST");
        }
        if !AcceptedTypes::of(headers).events {
            let message = "Accept must name text/event-stream";
            return error(StatusCode::NOT_ACCEPTABLE, None, REFUSED, message);
        }
        let legacy = match self.session_of(headers) {
            Ok(legacy) => legacy,
            Err(problem) => return problem.response(),
        };
        match headers.get(LAST_EVENT_ID) {
            None => stream(legacy.streams.open_get_stream(), Vec::new()),
            Some(event) => resume(&legacy, event),
        }
    }

    /// A DELETE: the session ends.
    pub(super) fn delete(&self, request: &Request<Incoming>) -> Response<Body> {
        if !request.headers().contains_key(SESSION_ID) {
            return not_allowed("POST");
        }
        match self.session_of(request.headers()) {
            Ok(legacy) => {
                self.sessions.retire(&legacy);
                empty(StatusCode::NO_CONTENT)
            }
            Err(problem) => problem.response(),
        }
    }
}

fn resume(legacy: &LegacySession, event: &HeaderValue) -> Response<Body> {
    let Some((responder, number)) = event.to_str().ok().and_then(|id| legacy.streams.reopen(id))
    else {
        let message = "no stream of this session has an event of this id";
        return error(StatusCode::NOT_FOUND, None, REFUSED, message);
    };
    let missed = responder.sent_after(number);
    let response = stream(&responder, missed);
    if !responder.has_ended() {
        let key = responder.request.keys.first().cloned();
        key.iter().for_each(|key| legacy.session.stream_resumed(key, responder.clone()));
    }
    response
}

fn stream(responder: &Arc<HttpResponder>, missed: Vec<(String, Bytes)>) -> Response<Body> {
    let mut stream = SseBody::new(ResponseReader::new(responder), true);
    stream.replay(missed);
    events(Body::Events(Box::new(stream)))
}
