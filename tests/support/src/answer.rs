//! The answer to a request, and what it says about a job.

use serde_json::{Value, json};

use super::json::{member, path};

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The message as it came.
    pub raw: String,
    /// The message as a value; null where no value can hold it (`1e400`, lone surrogates).
    pub json: Value,
}

/// What a handle says to call next.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub tool: String,
    pub args: Value,
}

impl Answer {
    pub fn new(raw: &str) -> Self {
        Self { raw: raw.to_owned(), json: serde_json::from_str(raw).unwrap_or_default() }
    }

    /// The raw text of the id.
    pub fn raw_id(&self) -> &str {
        member(&self.raw, "id").unwrap_or_else(|| panic!("no id: {}", self.raw))
    }

    /// The raw text of the result.
    pub fn raw_result(&self) -> &str {
        member(&self.raw, "result").unwrap_or_else(|| panic!("no result: {}", self.raw))
    }

    /// The raw text of the error.
    pub fn raw_error(&self) -> &str {
        member(&self.raw, "error").unwrap_or_else(|| panic!("no error: {}", self.raw))
    }

    /// The result; panics if there is none.
    pub fn result(&self) -> &Value {
        self.json.get("result").unwrap_or_else(|| panic!("no result: {}", self.raw))
    }

    /// The JSON-RPC error; panics if there is none.
    pub fn error(&self) -> &Value {
        self.json.get("error").unwrap_or_else(|| panic!("no error: {}", self.raw))
    }

    /// The code of the JSON-RPC error.
    pub fn error_code(&self) -> i64 {
        self.error()["code"].as_i64().expect("a code is an integer")
    }

    /// Whether the answer is a JSON-RPC error.
    pub fn is_rpc_error(&self) -> bool {
        member(&self.raw, "error").is_some()
    }

    /// Whether the answer is a result with `isError: true`.
    pub fn is_error(&self) -> bool {
        path(&self.raw, &["result", "isError"]) == Some("true")
    }

    /// The server may have done the work, and nobody knows (§7).
    pub fn assert_outcome_unknown(&self) {
        let said =
            self.is_error() && self.text().contains("outcome unknown: check before you repeat it");
        assert!(said, "{}", self.raw);
    }

    /// The call never reached a server (§7).
    pub fn assert_not_started(&self) {
        assert!(self.is_error(), "{}", self.raw);
        assert!(self.text().contains("was not started"), "{}", self.raw);
        assert!(!self.text().contains("outcome unknown"), "{}", self.raw);
    }

    /// `structuredContent`; null without one.
    pub fn structured(&self) -> &Value {
        &self.result()["structuredContent"]
    }

    /// What the proxy says in words: the `message` of `structuredContent`.
    pub fn message(&self) -> &str {
        let message = self.structured()["message"].as_str();
        message.unwrap_or_else(|| panic!("no message: {}", self.raw))
    }

    /// The blocks of the result.
    pub fn content(&self) -> &[Value] {
        self.result()["content"].as_array().map_or(&[], Vec::as_slice)
    }

    fn first_text(&self) -> Option<&str> {
        self.content().iter().find_map(|block| block["text"].as_str())
    }

    /// The first block of text.
    pub fn text(&self) -> &str {
        self.first_text().unwrap_or_else(|| panic!("no text: {}", self.raw))
    }

    /// What the proxy says about the job, in every answer about one: `_meta["unhurry/job"]`, null in
    /// any other answer.
    pub fn job(&self) -> &Value {
        &self.json["result"]["_meta"]["unhurry/job"]
    }

    /// The handle: the structured content or, for clients older than that, the JSON of the first
    /// text. Null if the answer is none.
    pub fn handle(&self) -> Value {
        let from_text = || serde_json::from_str(self.first_text()?).ok();
        match self.structured() {
            Value::Null if self.job().is_object() => from_text().unwrap_or_default(),
            structured if structured["job_id"].is_string() => structured.clone(),
            _ => Value::Null,
        }
    }

    /// The id of the job that the answer is about.
    pub fn job_id(&self) -> &str {
        self.job()["job_id"].as_str().unwrap_or_else(|| panic!("about no job: {}", self.raw))
    }

    /// The status of the job that the answer is about.
    pub fn status(&self) -> &str {
        self.job()["status"].as_str().unwrap_or_else(|| panic!("about no job: {}", self.raw))
    }

    /// Whether the answer is a handle, of a job that still runs.
    pub fn is_handle(&self) -> bool {
        matches!(self.job()["status"].as_str(), Some("working" | "input_required"))
    }

    /// What to call next, as a handle or a page that is not the last says it.
    pub fn next_action(&self) -> Option<Action> {
        let handle = self.handle();
        let places = [&handle["next_action"], &self.job()["next_action"]];
        let action = places.into_iter().find(|action| action.is_object())?;
        let tool = action["tool"].as_str()?.to_owned();
        Some(Action { tool, args: action["args"].clone() })
    }
}

/// A `tools/call` as it goes over the wire, under this id.
pub fn call_message(id: impl Into<Value>, tool: &str, args: Value) -> Value {
    let (id, params) = (id.into(), call_params(tool, args));
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// The params of a `tools/call`.
pub fn call_params(tool: &str, args: Value) -> Value {
    json!({"name": tool, "arguments": args})
}
