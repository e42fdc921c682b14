//! What goes back to a client as `text/event-stream`.
//!
//! A silent stream gets a comment every 15 s, so that no intermediary cuts it (contract §9). Never
//! an event with empty data, which some clients take for a message; one alone is sent where the
//! server has sent it itself (2025-11-25).

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;
use tokio::time::{Instant, Sleep, sleep};

use crate::rpc::lines::one_line;

use super::parts::take_part;
use super::reader::ResponseReader;
use super::response_event::{QueuedAnswer, ResponseEvent};

/// A stream that was silent for so long gets a comment.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b": keep-alive\n\n";
/// Messages from this size on are not copied.
const LARGE: usize = 16 << 10;

/// The events of a request, as chunks of text.
pub(crate) struct SseBody {
    reader: ResponseReader,
    chunks: VecDeque<Bytes>,
    /// until the next comment
    silence: Pin<Box<Sleep>>,
}

impl SseBody {
    /// `opening`: the stream is opened to break a silence, so it begins with a comment.
    pub(crate) fn new(reader: ResponseReader, opening: bool) -> Self {
        let chunks = opening.then(|| Bytes::from_static(COMMENT)).into_iter().collect();
        SseBody { reader, chunks, silence: Box::pin(sleep(KEEP_ALIVE)) }
    }

    /// Sends again what a client missed, with the ids that it had.
    pub(crate) fn replay(&mut self, events: Vec<(String, Bytes)>) {
        for (id, message) in events {
            chunks_of(&mut self.chunks, Some(&id), &message);
        }
    }

    /// The next chunk of text; `None` at the end.
    pub(crate) fn poll_chunk(&mut self, context: &mut Context) -> Poll<Option<Bytes>> {
        loop {
            if let Some(chunk) = self.next_chunk() {
                return Poll::Ready(Some(chunk));
            }
            match self.reader.poll_event(context) {
                Poll::Ready(Some(ResponseEvent::Pause)) => return Poll::Ready(None),
                Poll::Ready(None) => {
                    if self.reader.is_at_end() {
                        self.reader.mark_delivered();
                    }
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(event)) => self.add(&event),
                Poll::Pending => match self.silence.as_mut().poll(context) {
                    Poll::Ready(()) => self.chunks.push_back(Bytes::from_static(COMMENT)),
                    Poll::Pending => return Poll::Pending,
                },
            }
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        }
    }

    /// The next chunk that is there. With the last one all has left.
    fn next_chunk(&mut self) -> Option<Bytes> {
        let first = self.chunks.front_mut()?;
        let part = take_part(first);
        if first.is_empty() {
            self.chunks.pop_front();
        }
        if self.chunks.is_empty() && self.reader.is_at_end() {
            self.reader.mark_delivered();
        }
        Some(part)
    }

    fn add(&mut self, event: &ResponseEvent) {
        let responder = self.reader.responder();
        match event {
            ResponseEvent::Message(message)
            | ResponseEvent::Answer(QueuedAnswer { line: message, .. }) => {
                let id = responder.record(message);
                chunks_of(&mut self.chunks, id.as_deref(), message);
            }
            ResponseEvent::Prime(retry) => {
                self.chunks.push_back(priming(responder.last_event_id(), *retry))
            }
            // It has a status of its own, so it never comes on a stream.
            ResponseEvent::Refusal(_) | ResponseEvent::Pause => {}
        }
    }
}

/// What the server's own priming event says, with our id: an id, when to come back, and no message.
fn priming(id: Option<String>, retry: Option<Duration>) -> Bytes {
    let id = id.unwrap_or_default();
    let retry = retry.map(|retry| format!("retry: {}\n", retry.as_millis())).unwrap_or_default();
    format!("id: {id}\n{retry}data: \n\n").into()
}

/// One event as text: a line of data whatever white space the message has.
fn chunks_of(chunks: &mut VecDeque<Bytes>, id: Option<&str>, message: &Bytes) {
    // A CR alone ends a line too.
    let has_line_end = memchr2(b'\n', b'\r', message).is_some();
    let message = if has_line_end { one_line(message) } else { message.clone() };
    let mut head = String::from("event: message\n");
    if let Some(id) = id {
        head.extend(["id: ", id, "\n"]);
    }
    head.push_str("data: ");
    let mut head = head.into_bytes();
    if message.len() < LARGE {
        head.extend_from_slice(&message);
        head.extend_from_slice(b"\n\n");
        chunks.push_back(head.into());
    } else {
        chunks.extend([head.into(), message, Bytes::from_static(b"\n\n")]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_data() {
        let mut chunks = VecDeque::new();
        chunks_of(&mut chunks, Some("2-1"), &Bytes::from("{\r\n\"a\": 1\n}"));
        let text: Vec<u8> = chunks.into_iter().flatten().collect();
        assert_eq!(text, b"event: message\nid: 2-1\ndata: {  \"a\": 1 }\n\n");
    }
}
