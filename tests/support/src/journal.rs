//! The journal that the fake server keeps.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{eventually, json};

/// A line that the fake server received, or an event in its life.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The server process that wrote it.
    pub pid: u32,
    /// The line as received; empty for an event.
    pub line: String,
    /// The event (`start`, `eof`, `sigterm`, `child`, `call_ended`, …); empty for a line.
    pub event: String,
    /// All its members.
    pub json: Value,
}

impl Entry {
    fn new(text: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(text).ok()?;
        let text_of = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let pid = u32::try_from(json["pid"].as_u64()?).ok()?;
        Some(Self { pid, line: text_of("line"), event: text_of("event"), json })
    }

    /// The method of the request or notification received.
    pub fn method(&self) -> Option<String> {
        json::member(self.line.trim(), "method").and_then(json::string)
    }

    /// Whether this is a request or a notification of this method.
    pub fn has_method(&self, method: &str) -> bool {
        self.method().as_deref() == Some(method)
    }

    /// The raw id of the request received.
    pub fn raw_id(&self) -> &str {
        json::member(self.line.trim(), "id").unwrap_or_else(|| panic!("no id: {}", self.line))
    }

    /// Whether this is a call of a tool.
    pub fn is_call_of(&self, tool: &str) -> bool {
        self.has_method("tools/call")
            && json::path(self.line.trim(), &["params", "name"]).and_then(json::string).as_deref()
                == Some(tool)
    }

    /// A header of the HTTP request that brought it.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.json["http"]["headers"][name].as_str()
    }

    /// The method of the HTTP request that brought it.
    pub fn http_method(&self) -> Option<&str> {
        self.json["http"]["method"].as_str()
    }

    /// Whether it was a request of HTTP, whatever its body.
    pub fn is_http(&self) -> bool {
        self.http_method().is_some()
    }

    /// The raw text of the params.
    pub fn raw_params(&self) -> Option<&str> {
        json::member(self.line.trim(), "params")
    }
}

/// Reads a journal. An entry that is just being written is left for the next time.
pub fn read(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(Entry::new).collect()
}

/// Waits for an entry in a journal; `None` at the deadline.
pub async fn wait(path: &Path, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
    eventually(|| async { read(path).into_iter().find(&wanted) }).await
}
