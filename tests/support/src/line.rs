//! A line that the peer wrote to stdout.

use serde_json::Value;

use super::json;

/// A line of stdout, without its `\n`.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The text; what was not UTF-8 shows as U+FFFD.
    pub text: String,
    /// Whether the bytes were UTF-8.
    pub is_utf8: bool,
}

impl Line {
    pub fn new(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        Self {
            text: String::from_utf8_lossy(bytes).into_owned(),
            is_utf8: str::from_utf8(bytes).is_ok(),
        }
    }

    /// The messages in it: one, or those of a batch.
    pub fn messages(&self) -> Vec<&str> {
        json::messages(&self.text)
    }

    /// The response in it to the request with this raw id.
    pub fn response_to(&self, id: &str) -> Option<&str> {
        self.messages().into_iter().find(|message| {
            json::Object::parse(message).is_some_and(|object| {
                object.get("method").is_none() && object.get("id") == Some(id)
            })
        })
    }

    /// The method of a request or a notification.
    pub fn method(&self) -> Option<String> {
        json::member(self.text.trim(), "method").and_then(json::string)
    }

    /// Whether it is a request or a notification of this method.
    pub fn has_method(&self, method: &str) -> bool {
        self.method().as_deref() == Some(method)
    }

    /// The raw id, if it has one.
    pub fn id(&self) -> Option<&str> {
        json::member(self.text.trim(), "id")
    }

    /// Whether it is a notification.
    pub fn is_notification(&self) -> bool {
        self.method().is_some() && self.id().is_none()
    }

    /// The line as a value; null where no value can hold it.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Panics unless this is exactly one message of JSON-RPC 2.0, or a batch of them, with nothing
    /// around it.
    pub fn assert_protocol(&self) {
        let text = &self.text;
        assert!(self.is_utf8 && !text.ends_with('\r'), "not a clean line: {text:?}");
        assert!(!self.messages().is_empty(), "no message: {text:?}");
        for message in self.messages() {
            let version = json::member(message, "jsonrpc").and_then(json::string);
            assert_eq!(version.as_deref(), Some("2.0"), "not JSON-RPC: {text:?}");
        }
    }
}
