//! A message with its text and envelope, and lines of our own making.

use std::str::from_utf8;

use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;
use tracing::debug;

use crate::rpc::message::{Envelope, Id, quoted};
use crate::rpc::object::Members;
use crate::rpc::splice::Edits;

/// How much of a line that is no JSON-RPC is shown in the log.
const SHOWN: usize = 200;

/// Codes of JSON-RPC that are ours to answer with.
pub const METHOD_NOT_FOUND: i32 = rmcp::model::ErrorCode::METHOD_NOT_FOUND.0;
pub const INVALID_REQUEST: i32 = rmcp::model::ErrorCode::INVALID_REQUEST.0;
pub const INTERNAL_ERROR: i32 = rmcp::model::ErrorCode::INTERNAL_ERROR.0;

/// A header says something else than the body (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;

/// A message on its way through.
pub struct Message<'a> {
    pub line: &'a Bytes,
    pub text: &'a str,
    pub envelope: Envelope<'a>,
    /// the HTTP status that a server gave an answer, where it is not 200
    pub status: Option<StatusCode>,
}

impl<'a> Message<'a> {
    pub fn new(line: &'a Bytes, text: &'a str, envelope: Envelope<'a>) -> Self {
        Message { line, text, envelope, status: None }
    }

    /// A message of our own making.
    pub fn of(line: &'a Bytes) -> Self {
        let text = text_of(line);
        Self::new(line, text, Envelope::parse(text).unwrap_or_default())
    }

    /// The raw id; empty where there is none.
    pub fn id(&self) -> &'a str {
        self.envelope.id.unwrap_or_default()
    }

    /// Puts the id in by which the server knows the request, where the client wrote another.
    pub fn go_by(&self, inside: &Id, edits: &mut Edits) {
        if !inside.is_written(self.id()) {
            edits.replace(self.text, self.id(), inside.to_json());
        }
    }

    /// The bytes to send on.
    pub fn edited(&self, edits: Edits) -> Bytes {
        if edits.is_empty() { self.line.clone() } else { edits.apply(self.text).into() }
    }

    pub(super) fn trace(&self, from: &str, method: &str) {
        debug!(from, method, id = self.envelope.id, bytes = self.line.len());
    }
}

/// The text of a line that was found to be valid, or that we made.
pub(super) fn text_of(line: &Bytes) -> &str {
    from_utf8(line).unwrap_or_default()
}

/// The start of a line, for the log.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

/// The raw `_meta["io.modelcontextprotocol/subscriptionId"]` of params or a result.
pub(super) fn subscription_id(object: &str) -> Option<&str> {
    Members::parse(object)?.object("_meta")?.get("io.modelcontextprotocol/subscriptionId")
}

/// The raw id of a message of which only the two ends are left: most writers put it first or last.
pub(super) fn id_at_an_end(head: &[u8], tail: &[u8]) -> Option<String> {
    let number_or_string = |text: &str| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let raw = values.next()?.ok()?.get();
        Id::parse(raw).map(|_| raw.to_owned())
    };
    let head = String::from_utf8_lossy(head);
    let start = head.split_once("\"id\":").filter(|(before, _)| before.len() < 24);
    if let Some(id) = start.and_then(|(_, rest)| number_or_string(rest)) {
        return Some(id);
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, end) = tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\":")?;
    number_or_string(end).filter(|id| id == end.trim())
}

/// Whether a message of which only the beginning is left is a request: its method stands before
/// anything that an answer has.
pub(super) fn is_request(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let at = |key: &str| head.find(key).unwrap_or(usize::MAX);
    at("\"method\":") < at("\"result\":").min(at("\"error\":"))
}

/// A request of our own.
pub(super) fn request_line(id: &Id, method: &str, params: Option<&str>) -> Bytes {
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"{params}}}"#, id.to_json()).into()
}

/// Takes a request back from the server.
pub(super) fn cancelled_line(id: &Id, reason: &str) -> Bytes {
    let (id, reason) = (id.to_json(), quoted(reason));
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#
    )
    .into()
}

/// An answer of our own; `result` is raw JSON.
pub(super) fn result_line(id: &str, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

/// An error of our own.
pub(super) fn error_line(id: &str, code: i32, message: &str) -> Bytes {
    raw_error_line(id, &format!(r#"{{"code":{code},"message":{}}}"#, quoted(message)))
}

/// An error; `error` is raw JSON.
pub(super) fn raw_error_line(id: &str, error: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
}
