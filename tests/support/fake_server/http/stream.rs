//! A stream of server-sent events, which outlives the connections it is read by.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::flags::Flags;
use crate::http::reply::Reply;
use crate::http::status;
use crate::wire::Wire;

/// How a stream is written.
#[derive(Clone, Default)]
pub(crate) struct Style {
    /// Whether events have ids, and the first of all is an empty one.
    ids: bool,
    /// The time to reconnect after, in milliseconds, said in the first event.
    retry: Option<u64>,
    /// How long the stream may use one connection, in milliseconds.
    cut_after: Option<u64>,
    /// Whether it is opened with its first event only.
    late: bool,
    /// Whether errors of the protocol are told by the status.
    modern: bool,
}

impl Style {
    pub(crate) fn legacy(flags: &Flags) -> Self {
        Self {
            ids: flags.event_ids,
            retry: flags.retry,
            cut_after: flags.cut_after,
            late: flags.late_headers,
            modern: false,
        }
    }

    /// Streams of 2026-07-28 cannot be resumed, so their events have no ids.
    pub(crate) fn modern(flags: &Flags) -> Self {
        Self { ids: false, retry: None, modern: true, ..Self::legacy(flags) }
    }
}

/// The answer to a POST, or the messages for a GET.
pub(crate) struct EventStream {
    pub number: usize,
    style: Style,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The answer it is written to now.
    reply: Option<Arc<Reply>>,
    /// The data of all events.
    events: Vec<String>,
    /// How many of them were written.
    written: usize,
    /// The answers that are still to come; a stream without any never ends.
    awaited: Option<usize>,
    ended: bool,
}

impl EventStream {
    /// The answer to a POST with so many requests.
    pub(crate) fn answering(
        number: usize,
        style: Style,
        reply: Arc<Reply>,
        requests: usize,
    ) -> Arc<Self> {
        let state = State { awaited: Some(requests), ..State::default() };
        let stream = Arc::new(Self { number, style, state: Mutex::new(state) });
        stream.attach(reply);
        stream
    }

    /// A stream for all that belongs to no POST. Until somebody reads it, it keeps what is written.
    pub(crate) fn apart(number: usize, style: Style) -> Arc<Self> {
        Arc::new(Self { number, style, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Goes on in this answer, in place of any before, with what was not written yet.
    fn attach(self: &Arc<Self>, reply: Arc<Reply>) {
        self.state().reply = Some(Arc::clone(&reply));
        if let Some(time) = self.style.cut_after {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(time));
                reply.cut();
            });
        }
    }

    /// Opens the stream of a GET.
    pub(crate) fn open(self: &Arc<Self>, reply: Arc<Reply>) {
        self.attach(reply);
        self.flush(&mut self.state());
    }

    /// Goes on, after so many events, for a client who lost the connection.
    pub(crate) fn resume(self: &Arc<Self>, reply: Arc<Reply>, read: usize) {
        reply.open();
        self.attach(reply);
        let mut state = self.state();
        state.written = read.min(state.events.len());
        self.flush(&mut state);
        if state.ended {
            finish(&state);
        }
    }

    fn push(&self, state: &mut State, event: &str) {
        state.events.push(event.to_owned());
        if state.reply.as_ref().is_some_and(|reply| !reply.has_ended()) {
            self.flush(state);
        }
    }

    /// Writes what was not written yet, the opening included.
    fn flush(&self, state: &mut State) {
        let Some(reply) = state.reply.clone() else { return };
        if reply.is_fresh() {
            reply.open();
            reply.chunk(self.opening().as_bytes());
        }
        for (index, event) in state.events.iter().enumerate().skip(state.written) {
            reply.chunk(self.event(index + 1, event).as_bytes());
        }
        state.written = state.events.len();
    }

    /// The first event: no message, but an id to come back with.
    fn opening(&self) -> String {
        let retry = self.style.retry.map(|time| format!("retry: {time}\n")).unwrap_or_default();
        let id =
            if self.style.ids { format!("id: {}-0\ndata: \n", self.number) } else { "".into() };
        let event = retry + &id;
        if event.is_empty() { event } else { event + "\n" }
    }

    fn event(&self, index: usize, message: &str) -> String {
        let id = if self.style.ids { format!("id: {}-{index}\n", self.number) } else { "".into() };
        format!("event: message\n{id}{}\n", data_lines(message))
    }

    /// Breaks the connection that it is written to.
    pub(crate) fn cut_connection(&self) {
        if let Some(reply) = &self.state().reply {
            reply.cut();
        }
    }
}

/// Text as lines of data; each of LF, CR and CR LF ends one.
fn data_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.split(['\n', '\r']).map(|line| format!("data: {line}\n")).collect()
}

fn finish(state: &State) {
    if let Some(reply) = &state.reply {
        reply.finish();
    }
}

impl Wire for EventStream {
    fn line(&self, line: &str) {
        self.push(&mut self.state(), line);
    }

    fn bytes(&self, bytes: &[u8]) {
        let mut state = self.state();
        self.flush(&mut state);
        if let Some(reply) = &state.reply {
            reply.chunk(bytes);
        }
    }

    fn begin(&self) {
        if !self.style.late {
            self.flush(&mut self.state());
        }
    }

    fn answer(&self, line: &str) {
        let mut state = self.state();
        let status = if self.style.modern { status::of_response(line) } else { 200 };
        if let Some(reply) = state.reply.as_ref().filter(|reply| reply.is_fresh() && status != 200)
        {
            reply.json(status, line);
            return;
        }
        self.push(&mut state, line);
        state.awaited = state.awaited.map(|awaited| awaited.saturating_sub(1));
        if state.awaited == Some(0) {
            state.ended = true;
            finish(&state);
        }
    }

    fn end(&self) {
        let mut state = self.state();
        if state.awaited == Some(1) && !state.ended {
            self.flush(&mut state);
            state.ended = true;
            finish(&state);
        }
    }

    fn pause(&self) {
        let mut state = self.state();
        self.flush(&mut state);
        finish(&state);
    }

    fn cut(&self) {
        self.cut_connection();
    }
}
