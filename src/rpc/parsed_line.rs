//! A line that was received, with what was parsed of it, so that it is parsed once.

use bytes::Bytes;

use super::id::Id;
use super::line::Line;
use super::lines::with_valid_utf8;
use super::message::{Envelope, Kind};
use super::object::elements;

/// How much of a line that is no JSON-RPC is shown in the log, in characters.
const SHOWN: usize = 200;

/// A line that was received.
#[derive(Debug)]
pub(crate) enum ParsedLine<'a> {
    /// a JSON object
    Object { line: &'a Bytes, text: &'a str, envelope: Envelope<'a> },
    /// a text that begins with `[`; it may be no JSON
    Array { line: &'a Bytes, text: &'a str },
    /// anything else
    NoJson { line: &'a Bytes, text: &'a str },
    /// a line above the limit, thrown away but for its two ends
    TooLong { head: &'a Bytes, tail: &'a Bytes, length: u64 },
}

impl ParsedLine<'_> {
    /// Parses a line, and calls `f` with it.
    pub(crate) fn parse<T>(line: &Line, f: impl FnOnce(&ParsedLine) -> T) -> T {
        match line {
            Line::Whole(line) => with_valid_utf8(line, |line, text| f(&ParsedLine::of(line, text))),
            Line::TooLong { head, tail, length } => {
                f(&ParsedLine::TooLong { head, tail, length: *length })
            }
        }
    }

    fn of<'a>(line: &'a Bytes, text: &'a str) -> ParsedLine<'a> {
        let text = text.trim_ascii();
        if text.starts_with('[') {
            return ParsedLine::Array { line, text };
        }
        match Envelope::parse(text) {
            Ok(envelope) => ParsedLine::Object { line, text, envelope },
            Err(_) => ParsedLine::NoJson { line, text },
        }
    }

    /// Its envelope, where it is one JSON object.
    pub(crate) fn envelope(&self) -> Option<&Envelope<'_>> {
        match self {
            ParsedLine::Object { envelope, .. } => Some(envelope),
            _ => None,
        }
    }

    /// Whether it is the answer to this request, or an array that holds it.
    pub(crate) fn answers(&self, id: &Id) -> bool {
        let is_answer = |envelope: &Envelope| {
            envelope.is_message()
                && envelope.kind() == Kind::Response
                && envelope.id.is_some_and(|raw| id.matches_raw(raw))
        };
        match self {
            ParsedLine::Object { envelope, .. } => is_answer(envelope),
            ParsedLine::Array { text, .. } => {
                let parts = elements(text).unwrap_or_default();
                parts.iter().any(|part| Envelope::parse(part).is_ok_and(|part| is_answer(&part)))
            }
            ParsedLine::NoJson { .. } | ParsedLine::TooLong { .. } => false,
        }
    }
}

/// The start of a line, for the log.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &'static str) -> bool {
        ParsedLine::parse(&Line::Whole(Bytes::from(text)), |heard| heard.answers(&Id::Number(1)))
    }

    #[test]
    fn an_answer_alone_or_in_a_batch_answers_its_request_alone() {
        assert!(answers(r#"{"jsonrpc":"2.0","result":{},"id":1.0}"#));
        assert!(answers(
            r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"error":{}}]"#
        ));
        assert!(answers(" [{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n"));
        assert!(!answers(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#));
        assert!(!answers(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
        assert!(!answers(r#"{"id":1,"result":{}}"#), "no JSON-RPC");
        assert!(!answers("[1"));
        assert!(!answers("starting"));
    }
}
