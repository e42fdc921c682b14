//! The protocol: openings, requests, calls, and following a handle to its end.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::answer::{Answer, call_params};
use super::{Line, Peer};

/// More polls than any test needs.
const MAX_POLLS: usize = 100;

impl Peer {
    /// Opens a session of 2025-11-25 as `test-client`; the answer to `initialize`.
    pub async fn initialize(&self) -> Answer {
        self.initialize_under("2025-11-25").await
    }

    /// Opens a session of this revision as `test-client`.
    pub async fn initialize_under(&self, revision: &str) -> Answer {
        self.initialize_as("test-client", "1.0.0", revision).await
    }

    /// Opens a session under this client name, client version and protocol version.
    pub async fn initialize_as(&self, name: &str, version: &str, protocol: &str) -> Answer {
        self.initialize_with(name, version, protocol, json!({"elicitation": {}})).await
    }

    /// Opens a session with these client capabilities.
    pub async fn initialize_with(
        &self,
        name: &str,
        version: &str,
        protocol: &str,
        capabilities: Value,
    ) -> Answer {
        let info = json!({"name": name, "version": version});
        let params =
            json!({"protocolVersion": protocol, "capabilities": capabilities, "clientInfo": info});
        let answer = self.ask("initialize", params).await;
        self.notify("notifications/initialized", json!({})).await;
        answer
    }

    /// From here on every request is one of 2026-07-28, with these client capabilities.
    pub fn become_modern(&self, name: &str, capabilities: Value) {
        *self.meta.lock().expect("no holder panics") = Some(modern_meta(name, capabilities));
    }

    /// From here on requests are those of a legacy client again.
    pub fn become_legacy(&self) {
        *self.meta.lock().expect("no holder panics") = None;
    }

    /// Calls a tool as a modern client, `test-client` unless `become_modern` named another.
    pub async fn modern_call(&self, tool: &str, args: Value) -> Answer {
        if self.meta.lock().expect("no holder panics").is_none() {
            self.become_modern("test-client", json!({}));
        }
        self.call(tool, args).await
    }

    /// Sends a request under a fresh id, which is given back as raw text.
    pub async fn request(&self, method: &str, params: Value) -> String {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed).to_string();
        self.request_as(&id, method, params).await;
        id
    }

    /// Sends a request under this raw id.
    pub async fn request_as(&self, id: &str, method: &str, params: Value) {
        let params = with_meta(params, self.meta.lock().expect("no holder panics").clone());
        let method = Value::from(method);
        self.send_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#
        ))
        .await;
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send_raw(&message.to_string()).await;
    }

    /// Cancels the request with this raw id.
    pub async fn cancel(&self, id: &str, reason: &str) {
        let reason = Value::from(reason);
        self.send_raw(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#
        ))
        .await;
    }

    /// Answers a request of the server with this raw result.
    pub async fn respond(&self, request: &Line, result: &str) {
        let id = request.id().unwrap_or_else(|| self.fail("no request to answer"));
        self.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    /// Waits for the answer to a request.
    pub async fn answer(&self, id: &str) -> Answer {
        self.answer_from(0, id).await
    }

    /// Waits for an answer after a mark: for ids that are used again.
    pub async fn answer_from(&self, mark: usize, id: &str) -> Answer {
        let found = self.find(mark, |line| line.response_to(id).map(Answer::new)).await;
        found.unwrap_or_else(|| self.fail(&format!("no answer to {id}")))
    }

    /// The answers to a request so far: there should never be a second.
    pub fn answers(&self, id: &str) -> Vec<Answer> {
        let lines = self.lines();
        lines.iter().filter_map(|line| line.response_to(id)).map(Answer::new).collect()
    }

    /// A request and its answer.
    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        let mark = self.mark();
        let id = self.request(method, params).await;
        self.answer_from(mark, &id).await
    }

    /// Sends the call of a tool; its raw id.
    pub async fn start(&self, tool: &str, args: Value) -> String {
        self.request("tools/call", call_params(tool, args)).await
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, args: Value) -> Answer {
        self.ask("tools/call", call_params(tool, args)).await
    }

    /// Calls a tool with this `_meta`.
    pub async fn call_with_meta(&self, tool: &str, args: Value, meta: Value) -> Answer {
        let mut params = call_params(tool, args);
        params["_meta"] = meta;
        self.ask("tools/call", params).await
    }

    /// Runs a script in the fake server; its answer.
    pub async fn script(&self, steps: Value) -> Answer {
        self.call("script", json!({"steps": steps})).await
    }

    /// A request that changes nothing: with its answer, all that was sent before has arrived.
    pub async fn settle(&self) {
        self.ask("x/echo_params", json!({})).await;
    }

    /// Calls what the answer says to call next, literally.
    pub async fn follow(&self, answer: &Answer) -> Answer {
        let Some(action) = answer.next_action() else {
            self.fail(&format!("nothing to follow in {}", answer.raw))
        };
        self.call(&action.tool, action.args).await
    }

    /// Follows a handle until its job has ended; an answer that is no handle is given back.
    pub async fn finish(&self, answer: Answer) -> Answer {
        let mut answer = answer;
        for _ in 0..MAX_POLLS {
            if !answer.is_handle() {
                return answer;
            }
            answer = self.follow(&answer).await;
        }
        self.fail("the job does not end")
    }

    /// The pages of a result: the first, as given, and all that follow.
    pub async fn pages(&self, first: Answer) -> Vec<Answer> {
        let mut pages = vec![first];
        while pages.len() < MAX_POLLS && pages[pages.len() - 1].next_action().is_some() {
            let next = self.follow(&pages[pages.len() - 1]).await;
            pages.push(next);
        }
        pages
    }
}

/// The `_meta` of a request of 2026-07-28.
pub fn modern_meta(name: &str, capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The params with the `_meta` of a modern client, if it is one; members that are there stay.
pub fn with_meta(mut params: Value, meta: Option<Value>) -> Value {
    if let Some(Value::Object(meta)) = meta {
        for (key, value) in meta {
            let place = &mut params["_meta"][key];
            if place.is_null() {
                *place = value;
            }
        }
    }
    params
}
