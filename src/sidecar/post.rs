//! A POST: its body is read, and told apart by era, request by request (protocol §1.3).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::downstream::http::Body;
use crate::downstream::http::SseBody;
use crate::downstream::http::{QueuedAnswer, ResponseEvent, ResponseReader};
use crate::mcp::error_code::{INVALID_REQUEST, PARSE_ERROR, REFUSED};
use crate::mcp::header::PARAM_PREFIX;
use crate::mcp::params::Params;
use crate::rpc::lines::with_text;
use crate::rpc::message::Message;
use crate::rpc::message::{Envelope, Kind};
use crate::upstream::Headers;

use super::answers::{JSON, empty, error, events, json, passed_on};
use super::endpoint::Sidecar;
use super::legacy::Begun;
use super::modern;
use super::request_body::read;

/// After so long without a word from the server a stream is opened (contract §9).
const SILENCE: Duration = Duration::from_secs(10);

/// What the client takes in answer.
#[derive(Debug, Clone, Copy)]
pub struct Takes {
    pub json: bool,
    pub stream: bool,
}

impl Takes {
    /// From `Accept`; a client that says nothing takes JSON.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut takes = Takes { json: !headers.contains_key(ACCEPT), stream: false };
        for value in headers.get_all(ACCEPT) {
            for part in value.to_str().unwrap_or_default().split(',') {
                match part.split(';').next().unwrap_or_default().trim() {
                    "application/json" | "application/*" | "*/*" => takes.json = true,
                    "text/event-stream" | "text/*" => takes.stream = true,
                    _ => {}
                }
            }
        }
        takes
    }
}

/// What became of a message.
pub enum Asked {
    /// it needs no answer of the server's
    Answered(Box<Response<Body>>),
    /// its answer comes here
    Waits(ResponseReader),
    /// so does the greeting that makes a session of it
    Begins(ResponseReader, Begun),
}

impl From<Response<Body>> for Asked {
    fn from(response: Response<Body>) -> Self {
        Asked::Answered(Box::new(response))
    }
}

impl Sidecar {
    pub(super) async fn post(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let takes = Takes::of(&parts.headers);
        if !takes.json && !takes.stream {
            let message = "Accept must name application/json and text/event-stream";
            return error(StatusCode::NOT_ACCEPTABLE, None, REFUSED, message);
        }
        if !is_json(&parts.headers) {
            let message = "Content-Type must be application/json";
            return error(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, REFUSED, message);
        }
        let body = match read(&parts.headers, body, self.config.max_message, &self.held).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let asked = with_text(&body, |body, text| self.dispatch(&parts.headers, takes, body, text));
        // A call may wait for long: it must hold neither its headers nor the buffer of its body.
        drop((parts, body, self));
        let (mut reader, begun) = match asked {
            Asked::Answered(response) => return *response,
            Asked::Waits(reader) => (reader, None),
            Asked::Begins(reader, begun) => (reader, Some(begun)),
        };
        let first = first(&mut reader, takes).await;
        let refused = first.is_refusal();
        let response = respond(first, reader);
        match begun {
            Some(begun) => begun.greeted(response, refused),
            None => response,
        }
    }

    fn dispatch(&self, headers: &HeaderMap, takes: Takes, body: &Bytes, text: &str) -> Asked {
        if text.trim_start().starts_with('[') {
            return self.legacy_batch(headers, takes, body, text);
        }
        let message = match Envelope::parse(text) {
            Ok(envelope) if envelope.kind() != Kind::Unknown => Message::new(body, text, envelope),
            Ok(_) => {
                let problem = "the body is no JSON-RPC message: neither method nor id";
                return error(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, problem).into();
            }
            Err(_) => {
                let problem = "the body is no JSON object";
                return error(StatusCode::BAD_REQUEST, None, PARSE_ERROR, problem).into();
            }
        };
        let params = Params::parse(message.envelope.params);
        if modern::is_modern(headers, &params) {
            self.modern(headers, takes, &message, &params)
        } else {
            self.legacy(headers, takes, &message, &params)
        }
    }

    /// The client's headers that go to the server (§10), and those by which it is told what the
    /// body says (MCP 2026-07-28).
    pub(super) fn forwarded(&self, headers: &HeaderMap, with_params: bool) -> Headers {
        let names = self.config.remote().map(|remote| &remote.forward_headers[..]);
        let is_wanted = |name: &HeaderName| {
            names.is_some_and(|names| names.contains(name))
                || (with_params && name.as_str().starts_with(PARAM_PREFIX))
        };
        if !headers.keys().any(is_wanted) {
            return None;
        }
        let wanted = headers.iter().filter(|(name, _)| is_wanted(name));
        let mut forwarded = HeaderMap::new();
        for (name, value) in wanted {
            forwarded.append(name.clone(), value.clone());
        }
        Some(Arc::new(forwarded))
    }
}

/// What goes back first, and with it how.
enum First {
    /// events; `silent`: there is none yet, and the silence has to be broken
    Stream { silent: bool },
    /// the answer, and nothing else
    Answer(QueuedAnswer),
    /// what the server answered in place of a message
    Refusal(Box<Response<Bytes>>),
    /// the request ended without an answer
    Nothing,
}

impl First {
    /// Whether the request has failed. On a stream that is not known yet.
    fn is_refusal(&self) -> bool {
        match self {
            First::Stream { .. } => false,
            First::Answer(answer) => !answer.has_result,
            First::Refusal(_) | First::Nothing => true,
        }
    }
}

/// Waits until there is something to send back, or a silence to break: nothing is committed before.
/// An answer that comes first leaves as it is, anything else on a stream that ends with the answer.
async fn first(reader: &mut ResponseReader, takes: Takes) -> First {
    let silent = match takes.stream {
        true => timeout(SILENCE, reader.first_event()).await.is_err(),
        false => {
            reader.first_event().await;
            false
        }
    };
    if reader.needs_event_stream(takes.json) {
        return First::Stream { silent };
    }
    match reader.take_last() {
        Some(ResponseEvent::Answer(answer)) => First::Answer(answer),
        Some(ResponseEvent::Refusal(refusal)) => First::Refusal(refusal),
        _ => First::Nothing,
    }
}

fn respond(first: First, mut reader: ResponseReader) -> Response<Body> {
    match first {
        First::Stream { silent } => events(Body::Events(Box::new(SseBody::new(reader, silent)))),
        First::Answer(answer) => {
            let modern = reader.responder().request.errors_have_status;
            let own = || if modern { modern::status_of(&answer) } else { StatusCode::OK };
            let status = answer.status.unwrap_or_else(own);
            json(status, Body::Answer(answer.line, reader))
        }
        First::Refusal(refusal) => {
            reader.mark_delivered();
            passed_on(*refusal)
        }
        First::Nothing => {
            reader.mark_delivered();
            empty(StatusCode::ACCEPTED)
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(JSON.to_str().unwrap_or_default())
}
