//! A JSON-RPC message: its text, and its envelope, borrowed from the text in one pass.

use std::borrow::Cow;
use std::fmt;
use std::str::from_utf8;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tracing::debug;

use super::id::Id;
use super::object::Members;
use super::splice::Edits;
use super::string::string;

/// The members that every JSON-RPC message may have. Every field is the raw JSON text of the
/// member; where a key stands twice, the last one counts, as in most JSON readers.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Envelope<'a> {
    /// `jsonrpc`
    pub version: Option<&'a str>,
    /// `id`
    pub id: Option<&'a str>,
    /// `method`, with its quotes
    pub method: Option<&'a str>,
    /// `params`
    pub params: Option<&'a str>,
    /// `result`
    pub result: Option<&'a str>,
    /// `error`
    pub error: Option<&'a str>,
}

/// The kinds of messages of JSON-RPC 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// has `method` and `id`
    Request,
    /// has `method` and no `id`
    Notification,
    /// has `id` and no `method`
    Response,
    /// has neither
    Unknown,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope of one JSON object.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub(crate) fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The kind of the message.
    pub(crate) fn kind(&self) -> Kind {
        match (self.method, self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, Some(_)) => Kind::Response,
            (None, None) => Kind::Unknown,
        }
    }

    /// Whether it is a message of JSON-RPC 2.0, and not a log line that is JSON too.
    pub(crate) fn is_message(&self) -> bool {
        self.is_json_rpc() && self.kind() != Kind::Unknown
    }

    /// Whether it has `"jsonrpc":"2.0"`.
    pub(crate) fn is_json_rpc(&self) -> bool {
        self.version == Some("\"2.0\"")
    }

    /// The id of a request; `None` for any other message.
    pub(crate) fn request_id(&self) -> Option<Id> {
        self.id.filter(|_| self.kind() == Kind::Request).and_then(Id::parse)
    }

    /// The code of an error; `None` for anything else.
    pub(crate) fn error_code(&self) -> Option<i32> {
        Members::parse(self.error?)?.get("code")?.parse().ok()
    }

    /// The method's name; empty where there is none or where it is not a string.
    pub(crate) fn method_name(&self) -> Cow<'a, str> {
        self.method.and_then(string).unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;
        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a JSON-RPC message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(field) = map.next_key_seed(FieldSeed)? {
                    let value = map.next_value::<&'de RawValue>()?.get();
                    match field {
                        Field::Version => envelope.version = Some(value),
                        Field::Id => envelope.id = Some(value),
                        Field::Method => envelope.method = Some(value),
                        Field::Params => envelope.params = Some(value),
                        Field::Result => envelope.result = Some(value),
                        Field::Error => envelope.error = Some(value),
                        Field::Other => {}
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

/// A member of the envelope, by its key.
enum Field {
    Version,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

/// Reads a key without copying it.
struct FieldSeed;

impl<'de> DeserializeSeed<'de> for FieldSeed {
    type Value = Field;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldSeed {
    type Value = Field;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a member name")
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<Field, E> {
        Ok(match name {
            "jsonrpc" => Field::Version,
            "id" => Field::Id,
            "method" => Field::Method,
            "params" => Field::Params,
            "result" => Field::Result,
            "error" => Field::Error,
            _ => Field::Other,
        })
    }
}

/// A message with its parsed envelope.
pub(crate) struct Message<'a> {
    /// its bytes
    pub line: &'a Bytes,
    /// the same as text
    pub text: &'a str,
    pub envelope: Envelope<'a>,
    /// the HTTP status that a server gave an answer, where it is not 200
    pub status: Option<StatusCode>,
}

impl<'a> Message<'a> {
    /// A message that was parsed before.
    pub(crate) fn new(line: &'a Bytes, text: &'a str, envelope: Envelope<'a>) -> Self {
        Message { line, text, envelope, status: None }
    }

    /// Parses a line that is valid UTF-8: one that was parsed before, or is of our own.
    pub(crate) fn parse(line: &'a Bytes) -> Self {
        let text = text_of(line);
        Self::new(line, text, Envelope::parse(text).unwrap_or_default())
    }

    /// The raw id; empty where there is none.
    pub(crate) fn id(&self) -> &'a str {
        self.envelope.id.unwrap_or_default()
    }

    /// Replaces the id, where it is another one.
    pub(crate) fn set_id(&self, id: &Id, edits: &mut Edits) {
        if !id.matches_raw(self.id()) {
            edits.replace(self.text, self.id(), id.to_json());
        }
    }

    /// Its bytes with these edits made.
    pub(crate) fn edited(&self, edits: Edits) -> Bytes {
        if edits.is_empty() { self.line.clone() } else { edits.apply(self.text).into() }
    }

    /// Logs that the message came.
    pub(crate) fn trace(&self, from: &str) {
        let method = &*self.envelope.method_name();
        debug!(from, method, id = self.envelope.id, bytes = self.line.len());
    }
}

/// The text of a line that is known to be valid UTF-8.
pub(crate) fn text_of(line: &Bytes) -> &str {
    from_utf8(line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_equal_keys_counts_and_escaped_keys_are_understood() {
        let text = r#"{"id":1,"\u0069d":2,"x":{"id":3},"method":"a\/b","params":[1e400]}"#;
        let envelope = Envelope::parse(text).unwrap();
        assert_eq!(envelope.id, Some("2"));
        assert_eq!(envelope.method_name(), "a/b");
        assert_eq!(envelope.params, Some("[1e400]"));
        assert_eq!(envelope.kind(), Kind::Request);
    }
}
