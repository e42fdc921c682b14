//! A line that came, read once: whoever it passes on its way need not parse it again.

use bytes::Bytes;

use super::lines::{Line, with_text};
use super::message::{Envelope, Id, Kind};
use super::object::elements;

/// What a line is.
#[derive(Debug)]
pub enum Heard<'a> {
    /// a JSON object
    Object { line: &'a Bytes, text: &'a str, envelope: Envelope<'a> },
    /// what begins as an array; it need not be JSON
    Array { line: &'a Bytes, text: &'a str },
    /// neither
    Junk { line: &'a Bytes, text: &'a str },
    /// a line above the limit, thrown away but for its two ends
    TooLong { head: &'a Bytes, tail: &'a Bytes, length: u64 },
}

impl Heard<'_> {
    /// Reads a line, and hands it over.
    pub fn read<T>(line: &Line, f: impl FnOnce(&Heard) -> T) -> T {
        match line {
            Line::Whole(line) => with_text(line, |line, text| f(&Heard::of(line, text))),
            Line::TooLong { head, tail, length } => {
                f(&Heard::TooLong { head, tail, length: *length })
            }
        }
    }

    fn of<'a>(line: &'a Bytes, text: &'a str) -> Heard<'a> {
        let text = text.trim_ascii();
        if text.starts_with('[') {
            return Heard::Array { line, text };
        }
        match Envelope::parse(text) {
            Ok(envelope) => Heard::Object { line, text, envelope },
            Err(_) => Heard::Junk { line, text },
        }
    }

    /// Whether it is, or holds, the answer to a request.
    pub fn answers(&self, id: &Id) -> bool {
        let is_answer = |envelope: &Envelope| {
            envelope.is_message()
                && envelope.kind() == Kind::Response
                && envelope.id.is_some_and(|raw| id.is_written(raw))
        };
        match self {
            Heard::Object { envelope, .. } => is_answer(envelope),
            Heard::Array { text, .. } => {
                let parts = elements(text).unwrap_or_default();
                parts.iter().any(|part| Envelope::parse(part).is_ok_and(|part| is_answer(&part)))
            }
            Heard::Junk { .. } | Heard::TooLong { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &'static str) -> bool {
        Heard::read(&Line::Whole(Bytes::from(text)), |heard| heard.answers(&Id::Number(1)))
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
