//! All ways to one legacy HTTP client: the streams of its POSTs, and the one of its GET, which
//! belongs to no request.
//!
//! A message goes to exactly one stream (MCP 2025-03-26 and later). One that belongs to a request
//! goes to that request's; what is sent from here belongs to none, or it is not known to which.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bytes::Bytes;
use smallvec::SmallVec;

use crate::downstream::channel::{Channel, ParamHeaders};
use crate::downstream::reply::Responder;
use crate::rpc::id::Id;

use super::responder::{HttpResponder, RequestInfo, ResponseObserver};

/// How many streams that are over are kept, for a client that comes back.
const MOST_CLOSED: usize = 16;
/// How many bytes of them.
const MOST_CLOSED_BYTES: usize = 1 << 20;
/// The number of the GET's stream in the ids of events.
const GET_STREAM: u64 = 0;

/// The streams of a session.
pub(crate) struct ClientStreams {
    get_stream: Arc<HttpResponder>,
    /// what belongs to no known request may belong to the only one that is open
    guess_request: bool,
    observer: Weak<dyn ResponseObserver>,
    post_streams: Mutex<PostStreams>,
}

#[derive(Default)]
struct PostStreams {
    last_number: u64,
    open: BTreeMap<u64, Arc<HttpResponder>>,
    /// over, and kept for a client that comes back
    closed: VecDeque<Arc<HttpResponder>>,
    /// the client reads the GET's stream, or has
    get_was_opened: bool,
}

impl ClientStreams {
    /// The streams of a client that has none yet. `guess_request`: what belongs to no known request
    /// may belong to the only one that is open, since the server's messages don't say. The observer
    /// is told when the client stops reading.
    pub(crate) fn new(guess_request: bool, observer: Weak<dyn ResponseObserver>) -> Arc<Self> {
        let request = legacy_request(SmallVec::new(), true, GET_STREAM);
        let get_stream = HttpResponder::new(request, observer.clone());
        let post_streams = Mutex::default();
        Arc::new(ClientStreams { get_stream, guess_request, observer, post_streams })
    }

    fn post_streams(&self) -> MutexGuard<'_, PostStreams> {
        self.post_streams.lock().expect("no panic while the streams are held")
    }

    /// A request came in.
    pub(crate) fn open(&self, keys: SmallVec<[Id; 1]>, accepts_events: bool) -> Arc<HttpResponder> {
        let mut streams = self.post_streams();
        streams.last_number += 1;
        let number = streams.last_number;
        let request = legacy_request(keys, accepts_events, number);
        let responder = HttpResponder::new(request, self.observer.clone());
        streams.open.insert(number, responder.clone());
        responder
    }

    /// Nobody reads a request's stream any more. It is kept for a while where it was a stream.
    pub(crate) fn close(&self, responder: &Arc<HttpResponder>) {
        let Some(number) = responder.request.stream_number else { return };
        let mut streams = self.post_streams();
        if streams.open.remove(&number).is_none() || !responder.can_resume() {
            return;
        }
        streams.closed.push_back(responder.clone());
        while streams.closed.len() > MOST_CLOSED || streams.closed_bytes() > MOST_CLOSED_BYTES {
            streams.closed.pop_front();
        }
    }

    /// The GET's stream.
    pub(crate) fn get_stream(&self) -> &Arc<HttpResponder> {
        &self.get_stream
    }

    /// The GET's stream, for a client that opens it.
    pub(crate) fn open_get_stream(&self) -> &Arc<HttpResponder> {
        self.post_streams().get_was_opened = true;
        &self.get_stream
    }

    /// Opens the stream again of which an event has this id. Returns the event's number too.
    pub(crate) fn reopen(&self, event_id: &str) -> Option<(Arc<HttpResponder>, u64)> {
        let (stream, event) = event_id.split_once('-')?;
        let (stream, event): (u64, u64) = (stream.parse().ok()?, event.parse().ok()?);
        if stream == GET_STREAM {
            return Some((self.open_get_stream().clone(), event));
        }
        let mut streams = self.post_streams();
        let is_it = |it: &Arc<HttpResponder>| it.request.stream_number == Some(stream);
        if let Some(at) = streams.closed.iter().position(is_it) {
            let responder = streams.closed.remove(at)?;
            streams.open.insert(stream, responder.clone());
            return Some((responder, event));
        }
        streams.open.get(&stream).map(|responder| (responder.clone(), event))
    }

    /// The session has ended.
    pub(crate) fn finish(&self) {
        self.get_stream.finish();
    }

    /// Whether the client waits for anything.
    pub(crate) fn in_use(&self) -> bool {
        self.get_stream.is_open() || !self.post_streams().open.is_empty()
    }

    fn deliver(&self, message: &Bytes, guess_request: bool) -> bool {
        // Newest first: of several calls that one is the likeliest to be at work.
        let open: Vec<_> = self.post_streams().open.values().rev().cloned().collect();
        let guessed = guess_request && open.len() == 1;
        (guessed && open[0].push(message))
            || self.get_stream.push(message)
            || open.iter().any(|responder| responder.push(message))
    }
}

impl PostStreams {
    fn closed_bytes(&self) -> usize {
        self.closed.iter().map(|responder| responder.replay_bytes()).sum()
    }
}

fn legacy_request(keys: SmallVec<[Id; 1]>, accepts_events: bool, number: u64) -> RequestInfo {
    RequestInfo {
        keys,
        errors_have_status: false,
        accepts_events,
        wants_logs: false,
        stream_number: Some(number),
    }
}

impl Channel for ClientStreams {
    /// What nobody reads now waits for the GET's stream.
    fn notify(&self, message: &Bytes) -> bool {
        if !self.deliver(message, self.guess_request) {
            self.get_stream.keep(message);
        }
        true
    }

    fn announce(&self, message: &Bytes) {
        if !self.deliver(message, false) {
            self.get_stream.keep(message);
        }
    }

    fn ask(&self, message: &Bytes) -> bool {
        if self.deliver(message, self.guess_request) {
            return true;
        }
        let get_was_opened = self.post_streams().get_was_opened;
        if get_was_opened {
            // The client will come back for it.
            self.get_stream.keep(message);
        }
        get_was_opened
    }

    fn shows_details(&self) -> bool {
        false
    }

    fn param_headers(&self) -> ParamHeaders {
        ParamHeaders::Unused
    }
}
