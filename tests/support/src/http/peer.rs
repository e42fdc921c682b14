//! A client over Streamable HTTP that shows what HTTP is about.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::connection;
use super::response::Response;
use crate::json::{member, path, string};
use crate::session::{modern_meta, with_meta};
use crate::{Answer, DEADLINE, Line, call_params, eventually};

/// A client of one endpoint. Every request has a connection of its own, which a dropped `Response` or
/// future closes.
pub struct HttpPeer {
    authority: String,
    path: String,
    headers: Vec<(String, String)>,
    session: Mutex<Option<String>>,
    /// The version agreed on in a legacy session.
    version: Mutex<Option<String>>,
    /// The `_meta` of every request of a modern client.
    meta: Mutex<Option<Value>>,
    /// What it takes in answer to a POST.
    accept: Mutex<Option<String>>,
    next_id: AtomicU64,
}

fn set<T>(place: &Mutex<Option<T>>, value: Option<T>) {
    *place.lock().expect("no holder panics") = value;
}

fn copy<T: Clone>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().expect("no holder panics").clone()
}

impl HttpPeer {
    /// A client of this URL.
    pub fn at(url: &str) -> Self {
        let rest = url.strip_prefix("http://").expect("the URL is one of http");
        let (authority, path) = rest.split_once('/').expect("the URL has a path");
        Self {
            authority: authority.to_owned(),
            path: format!("/{path}"),
            headers: vec![],
            session: Mutex::default(),
            version: Mutex::default(),
            meta: Mutex::default(),
            accept: Mutex::default(),
            next_id: AtomicU64::new(1),
        }
    }

    /// Sends this header with every request, in place of one of that name.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `HOST:PORT`, for tests that speak bytes.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The id of the session, if it has one.
    pub fn session(&self) -> Option<String> {
        copy(&self.session)
    }

    /// Uses a session that was opened elsewhere, or none.
    pub fn set_session(&self, id: Option<&str>) {
        set(&self.session, id.map(str::to_owned));
    }

    /// From here on it takes this in answer to a POST, in place of JSON and events.
    pub fn set_accept(&self, accept: &str) {
        set(&self.accept, Some(accept.to_owned()));
    }

    /// From here on every request is one of 2026-07-28, with these client capabilities.
    pub fn become_modern(&self, name: &str, capabilities: Value) {
        set(&self.meta, Some(modern_meta(name, capabilities)));
    }

    /// Sends a request with these headers, and the client's own, to a path of the server.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response, String> {
        let mut request = Request::builder().method(method).uri(path);
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let all = [("host", self.authority.as_str())];
        let all = all.into_iter().chain(headers.iter().copied()).chain(own);
        let builder = request.headers_mut().expect("the request is well-formed");
        for (name, value) in all {
            let name: hyper::header::HeaderName = name.parse().expect("the name of a header");
            builder.insert(name, value.parse().expect("the value of a header"));
        }
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        let request = request.body(body).expect("the request is well-formed");
        let (response, connection) = connection::send(&self.authority, request).await?;
        Ok(Response::new(response, connection))
    }

    /// The same to the endpoint, where an answer must begin.
    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let sent = self.try_send(method, &self.path, headers, body);
        let response = tokio::time::timeout(DEADLINE, sent).await;
        let response = response.unwrap_or_else(|_| panic!("no answer begins to {body}"));
        response.unwrap_or_else(|error| panic!("{error}: {method} {body}"))
    }

    /// The status of what is at this path, asked for with these headers besides the usual ones.
    pub async fn status_of(&self, path: &str, headers: &[(&str, &str)]) -> u16 {
        self.try_send("GET", path, headers, "").await.expect("an answer").status
    }

    /// Posts a message, with the headers that its era asks for; `more` win over them.
    pub async fn post_with(&self, message: &str, more: &[(&str, &str)]) -> Response {
        self.send("POST", &list(&self.headers_of(message), more), message).await
    }

    /// Posts a message whose `Mcp-Name` is among `headers`, as it can't stand there as it is.
    pub async fn post_without_name(&self, message: &str, headers: &[(&str, &str)]) -> Response {
        let mut own = self.headers_of(message);
        own.retain(|(name, _)| *name != "mcp-name");
        self.send("POST", &list(&own, headers), message).await
    }

    /// Posts a message with this value for a header of its era, or without the header.
    pub async fn post_but(&self, message: &str, name: &str, value: Option<&str>) -> Response {
        let headers = self.headers_of(message);
        let mut headers = list(&headers, &[]);
        headers.retain(|(own, _)| *own != name);
        headers.extend(value.map(|value| (name, value)));
        self.send("POST", &headers, message).await
    }

    /// Posts a message, however long its answer takes to begin.
    pub async fn try_post(&self, message: &str) -> Result<Response, String> {
        let headers = self.headers_of(message);
        self.try_send("POST", &self.path, &list(&headers, &[]), message).await
    }

    /// Posts a message, with the headers that its era asks for.
    pub async fn post(&self, message: &str) -> Response {
        self.post_with(message, &[]).await
    }

    /// The headers that a message goes with.
    fn headers_of(&self, message: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        let accept = copy(&self.accept);
        let accept = accept.unwrap_or_else(|| "application/json, text/event-stream".to_owned());
        headers.push(("accept", accept));
        let method = member(message, "method").and_then(string).unwrap_or_default();
        let meta = ["params", "_meta", "io.modelcontextprotocol/protocolVersion"];
        if let Some(version) = path(message, &meta).and_then(string) {
            headers.push(("mcp-protocol-version", version));
            headers.extend(name_of(&method, message).map(|name| ("mcp-name", name)));
            headers.push(("mcp-method", method));
        } else if method != "initialize" {
            headers.extend(self.session_headers());
        }
        headers
    }

    fn session_headers(&self) -> Vec<(&'static str, String)> {
        let session = copy(&self.session).map(|id| ("mcp-session-id", id));
        let version = copy(&self.version).map(|version| ("mcp-protocol-version", version));
        session.into_iter().chain(version).collect()
    }

    /// Opens the stream for all that belongs to no POST.
    pub async fn get_stream(&self) -> Response {
        self.get_with(&[]).await
    }

    /// Goes on with a stream after this event.
    pub async fn resume(&self, last_event_id: &str) -> Response {
        self.get_with(&[("last-event-id", last_event_id)]).await
    }

    async fn get_with(&self, more: &[(&str, &str)]) -> Response {
        let more = [&[("accept", "text/event-stream")], more].concat();
        self.send("GET", &list(&self.session_headers(), &more), "").await
    }

    /// Ends the session.
    pub async fn delete(&self) -> Response {
        self.send("DELETE", &list(&self.session_headers(), &[]), "").await
    }

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
        let response = self.open("initialize", hello(name, version, protocol)).await;
        self.initialized(response).await
    }

    /// Opens a session as soon as there is room for one.
    pub async fn admitted(&self) {
        let opened = eventually(|| async {
            let response = self.open("initialize", hello("test-client", "1.0.0", "2025-11-25"));
            Some(response.await).filter(|response| response.status == 200)
        });
        self.initialized(opened.await.expect("there is room at last")).await;
    }

    /// Takes up the session that a response opens.
    async fn initialized(&self, mut response: Response) -> Answer {
        let answer = response.answer().await;
        self.learn(&response, &answer);
        self.notify("notifications/initialized", json!({})).await;
        answer
    }

    /// Keeps what an `initialize` was answered with, for the requests to come.
    pub(super) fn learn(&self, response: &Response, answer: &Answer) {
        let session = response.header("mcp-session-id");
        set(&self.session, (!session.is_empty()).then(|| session.to_owned()));
        let version = answer.json["result"]["protocolVersion"].as_str();
        set(&self.version, version.map(str::to_owned));
    }

    /// A request under a fresh id, with what a modern client adds.
    pub fn request(&self, method: &str, params: Value) -> String {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let params = with_meta(params, copy(&self.meta));
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    }

    /// Sends a request; its answer, as soon as it begins.
    pub async fn open(&self, method: &str, params: Value) -> Response {
        self.post(&self.request(method, params)).await
    }

    /// Sends the call of a tool; its answer, as soon as it begins.
    pub async fn start(&self, tool: &str, args: Value) -> Response {
        self.open("tools/call", call_params(tool, args)).await
    }

    /// A request and its answer.
    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        self.open(method, params).await.answer().await
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, args: Value) -> Answer {
        self.start(tool, args).await.answer().await
    }

    /// Follows a handle until its job has ended; an answer that is no handle is given back.
    pub async fn finish(&self, answer: Answer) -> Answer {
        let mut answer = answer;
        while answer.is_handle() {
            let next = answer.next_action().expect("a handle says what to call");
            answer = self.call(&next.tool, next.args).await;
        }
        answer
    }

    /// Sends a notification, which must be accepted.
    pub async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.accepted(&message.to_string()).await;
    }

    /// Answers a request of the server with this raw result.
    pub async fn respond(&self, request: &Line, result: &str) {
        let id = request.id().expect("a request to answer");
        self.accepted(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    async fn accepted(&self, message: &str) {
        let mut response = self.post(message).await;
        let text = response.text().await;
        assert_eq!(response.status, 202, "{message} is answered: {text}");
    }
}

/// The value of `Mcp-Name` for a message, where there is one.
fn name_of(method: &str, message: &str) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    path(message, &["params", key]).and_then(string)
}

fn list<'a>(
    headers: &'a [(&'static str, String)],
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    headers.chain(more.iter().copied()).collect()
}

/// The params of an `initialize`.
fn hello(name: &str, version: &str, protocol: &str) -> Value {
    let info = json!({"name": name, "version": version});
    json!({"protocolVersion": protocol, "capabilities": {"elicitation": {}}, "clientInfo": info})
}
