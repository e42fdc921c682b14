//! All of a link that changes: what waits, what is on its way, and the session.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use http::{HeaderValue, Uri};
use tokio::task::{AbortHandle, JoinSet};

use crate::rpc::id::Id;
use crate::upstream::outgoing::Role;

use super::message::{Message, Session};
use super::request_body::Sent;
use super::stream::Stream;

/// Tells one exchange of a link from all others.
pub type Token = u64;
/// The gate before the server is known to be there; no exchange has this token.
pub const CONNECTING: Token = 0;

pub struct State {
    /// what holds up all that follows it
    pub gate: Option<Token>,
    pub waiting: VecDeque<Message>,
    pub session: Arc<Session>,
    /// the version of the last request, where that was modern
    pub modern: Option<HeaderValue>,
    in_flight: HashMap<Id, InFlight>,
    /// requests that the server refused with their session, and that were sent again
    resent: HashSet<Id>,
    pub tasks: JoinSet<()>,
    /// reads what the server says by itself
    pub listener: Option<AbortHandle>,
    /// where messages go in HTTP+SSE
    pub two_ways: Option<Uri>,
    /// the one stream of HTTP+SSE, before it is read
    pub stream: Option<Stream>,
    last_token: Token,
    pub closed: bool,
}

/// A request that has no answer yet.
pub struct InFlight {
    pub token: Token,
    pub sent: Arc<Sent>,
    pub modern: bool,
    pub initialize: bool,
    pub task: AbortHandle,
}

impl State {
    pub fn new() -> Self {
        State {
            gate: Some(CONNECTING),
            waiting: VecDeque::new(),
            session: Arc::default(),
            modern: None,
            in_flight: HashMap::new(),
            resent: HashSet::new(),
            tasks: JoinSet::new(),
            listener: None,
            two_ways: None,
            stream: None,
            last_token: CONNECTING,
            closed: false,
        }
    }

    pub fn next_token(&mut self) -> Token {
        self.last_token += 1;
        self.last_token
    }

    /// Whether the message may leave while the gate is closed.
    pub fn passes_gate(&self, message: &Message) -> bool {
        match &message.outgoing.role {
            _ if self.gate == Some(CONNECTING) => false,
            // The server may ask something before it answers what closed the gate, and a client may
            // begin anew where that was never answered.
            Role::Response | Role::Initialize => true,
            Role::Cancelled(Some(id)) => self.in_flight.contains_key(id),
            _ => false,
        }
    }

    /// Another session begins; what belongs to the last one ends by itself.
    pub fn renew_session(&mut self) {
        let generation = self.session.generation + 1;
        self.session = Arc::new(Session { generation, ..Session::default() });
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
    }

    /// Changes the session that the `initialize` with this token opens.
    pub fn change_session(&mut self, token: Token, change: impl FnOnce(&mut Session)) {
        if self.gate == Some(token) {
            change(Arc::make_mut(&mut self.session));
        }
    }

    pub fn insert(&mut self, id: Id, request: InFlight) {
        self.in_flight.insert(id, request);
    }

    /// The exchange of a request that has no answer yet.
    pub fn token_of(&self, id: &Id) -> Option<Token> {
        self.in_flight.get(id).map(|request| request.token)
    }

    /// The request is over, for good; whether somebody waited for it.
    pub fn finish(&mut self, id: Option<&Id>, token: Token) -> bool {
        let Some(id) = id.filter(|id| self.token_of(id) == Some(token)) else { return false };
        self.resent.remove(id);
        self.in_flight.remove(id).is_some()
    }

    /// The request was refused with its session. `None`: nobody waits for it. Else whether it may
    /// be sent again, which is so once.
    pub fn refuse(&mut self, id: &Id, token: Token) -> Option<bool> {
        if self.token_of(id) != Some(token) {
            return None;
        }
        self.in_flight.remove(id);
        let first = self.resent.insert(id.clone());
        if !first {
            self.resent.remove(id);
        }
        Some(first)
    }

    /// The request that a cancel is about, from now on without anybody who waits for it.
    pub fn take_cancelled(&mut self, id: &Id) -> Option<InFlight> {
        // Not to be cancelled, says MCP.
        let is_initialize = self.in_flight.get(id)?.initialize;
        if is_initialize {
            return None;
        }
        self.resent.remove(id);
        self.in_flight.remove(id)
    }

    /// Nothing leaves any more; returns all that runs.
    pub fn close(&mut self) -> JoinSet<()> {
        self.closed = true;
        self.waiting.clear();
        self.in_flight.clear();
        std::mem::take(&mut self.tasks)
    }
}
