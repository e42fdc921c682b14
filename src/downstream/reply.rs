//! Where an answer goes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::rpc::message::Message;

/// Where the answer to a request goes, shared by all who may have something to send there.
pub(crate) type Reply = Arc<dyn Responder>;

/// The way back to whoever sent a request, as the transport offers it. The methods with a body are
/// for what not every transport can do.
pub(crate) trait Responder: fmt::Debug + Send + Sync {
    /// Sends the answer. `false`: the client is gone.
    fn send(&self, answer: &Answer) -> bool;

    /// Sends what belongs to the request and comes before its answer: progress, a log line, a
    /// question. `false`: it can't go this way.
    fn push(&self, message: &Bytes) -> bool;

    /// Whether an answer would still reach the client.
    fn is_open(&self) -> bool;

    /// The request ends without an answer.
    fn finish(&self) {}

    /// The server may close its stream before the answer, and wants to be asked for the rest after
    /// `retry` (2025-11-25): the client is told the same.
    fn prime(&self, _retry: Option<Duration>) {}

    /// The server has closed its stream: the client's is closed too, if it knows where to ask for
    /// the rest.
    fn pause(&self) {}

    /// Hands on what the server answered in place of a message. `false`: it can't go this way.
    fn refuse(&self, _response: Response<Bytes>) -> bool {
        false
    }

    /// Whether an answer of this length leaves bit by bit, and is delivered only when the client has
    /// taken all of it.
    fn is_delivered_later(&self, _length: usize) -> bool {
        false
    }

    /// Whether the request has a stream of its own, which is cut if it does not end with an answer.
    fn has_own_stream(&self) -> bool {
        false
    }

    /// Whether the request asked for log messages (2026-07-28).
    fn wants_logs(&self) -> bool {
        false
    }
}

/// An answer on its way to the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    /// the message
    pub line: &'a Bytes,
    /// the HTTP status that the server gave it, where that is not 200
    pub status: Option<StatusCode>,
    /// whether the message has a `result`
    pub has_result: bool,
    /// the code of its error
    pub error_code: Option<i32>,
}

impl<'a> Answer<'a> {
    /// A result of our own.
    pub(crate) fn result(line: &'a Bytes) -> Self {
        Answer { line, status: None, has_result: true, error_code: None }
    }

    /// An error of our own, with its code.
    pub(crate) fn error(line: &'a Bytes, code: i32) -> Self {
        Answer { line, status: None, has_result: false, error_code: Some(code) }
    }

    /// The answers to a batch, as one array.
    pub(crate) fn array(line: &'a Bytes) -> Self {
        Answer { line, status: None, has_result: false, error_code: None }
    }

    /// The server's answer `message`, which leaves as `line`.
    pub(crate) fn of(message: &Message, line: &'a Bytes) -> Self {
        Answer {
            line,
            status: message.status,
            has_result: message.envelope.result.is_some(),
            error_code: message.envelope.error_code(),
        }
    }
}
