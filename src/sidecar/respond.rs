//! What goes back to a POST whose message has gone to a session.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::time::timeout;

use crate::downstream::http::{Body, QueuedAnswer, ResponseEvent, ResponseReader, SseBody};
use crate::mcp::error_code::{self, METHOD_NOT_FOUND};

use super::accept::AcceptedTypes;
use super::answers::{empty, events, json, passed_on};

/// After so long without a word from the server a stream is opened (contract §9).
const SILENCE: Duration = Duration::from_secs(10);
/// Errors are no longer than this: a longer answer counts as a result.
const LONGEST_ERROR: usize = 64 << 10;

/// What goes back first, which decides how.
pub(crate) enum FirstPart {
    /// events; `silent`: there is none yet, and the silence has to be broken
    Events { silent: bool },
    /// the answer, and nothing else
    Answer(QueuedAnswer),
    /// what the server answered in place of a message
    Refusal(Box<Response<Bytes>>),
    /// the request has ended without an answer
    Nothing,
}

impl FirstPart {
    /// Waits until there is something to send back, or a silence to break: nothing is committed
    /// before. An answer that comes first leaves alone, anything else on a stream that ends with
    /// the answer.
    pub(crate) async fn wait(reader: &mut ResponseReader, accept: AcceptedTypes) -> Self {
        let silent = match accept.events {
            true => timeout(SILENCE, reader.first_event()).await.is_err(),
            false => {
                reader.first_event().await;
                false
            }
        };
        if reader.needs_event_stream(accept.json) {
            return FirstPart::Events { silent };
        }
        match reader.take_last() {
            Some(ResponseEvent::Answer(answer)) => FirstPart::Answer(answer),
            Some(ResponseEvent::Refusal(refusal)) => FirstPart::Refusal(refusal),
            _ => FirstPart::Nothing,
        }
    }

    /// Whether the request has failed. On a stream that is not known yet.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            FirstPart::Events { .. } => false,
            FirstPart::Answer(answer) => !answer.has_result,
            FirstPart::Refusal(_) | FirstPart::Nothing => true,
        }
    }

    /// The response that begins with it.
    pub(crate) fn respond(self, mut reader: ResponseReader) -> Response<Body> {
        match self {
            FirstPart::Events { silent } => {
                events(Body::Events(Box::new(SseBody::new(reader, silent))))
            }
            FirstPart::Answer(answer) => {
                let own = match reader.responder().request.errors_have_status {
                    true => status_of(&answer),
                    false => StatusCode::OK,
                };
                json(answer.status.unwrap_or(own), Body::Answer(answer.line, reader))
            }
            FirstPart::Refusal(refusal) => {
                reader.mark_delivered();
                passed_on(*refusal)
            }
            FirstPart::Nothing => {
                reader.mark_delivered();
                empty(StatusCode::ACCEPTED)
            }
        }
    }
}

/// The HTTP status that goes with an answer of the modern era (protocol §1.2).
fn status_of(answer: &QueuedAnswer) -> StatusCode {
    match answer.error_code.filter(|_| answer.line.len() < LONGEST_ERROR) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(code) if error_code::MODERN.contains(&code) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
