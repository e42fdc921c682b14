//! All ways to one legacy HTTP client: the streams of its POSTs and the standing one of its GET.
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

use super::exchange::{Exchange, Terms, Watch};

/// What is kept of streams that are over, for a client that comes back.
const PAST: usize = 16;
const PAST_BYTES: usize = 1 << 20;
/// The standing stream's number in the ids of events.
const STANDING: u64 = 0;

/// The streams of a session.
pub struct Streams {
    standing: Arc<Exchange>,
    /// a child's messages bear no sign of the call that they belong to
    guess: bool,
    watch: Weak<dyn Watch>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    open: BTreeMap<u64, Arc<Exchange>>,
    past: VecDeque<Arc<Exchange>>,
    /// the client reads its standing stream, or has
    stands: bool,
}

impl Streams {
    /// `guess`: what belongs to no known request may belong to the one that is open. `watch` is
    /// told when the client stops reading.
    pub fn new(guess: bool, watch: Weak<dyn Watch>) -> Arc<Self> {
        let terms = Terms {
            keys: SmallVec::new(),
            modern: false,
            takes_stream: true,
            wants_logs: false,
            stream: Some(STANDING),
        };
        let standing = Exchange::new(terms, watch.clone());
        Arc::new(Streams { standing, guess, watch, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the streams are held")
    }

    /// A request came in.
    pub fn open(&self, keys: SmallVec<[Id; 1]>, takes_stream: bool) -> Arc<Exchange> {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let stream = Some(number);
        let terms = Terms { keys, modern: false, takes_stream, wants_logs: false, stream };
        let exchange = Exchange::new(terms, self.watch.clone());
        state.open.insert(number, exchange.clone());
        exchange
    }

    /// Nobody reads a request's stream any more. It is kept for a while where it was a stream.
    pub fn over(&self, exchange: &Arc<Exchange>) {
        let Some(number) = exchange.terms.stream else { return };
        let mut state = self.state();
        if state.open.remove(&number).is_none() || !exchange.can_resume() {
            return;
        }
        state.past.push_back(exchange.clone());
        let bytes = |past: &VecDeque<Arc<Exchange>>| past.iter().map(|e| e.logged()).sum::<usize>();
        while state.past.len() > PAST || bytes(&state.past) > PAST_BYTES {
            state.past.pop_front();
        }
    }

    /// The standing stream.
    pub fn standing(&self) -> &Arc<Exchange> {
        &self.standing
    }

    /// The same, for a client that opens it.
    pub fn stand(&self) -> &Arc<Exchange> {
        self.state().stands = true;
        &self.standing
    }

    /// The stream of which an event has this id, and the event's number.
    pub fn find(&self, event: &str) -> Option<(Arc<Exchange>, u64)> {
        let (stream, event) = event.split_once('-')?;
        let (stream, event): (u64, u64) = (stream.parse().ok()?, event.parse().ok()?);
        if stream == STANDING {
            return Some((self.stand().clone(), event));
        }
        let mut state = self.state();
        let is_it = |exchange: &Arc<Exchange>| exchange.terms.stream == Some(stream);
        if let Some(at) = state.past.iter().position(is_it) {
            let exchange = state.past.remove(at)?;
            state.open.insert(stream, exchange.clone());
            return Some((exchange, event));
        }
        state.open.get(&stream).map(|exchange| (exchange.clone(), event))
    }

    /// The session has ended.
    pub fn finish(&self) {
        self.standing.finish();
    }

    /// Whether the client waits for anything.
    pub fn in_use(&self) -> bool {
        self.standing.is_open() || !self.state().open.is_empty()
    }

    fn deliver(&self, message: &Bytes, guess: bool) -> bool {
        // Newest first: of several calls that one is the likeliest to be at work.
        let open: Vec<_> = self.state().open.values().rev().cloned().collect();
        let first_guess = guess && open.len() == 1;
        (first_guess && open[0].push(message))
            || self.standing.push(message)
            || open.iter().any(|exchange| exchange.push(message))
    }
}

impl Channel for Streams {
    /// What nobody reads now waits for the standing stream.
    fn notify(&self, message: &Bytes) -> bool {
        if !self.deliver(message, self.guess) {
            self.standing.keep(message);
        }
        true
    }

    fn announce(&self, message: &Bytes) {
        if !self.deliver(message, false) {
            self.standing.keep(message);
        }
    }

    fn ask(&self, message: &Bytes) -> bool {
        if self.deliver(message, self.guess) {
            return true;
        }
        let stands = self.state().stands;
        if stands {
            // The client will come back for its standing stream.
            self.standing.keep(message);
        }
        stands
    }

    fn shows_details(&self) -> bool {
        false
    }

    fn param_headers(&self) -> ParamHeaders {
        ParamHeaders::Unused
    }
}
