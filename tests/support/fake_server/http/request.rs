//! What a client sends: one request of HTTP/1.1.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde_json::{Value, json};

use crate::message::Request;
use support::json::{Object, messages};

/// A request, its header names in lower case.
pub(crate) struct HttpRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl HttpRequest {
    /// Reads the next request; `None` when there is none to come, or nothing that can be read.
    pub(crate) fn read(input: &mut impl BufRead) -> Option<Self> {
        let line = read_line(input)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        // A proxy writes whole URLs.
        let target = target
            .strip_prefix("http://")
            .map_or(target, |url| url.find('/').map_or("/", |at| &url[at..]));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = read_headers(input)?;
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        input.read_exact(&mut body).ok()?;
        let body = String::from_utf8_lossy(&body).into_owned();
        Some(Self { method, path: path.to_owned(), query: query.to_owned(), headers, body })
    }

    /// A header; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The JSON-RPC messages in the body.
    pub(crate) fn messages(&self) -> Vec<&str> {
        messages(&self.body)
    }

    /// The JSON-RPC requests in the body.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let requests = self.messages().into_iter().filter_map(Object::parse);
        requests.filter_map(|message| Request::of(&message)).collect()
    }

    /// What the journal says of it, besides the body.
    pub(crate) fn summary(&self) -> Value {
        let Self { method, path, query, headers, .. } = self;
        json!({"method": method, "path": path, "query": query, "headers": headers})
    }
}

fn read_headers(input: &mut impl BufRead) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let line = read_line(input)?;
        if line.is_empty() {
            return Some(headers);
        }
        let (name, value) = line.split_once(':')?;
        headers
            .entry(name.to_lowercase())
            .and_modify(|list: &mut String| *list = format!("{list}, {}", value.trim()))
            .or_insert_with(|| value.trim().to_owned());
    }
}

fn read_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let length = input.read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim_end().to_owned())
}
