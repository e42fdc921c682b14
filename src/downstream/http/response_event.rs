//! What goes back to an HTTP client, piece by piece.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::downstream::reply::Answer;

/// One piece of what goes back.
#[derive(Debug)]
pub(crate) enum ResponseEvent {
    /// a message ahead of the answer
    Message(Bytes),
    /// the answer
    Answer(QueuedAnswer),
    /// what the server answered in place of a message
    Refusal(Box<Response<Bytes>>),
    /// the stream may end before its answer; when the client is to come back for the rest
    Prime(Option<Duration>),
    /// the stream ends now, before its answer
    Pause,
}

impl ResponseEvent {
    /// Its length in bytes.
    pub(crate) fn length(&self) -> usize {
        match self {
            ResponseEvent::Message(message) => message.len(),
            ResponseEvent::Answer(answer) => answer.line.len(),
            ResponseEvent::Refusal(refusal) => refusal.body().len(),
            ResponseEvent::Prime(_) | ResponseEvent::Pause => 0,
        }
    }
}

/// An answer that waits for its reader.
#[derive(Debug)]
pub(crate) struct QueuedAnswer {
    /// the message
    pub line: Bytes,
    /// the HTTP status that the server gave it, where that is not 200
    pub status: Option<StatusCode>,
    /// whether the message has a `result`
    pub has_result: bool,
    /// the code of its error
    pub error_code: Option<i32>,
}

impl From<&Answer<'_>> for QueuedAnswer {
    fn from(answer: &Answer) -> Self {
        let &Answer { line, status, has_result, error_code } = answer;
        QueuedAnswer { line: line.clone(), status, has_result, error_code }
    }
}
