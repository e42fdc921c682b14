//! A request that came by HTTP, and what goes back: an answer as JSON, or a stream of events that
//! ends with it. The stream of a GET is one without an answer.
//!
//! Nothing is committed to the client before there is something to send (contract §9, issue of the
//! sidecar): the status of an answer is its own.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use smallvec::SmallVec;

use crate::downstream::reply::{Answer, Responder};
use crate::rpc::id::Id;

use super::body::PART;

/// Bytes that may wait ahead of the answer for a client that does not read them; what comes then is
/// dropped.
const QUEUED: usize = 1 << 20;
/// Events and bytes that are kept of a stream for a client that comes back for them.
const LOGGED_EVENTS: usize = 256;
const LOGGED_BYTES: usize = 1 << 20;

/// What goes back.
#[derive(Debug)]
pub enum Event {
    /// ahead of the answer
    Message(Bytes),
    /// the answer
    Answer(QueuedAnswer),
    /// what the server answered in place of a message
    Refusal(Box<Response<Bytes>>),
    /// the stream may end before its answer; when the client is to come back for the rest
    Prime(Option<Duration>),
    /// it ends now
    Pause,
}

/// An answer that waits for its reader, with what is known of it (see [`Answer`]).
#[derive(Debug)]
pub struct QueuedAnswer {
    pub line: Bytes,
    pub status: Option<StatusCode>,
    pub has_result: bool,
    pub error_code: Option<i32>,
}

impl From<&Answer<'_>> for QueuedAnswer {
    fn from(answer: &Answer) -> Self {
        let &Answer { line, status, has_result, error_code } = answer;
        QueuedAnswer { line: line.clone(), status, has_result, error_code }
    }
}

impl Event {
    fn length(&self) -> usize {
        match self {
            Event::Message(message) => message.len(),
            Event::Answer(answer) => answer.line.len(),
            Event::Refusal(refusal) => refusal.body().len(),
            Event::Prime(_) | Event::Pause => 0,
        }
    }
}

/// Who is told when nobody reads what goes back any more.
pub trait Watch: Send + Sync {
    /// `delivered`: all of it was read; else the client has gone.
    fn over(&self, exchange: &Arc<Exchange>, delivered: bool);
}

/// What is known of a request before its answer.
pub struct Terms {
    /// the names of its requests in their session; none for a stream that answers nothing
    pub keys: SmallVec<[Id; 1]>,
    /// errors have an HTTP status of their own (2026-07-28)
    pub modern: bool,
    /// the client takes a stream of events
    pub takes_stream: bool,
    /// a modern request that asked for log messages
    pub wants_logs: bool,
    /// what the events' ids begin with; `None`: the stream can't be resumed
    pub stream: Option<u64>,
}

/// One request and what goes back.
pub struct Exchange {
    pub terms: Terms,
    watch: Weak<dyn Watch>,
    flow: Mutex<Flow>,
}

#[derive(Default)]
struct Flow {
    queue: VecDeque<Event>,
    queued: usize,
    /// nothing more is taken
    ended: bool,
    /// it is a stream of events by now
    streams: bool,
    /// the client knows where the stream can be resumed
    primed: bool,
    /// the reader, by number; 0: nobody reads
    reader: u64,
    readers: u64,
    waker: Option<Waker>,
    log: Log,
}

/// What was sent on a stream, for a client that comes back.
#[derive(Default)]
struct Log {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last: u64,
}

impl Log {
    /// Notes an event; returns its number.
    fn note(&mut self, message: &Bytes) -> u64 {
        self.last += 1;
        self.bytes += message.len();
        self.events.push_back((self.last, message.clone()));
        while self.events.len() > LOGGED_EVENTS || self.bytes > LOGGED_BYTES {
            let Some((_, oldest)) = self.events.pop_front() else { break };
            self.bytes -= oldest.len();
        }
        self.last
    }
}

impl Exchange {
    pub fn new(terms: Terms, watch: Weak<dyn Watch>) -> Arc<Self> {
        Arc::new(Exchange { terms, watch, flow: Mutex::default() })
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().expect("no panic while the flow is held")
    }

    /// Sends something that may wait until somebody reads it; the oldest goes where too much
    /// waits.
    pub fn keep(&self, message: &Bytes) {
        let mut flow = self.flow();
        while flow.queue.len() >= LOGGED_EVENTS || flow.queued > LOGGED_BYTES {
            flow.pop();
        }
        flow.push(Event::Message(message.clone()));
    }

    /// Whether a client may come back for more.
    pub fn can_resume(&self) -> bool {
        let flow = self.flow();
        flow.primed || flow.log.bytes > 0
    }

    /// Whether the answer was given.
    pub fn has_ended(&self) -> bool {
        self.flow().ended
    }

    /// Somebody begins to read; who read before stops.
    pub fn read(self: &Arc<Self>) -> Reading {
        let mut flow = self.flow();
        flow.readers += 1;
        flow.reader = flow.readers;
        flow.wake();
        Reading { exchange: self.clone(), number: flow.reader, done: false }
    }

    /// The id of what was sent last, for a client that is to come back.
    pub fn last_id(&self) -> Option<String> {
        let stream = self.terms.stream?;
        Some(format!("{stream}-{}", self.flow().log.last))
    }

    /// Notes an event that leaves on a stream that can be resumed; returns its id.
    pub fn log(&self, message: &Bytes) -> Option<String> {
        let stream = self.terms.stream?;
        let number = self.flow().log.note(message);
        Some(format!("{stream}-{number}"))
    }

    /// What was sent after an event, with its ids.
    pub fn sent_after(&self, number: u64) -> Vec<(String, Bytes)> {
        let Some(stream) = self.terms.stream else { return Vec::new() };
        let flow = self.flow();
        let later = flow.log.events.iter().filter(|(event, _)| *event > number);
        later.map(|(event, message)| (format!("{stream}-{event}"), message.clone())).collect()
    }

    /// Bytes that are kept for a client that comes back.
    pub fn logged(&self) -> usize {
        self.flow().log.bytes
    }
}

impl Responder for Exchange {
    /// Sends the answer, once.
    fn send(&self, answer: &Answer) -> bool {
        let mut flow = self.flow();
        if flow.ended {
            return false;
        }
        flow.push(Event::Answer(answer.into()));
        flow.ended = true;
        flow.reader != 0
    }

    fn push(&self, message: &Bytes) -> bool {
        let mut flow = self.flow();
        let may = self.terms.takes_stream && !flow.ended && flow.reader != 0;
        may && flow.push(Event::Message(message.clone()))
    }

    fn is_open(&self) -> bool {
        self.flow().reader != 0
    }

    fn finish(&self) {
        let mut flow = self.flow();
        flow.ended = true;
        flow.wake();
    }

    fn prime(&self, retry: Option<Duration>) {
        let mut flow = self.flow();
        let may = self.terms.takes_stream && self.terms.stream.is_some();
        if may && !flow.ended && !std::mem::replace(&mut flow.primed, true) {
            flow.push(Event::Prime(retry));
        }
    }

    fn pause(&self) {
        let mut flow = self.flow();
        if flow.primed && !flow.ended {
            flow.push(Event::Pause);
        }
    }

    /// Too late where the status has left, or is about to.
    fn refuse(&self, response: Response<Bytes>) -> bool {
        let mut flow = self.flow();
        let may = !flow.ended && !flow.streams && flow.queue.is_empty();
        if may {
            flow.push(Event::Refusal(Box::new(response)));
            flow.ended = true;
        }
        may
    }

    fn is_delivered_later(&self, length: usize) -> bool {
        length > PART
    }

    fn has_own_stream(&self) -> bool {
        true
    }

    fn wants_logs(&self) -> bool {
        self.terms.wants_logs
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Exchange({:?})", self.terms.keys)
    }
}

impl Flow {
    fn push(&mut self, event: Event) -> bool {
        let length = event.length();
        if matches!(event, Event::Message(_)) && self.queued + length > QUEUED {
            return false;
        }
        self.queued += length;
        self.queue.push_back(event);
        self.wake();
        true
    }

    fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front()?;
        self.queued -= event.length();
        Some(event)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Somebody who reads what goes back. Dropped before the end, the client has gone.
pub struct Reading {
    exchange: Arc<Exchange>,
    number: u64,
    done: bool,
}

impl Reading {
    pub fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// The next event; `None` at the end, or where somebody else reads now.
    pub fn poll_event(&mut self, context: &mut Context) -> Poll<Option<Event>> {
        let mut flow = self.exchange.flow();
        if flow.reader != self.number {
            return Poll::Ready(None);
        }
        if let Some(event) = flow.pop() {
            return Poll::Ready(Some(event));
        }
        if flow.ended {
            return Poll::Ready(None);
        }
        flow.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Waits for the first event, which stays where it is.
    pub async fn ready(&mut self) {
        std::future::poll_fn(|context| {
            let mut flow = self.exchange.flow();
            if flow.ended || !flow.queue.is_empty() {
                return Poll::Ready(());
            }
            flow.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The last event, where nothing else comes; `None` where there is none.
    pub fn take_last(&mut self) -> Option<Event> {
        self.exchange.flow().pop()
    }

    /// All of it has left.
    pub fn done(&mut self) {
        self.done = true;
    }

    /// Whether the answer was given, and nothing is left of it here.
    pub fn is_over(&self) -> bool {
        let flow = self.exchange.flow();
        flow.ended && flow.queue.is_empty()
    }

    /// Whether a stream is needed; from then on it is one. `takes_json`: an answer alone needs none.
    pub fn streams(&self, takes_json: bool) -> bool {
        let mut flow = self.exchange.flow();
        let is_plain = flow.ended
            && match flow.queue.front() {
                Some(Event::Message(_) | Event::Prime(_)) => false,
                Some(Event::Refusal(_)) => true,
                Some(Event::Answer(..) | Event::Pause) | None => takes_json,
            };
        flow.streams |= !is_plain;
        !is_plain
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut flow = self.exchange.flow();
        if flow.reader != self.number {
            return;
        }
        flow.reader = 0;
        drop(flow);
        if let Some(watch) = self.exchange.watch.upgrade() {
            watch.over(&self.exchange, self.done);
        }
    }
}
