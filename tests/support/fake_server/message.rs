//! A request, and what may become of it.

use serde_json::{Value, json};

use support::json::{Object, path, string};

/// A request, its id and its params as the text that came in.
pub(crate) struct Request {
    pub id: String,
    pub method: String,
    pub params: String,
}

impl Request {
    /// The request in a message, if it is one.
    pub(crate) fn of(message: &Object) -> Option<Self> {
        let method = message.get("method").and_then(string)?;
        let params = message.get("params").unwrap_or("{}").to_owned();
        Some(Self { id: message.get("id")?.to_owned(), method, params })
    }

    /// The raw text of a member of the params, however deep.
    pub(crate) fn param(&self, keys: &[&str]) -> Option<&str> {
        path(&self.params, keys)
    }

    /// Whether the request has the metadata of 2026-07-28.
    pub(crate) fn is_modern(&self) -> bool {
        self.param(&["_meta", "io.modelcontextprotocol/protocolVersion"]).is_some()
    }
}

/// The outcome of a request, as raw JSON.
#[derive(Debug)]
pub(crate) enum Outcome {
    Result(String),
    Error(String),
    /// No answer (from here).
    Silence,
}

impl Outcome {
    pub(crate) fn error(code: i64, message: &str) -> Self {
        Self::Error(json!({"code": code, "message": message}).to_string())
    }

    /// A result, which says that it is complete where the era asks for that.
    pub(crate) fn result(mut result: Value, modern: bool) -> Self {
        if modern && result.get("resultType").is_none() {
            result["resultType"] = "complete".into();
        }
        Self::Result(result.to_string())
    }

    /// The result of a tool: one block of text.
    pub(crate) fn text(text: &str, modern: bool) -> Self {
        Self::result(json!({"content": [{"type": "text", "text": text}]}), modern)
    }

    /// The response line; `None` for silence.
    pub(crate) fn response(&self, id: &str) -> Option<String> {
        let (member, value) = match self {
            Self::Result(raw) => ("result", raw),
            Self::Error(raw) => ("error", raw),
            Self::Silence => return None,
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#))
    }
}
