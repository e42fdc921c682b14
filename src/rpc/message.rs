//! The envelope of a JSON-RPC message, borrowed from its text in one pass.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::object::Members;

/// What is known of a message without looking into it. Every field is the raw JSON text of the
/// member; of a key that stands twice, the last one counts, as in most JSON readers.
#[derive(Debug, Default, Clone, Copy)]
pub struct Envelope<'a> {
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

/// What a message is, as JSON-RPC 2.0 tells its kinds apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
    /// Reads the envelope of one JSON object. Fails on anything that is not a JSON object.
    pub fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The kind of the message.
    pub fn kind(&self) -> Kind {
        match (self.method, self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, Some(_)) => Kind::Response,
            (None, None) => Kind::Unknown,
        }
    }

    /// Whether it is a message of JSON-RPC 2.0: log lines of a server may be JSON too.
    pub fn is_message(&self) -> bool {
        self.is_json_rpc() && self.kind() != Kind::Unknown
    }

    /// Whether it says so of itself.
    pub fn is_json_rpc(&self) -> bool {
        self.version == Some("\"2.0\"")
    }

    /// The id of a request; `None` for any other message.
    pub fn request_id(&self) -> Option<Id> {
        self.id.filter(|_| self.kind() == Kind::Request).and_then(Id::parse)
    }

    /// The code of an error; `None` for anything else.
    pub fn error_code(&self) -> Option<i64> {
        Members::parse(self.error?)?.get("code")?.parse().ok()
    }

    /// The method's name; empty where there is none or where it is not a string.
    pub fn method_name(&self) -> Cow<'a, str> {
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

enum Field {
    Version,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

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

/// The text that a raw JSON string stands for; `None` where it is no string, or one with a lone
/// surrogate.
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
}

/// A text as raw JSON string, with its quotes.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always valid JSON")
}

/// A request id or progress token as a key: equal where a JSON reader would call them equal, so
/// that a server which answers `"\u0031"` with `"1"`, or `1.0` with `1`, is still understood.
/// `"1"` and `1` differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// a number without a fraction that fits
    Number(i64),
    /// a string, unescaped
    Text(Box<str>),
    /// any other number, or a string with a lone surrogate: its raw text
    Raw(Box<str>),
}

impl Id {
    /// Reads raw JSON text; `None` for what can be no id (`null`, objects, arrays, booleans).
    pub fn parse(raw: &str) -> Option<Id> {
        match raw.as_bytes().first()? {
            b'"' => Some(match string(raw) {
                Some(text) => Id::Text(text.into()),
                None => Id::Raw(raw.into()),
            }),
            b'-' | b'0'..=b'9' => Some(Id::number(raw)),
            _ => None,
        }
    }

    fn number(raw: &str) -> Id {
        if let Ok(n) = raw.parse::<i64>() {
            return Id::Number(n);
        }
        // 2^53: beyond it a float no longer tells neighbours apart.
        match raw.parse::<f64>() {
            Ok(x) if x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 => Id::Number(x as i64),
            _ => Id::Raw(raw.into()),
        }
    }

    /// Whether this raw JSON text is the id.
    pub fn is_written(&self, raw: &str) -> bool {
        Id::parse(raw).as_ref() == Some(self)
    }

    /// The id as raw JSON text.
    pub fn to_json(&self) -> String {
        match self {
            Id::Number(n) => n.to_string(),
            Id::Text(text) => quoted(text),
            Id::Raw(raw) => raw.to_string(),
        }
    }
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

    #[test]
    fn ids_are_equal_where_a_reader_says_so() {
        assert_eq!(Id::parse("1.0"), Id::parse("1"));
        assert_eq!(Id::parse(r#""\u0031""#), Id::parse(r#""1""#));
        assert_ne!(Id::parse(r#""1""#), Id::parse("1"));
        assert_eq!(Id::parse("null"), None);
        assert_ne!(Id::parse("9007199254740993"), Id::parse("9007199254740992"));
        assert_eq!(Id::parse("1e400").unwrap().to_json(), "1e400");
    }
}
