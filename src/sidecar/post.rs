//! A POST: its body is read, and told apart by era, request by request (protocol §1.3).

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::downstream::http::Body;
use crate::mcp::error_code::{INVALID_REQUEST, PARSE_ERROR, REFUSED};
use crate::mcp::params::Params;
use crate::rpc::lines::with_valid_utf8;
use crate::rpc::message::{Envelope, Kind, Message};

use super::accept::AcceptedTypes;
use super::answers::{JSON, empty, error, unavailable};
use super::modern::is_modern;
use super::outcome::PostOutcome;
use super::request_body::{BodyError, read};
use super::respond::FirstPart;
use super::service::Sidecar;

impl Sidecar {
    pub(super) async fn post(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let accept = AcceptedTypes::of(&parts.headers);
        if !accept.json && !accept.events {
            let message = "Accept must name application/json and text/event-stream";
            return error(StatusCode::NOT_ACCEPTABLE, None, REFUSED, message);
        }
        if !is_json(&parts.headers) {
            let message = "Content-Type must be application/json";
            return error(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, REFUSED, message);
        }
        let limit = self.config.max_message;
        let body = match read(&parts.headers, body, limit, &self.body_bytes).await {
            Ok(body) => body,
            Err(problem) => return not_read(&problem),
        };
        let outcome =
            with_valid_utf8(&body, |body, text| self.dispatch(&parts.headers, accept, body, text));
        // A call may wait for long: it must hold neither its headers nor the buffer of its body.
        drop((parts, body, self));
        let (mut reader, handshake) = match outcome {
            PostOutcome::Answered(response) => return *response,
            PostOutcome::Waiting(reader) => (reader, None),
            PostOutcome::Beginning(reader, handshake) => (reader, Some(handshake)),
        };
        let first = FirstPart::wait(&mut reader, accept).await;
        let failed = first.is_failure();
        let response = first.respond(reader);
        match handshake {
            Some(handshake) => handshake.complete(response, failed),
            None => response,
        }
    }

    fn dispatch(
        &self,
        headers: &HeaderMap,
        accept: AcceptedTypes,
        body: &Bytes,
        text: &str,
    ) -> PostOutcome {
        if text.trim_start().starts_with('[') {
            return self.legacy_batch(headers, accept, body, text);
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
        if is_modern(headers, &params) {
            self.modern(headers, accept, &message, &params)
        } else {
            self.legacy(headers, accept, &message, &params)
        }
    }
}

fn not_read(problem: &BodyError) -> Response<Body> {
    match problem {
        BodyError::TooLong(_) => {
            error(StatusCode::PAYLOAD_TOO_LARGE, None, REFUSED, &problem.to_string())
        }
        BodyError::TimedOut => empty(StatusCode::REQUEST_TIMEOUT),
        BodyError::Broken => empty(StatusCode::BAD_REQUEST),
        BodyError::NoRoom => unavailable(None, &problem.to_string()),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(JSON.to_str().unwrap_or_default())
}
