//! The answer to one HTTP request.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::connection::Connection;
use super::events::{Event, Events};
use crate::{Answer, DEADLINE, Line, json};

/// An answer, whose body is read as it comes. Dropped before its end, it hangs up.
pub struct Response {
    pub status: u16,
    headers: HeaderMap,
    body: Incoming,
    events: Events,
    /// The messages read so far.
    pub seen: Vec<Line>,
    /// The id of the last event that had one.
    pub last_event_id: Option<String>,
    /// Whether the body broke off.
    pub was_cut: bool,
    _connection: Connection,
}

impl Response {
    pub(super) fn new(response: hyper::Response<Incoming>, connection: Connection) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            events: Events::default(),
            seen: vec![],
            last_event_id: None,
            was_cut: false,
            _connection: connection,
        }
    }

    /// A header; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a header is text"))
    }

    /// Whether the body is a stream of events.
    pub fn is_events(&self) -> bool {
        self.header("content-type").starts_with("text/event-stream")
    }

    /// More bytes of the body; `None` at its end.
    async fn bytes(&mut self) -> Option<Vec<u8>> {
        let frame = tokio::time::timeout(DEADLINE, self.body.frame()).await;
        let frame = frame.expect("the body goes on or ends before the deadline")?;
        self.was_cut |= frame.is_err();
        let data = frame.ok()?.into_data().expect("a body has no trailers");
        Some(data.to_vec())
    }

    /// A first part of the body, of no use by itself.
    pub async fn some_bytes(&mut self) -> usize {
        self.bytes().await.map_or(0, |bytes| bytes.len())
    }

    /// The rest of the body.
    pub async fn text(&mut self) -> String {
        let mut all = Vec::new();
        while let Some(bytes) = self.bytes().await {
            all.extend(bytes);
        }
        String::from_utf8(all).expect("the body is UTF-8")
    }

    /// The whole body as JSON.
    pub async fn json(&mut self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text:?}"))
    }

    /// The next event or comment; `None` at the end of the stream.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.next() {
                self.last_event_id = event.id.clone().or(self.last_event_id.take());
                return Some(event);
            }
            let bytes = self.bytes().await?;
            self.events.feed(&bytes);
        }
    }

    /// The next message, from events or a body of JSON; `None` after the last.
    pub async fn message(&mut self) -> Option<Line> {
        let text = if self.is_events() { self.data().await? } else { self.text().await };
        let line = Line::new(text.as_bytes());
        if line.text.is_empty() {
            return None;
        }
        self.seen.push(line.clone());
        Some(line)
    }

    async fn data(&mut self) -> Option<String> {
        loop {
            let event = self.event().await?;
            if event.is_message() {
                return event.data;
            }
        }
    }

    /// Reads up to the next message of this method.
    pub async fn until_method(&mut self, method: &str) -> Line {
        let search = async {
            while let Some(line) = self.message().await {
                if line.has_method(method) {
                    return Some(line);
                }
            }
            None
        };
        let found = tokio::time::timeout(DEADLINE, search).await.ok().flatten();
        found.unwrap_or_else(|| panic!("no {method} in {:?}, status {}", self.seen, self.status))
    }

    /// Waits for the end of the stream; the messages that come before it.
    pub async fn ended(&mut self) -> Vec<Line> {
        let start = self.seen.len();
        let end = async { while self.message().await.is_some() {} };
        let end = tokio::time::timeout(DEADLINE, end).await;
        assert!(end.is_ok(), "the stream stays open: {:?}", self.seen);
        self.seen.split_off(start)
    }

    /// Reads up to the answer; `None` if the stream ends without one.
    pub async fn try_answer(&mut self) -> Option<Answer> {
        while let Some(line) = self.message().await {
            let is_answer = |message: &&str| json::member(message, "method").is_none();
            if let Some(message) = line.messages().into_iter().find(is_answer) {
                return Some(Answer::new(message));
            }
        }
        None
    }

    /// Reads up to the answer.
    pub async fn answer(&mut self) -> Answer {
        let answer = self.try_answer().await;
        answer.unwrap_or_else(|| panic!("no answer: status {}, {:?}", self.status, self.seen))
    }

    /// The code of the error that the body is.
    pub async fn code(&mut self) -> i64 {
        let body = self.json().await;
        body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {body}"))
    }
}
