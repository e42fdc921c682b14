//! A request that came by HTTP, and what goes back: an answer as JSON, or a stream of events that
//! ends with it. The stream of a GET is one without an answer.
//!
//! Nothing is committed to the client before there is something to send (contract §9): the status
//! of an answer is its own.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use smallvec::SmallVec;

use crate::downstream::reply::{Answer, Responder};
use crate::rpc::id::Id;

use super::parts::is_in_parts;
use super::replay_buffer::{MOST_BYTES, MOST_EVENTS, ReplayBuffer};
use super::response_event::ResponseEvent;

/// Bytes that may wait ahead of the answer for a client that does not read them; what comes then is
/// dropped.
const MOST_QUEUED: usize = 1 << 20;

/// Who is told when nobody reads what goes back any more.
pub(crate) trait ResponseObserver: Send + Sync {
    /// The reader has stopped. `delivered`: it has read all of it; else the client has gone.
    fn response_closed(&self, responder: &Arc<HttpResponder>, delivered: bool);
}

/// What is known of a request before its answer.
pub(crate) struct RequestInfo {
    /// the names of its requests in their session; none for a stream that answers nothing
    pub keys: SmallVec<[Id; 1]>,
    /// whether errors have an HTTP status of their own (2026-07-28)
    pub errors_have_status: bool,
    /// whether the client accepts a stream of events
    pub accepts_events: bool,
    /// whether the client asked for log messages (2026-07-28)
    pub wants_logs: bool,
    /// what the ids of its events begin with; `None`: the stream can't be resumed
    pub stream_number: Option<u64>,
}

/// Where the answer to one HTTP request goes. It is read by a
/// [`ResponseReader`](super::ResponseReader).
pub(crate) struct HttpResponder {
    /// the request
    pub request: RequestInfo,
    pub(super) observer: Weak<dyn ResponseObserver>,
    state: Mutex<ResponseState>,
}

/// What waits for the reader, and what is known of it.
#[derive(Default)]
pub(super) struct ResponseState {
    events: VecDeque<ResponseEvent>,
    queued_bytes: usize,
    /// nothing more is taken
    pub(super) ended: bool,
    /// it is a stream of events by now
    pub(super) is_event_stream: bool,
    /// the client knows where the stream can be resumed
    primed: bool,
    /// the reader, by number; 0: nobody reads
    pub(super) reader: u64,
    last_reader: u64,
    waker: Option<Waker>,
    sent: ReplayBuffer,
}

impl HttpResponder {
    /// A request to which nothing has gone back. The observer is told when the client stops reading.
    pub(crate) fn new(request: RequestInfo, observer: Weak<dyn ResponseObserver>) -> Arc<Self> {
        Arc::new(HttpResponder { request, observer, state: Mutex::default() })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ResponseState> {
        self.state.lock().expect("no panic while the state is held")
    }

    /// Sends something that may wait until somebody reads it; the oldest goes where too much
    /// waits.
    pub(crate) fn keep(&self, message: &Bytes) {
        let mut state = self.state();
        while state.events.len() >= MOST_EVENTS || state.queued_bytes > MOST_BYTES {
            state.pop();
        }
        state.push(ResponseEvent::Message(message.clone()));
    }

    /// Whether a client may come back for more.
    pub(crate) fn can_resume(&self) -> bool {
        let state = self.state();
        state.primed || state.sent.bytes() > 0
    }

    /// Whether the answer was given.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().ended
    }

    /// The id of the event that was sent last, for a client that is to come back.
    pub(crate) fn last_event_id(&self) -> Option<String> {
        let stream = self.request.stream_number?;
        Some(format!("{stream}-{}", self.state().sent.last_number()))
    }

    /// Keeps an event that leaves on a stream that can be resumed; returns its id.
    pub(crate) fn record(&self, message: &Bytes) -> Option<String> {
        let stream = self.request.stream_number?;
        let number = self.state().sent.record(message);
        Some(format!("{stream}-{number}"))
    }

    /// What was sent after an event, with its ids.
    pub(crate) fn sent_after(&self, number: u64) -> Vec<(String, Bytes)> {
        let Some(stream) = self.request.stream_number else { return Vec::new() };
        let state = self.state();
        let later = state.sent.after(number);
        later.map(|(event, message)| (format!("{stream}-{event}"), message.clone())).collect()
    }

    /// Bytes that are kept for a client that comes back.
    pub(crate) fn replay_bytes(&self) -> usize {
        self.state().sent.bytes()
    }
}

impl Responder for HttpResponder {
    /// Sends the answer, once.
    fn send(&self, answer: &Answer) -> bool {
        let mut state = self.state();
        if state.ended {
            return false;
        }
        state.push(ResponseEvent::Answer(answer.into()));
        state.ended = true;
        state.reader != 0
    }

    fn push(&self, message: &Bytes) -> bool {
        let mut state = self.state();
        let may = self.request.accepts_events && !state.ended && state.reader != 0;
        may && state.push(ResponseEvent::Message(message.clone()))
    }

    fn is_open(&self) -> bool {
        self.state().reader != 0
    }

    fn finish(&self) {
        let mut state = self.state();
        state.ended = true;
        state.wake();
    }

    fn prime(&self, retry: Option<Duration>) {
        let mut state = self.state();
        let may = self.request.accepts_events && self.request.stream_number.is_some();
        if may && !state.ended && !std::mem::replace(&mut state.primed, true) {
            state.push(ResponseEvent::Prime(retry));
        }
    }

    fn pause(&self) {
        let mut state = self.state();
        if state.primed && !state.ended {
            state.push(ResponseEvent::Pause);
        }
    }

    /// Too late where the status has left, or is about to.
    fn refuse(&self, response: Response<Bytes>) -> bool {
        let mut state = self.state();
        let may = !state.ended && !state.is_event_stream && state.events.is_empty();
        if may {
            state.push(ResponseEvent::Refusal(Box::new(response)));
            state.ended = true;
        }
        may
    }

    fn is_delivered_later(&self, length: usize) -> bool {
        is_in_parts(length)
    }

    fn has_own_stream(&self) -> bool {
        true
    }

    fn wants_logs(&self) -> bool {
        self.request.wants_logs
    }
}

impl fmt::Debug for HttpResponder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "HttpResponder({:?})", self.request.keys)
    }
}

impl ResponseState {
    fn push(&mut self, event: ResponseEvent) -> bool {
        let length = event.length();
        if matches!(event, ResponseEvent::Message(_)) && self.queued_bytes + length > MOST_QUEUED {
            return false;
        }
        self.queued_bytes += length;
        self.events.push_back(event);
        self.wake();
        true
    }

    /// Takes the first event out.
    pub(super) fn pop(&mut self) -> Option<ResponseEvent> {
        let event = self.events.pop_front()?;
        self.queued_bytes -= event.length();
        Some(event)
    }

    /// The first event, which stays where it is.
    pub(super) fn first(&self) -> Option<&ResponseEvent> {
        self.events.front()
    }

    /// Somebody begins to read; who read before stops. Returns the reader's number.
    pub(super) fn begin_reading(&mut self) -> u64 {
        self.last_reader += 1;
        self.reader = self.last_reader;
        self.wake();
        self.reader
    }

    /// Wakes this task when something comes.
    pub(super) fn wait(&mut self, context: &Context) {
        self.waker = Some(context.waker().clone());
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
