//! All of a life that changes: what waits, what is on its way, and the session.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use http::{HeaderValue, Uri};
use tokio::task::{AbortHandle, JoinSet};

use crate::rpc::id::Id;
use crate::upstream::http::exchange::ExchangeNumber;
use crate::upstream::http::queued_message::QueuedMessage;
use crate::upstream::http::request_body::SendProgress;
use crate::upstream::http::resumable_stream::ResumableStream;
use crate::upstream::http::session::ServerSession;
use crate::upstream::outgoing::Role;

/// The gate before the server is known to be there; no exchange has this number.
pub(crate) const CONNECTING: ExchangeNumber = 0;

/// All of a life that changes.
pub(crate) struct HttpLifeState {
    /// what holds up all that follows it
    pub gate: Option<ExchangeNumber>,
    /// what is held up
    pub waiting: VecDeque<QueuedMessage>,
    /// of a legacy server
    pub session: Arc<ServerSession>,
    /// the revision of the last request, where that was of the modern era
    pub last_revision: Option<HeaderValue>,
    in_flight: HashMap<Id, InFlight>,
    /// requests that the server refused with their session, and that were sent again
    resent: HashSet<Id>,
    /// all exchanges, and what belongs to them
    pub tasks: JoinSet<()>,
    /// reads what the server says by itself
    pub listener: Option<AbortHandle>,
    /// where messages go in HTTP+SSE
    pub http_sse: Option<Uri>,
    /// the one stream of HTTP+SSE, before it is read
    pub http_sse_stream: Option<ResumableStream>,
    last_number: ExchangeNumber,
    /// the life is over
    pub closed: bool,
}

/// A request that has no answer yet.
pub(crate) struct InFlight {
    /// of its exchange
    pub number: ExchangeNumber,
    /// how far it has come
    pub progress: Arc<SendProgress>,
    /// it is of the modern era
    pub modern: bool,
    /// it is `initialize`
    pub initialize: bool,
    /// the exchange
    pub task: AbortHandle,
}

impl HttpLifeState {
    /// Nothing is sent before the server is known to be there.
    pub(crate) fn new() -> Self {
        HttpLifeState {
            gate: Some(CONNECTING),
            waiting: VecDeque::new(),
            session: Arc::default(),
            last_revision: None,
            in_flight: HashMap::new(),
            resent: HashSet::new(),
            tasks: JoinSet::new(),
            listener: None,
            http_sse: None,
            http_sse_stream: None,
            last_number: CONNECTING,
            closed: false,
        }
    }

    /// The number of the next exchange.
    pub(crate) fn next_number(&mut self) -> ExchangeNumber {
        self.last_number += 1;
        self.last_number
    }

    /// Whether the message may leave while the gate is closed.
    pub(crate) fn passes_gate(&self, message: &QueuedMessage) -> bool {
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
    pub(crate) fn renew_session(&mut self) {
        let generation = self.session.generation + 1;
        self.session = Arc::new(ServerSession { generation, ..ServerSession::default() });
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
    }

    /// The session that the `initialize` with this number opens.
    pub(crate) fn session_opened_by(
        &mut self,
        number: ExchangeNumber,
    ) -> Option<&mut ServerSession> {
        (self.gate == Some(number)).then(|| Arc::make_mut(&mut self.session))
    }

    /// A request has left.
    pub(crate) fn insert(&mut self, id: Id, request: InFlight) {
        self.in_flight.insert(id, request);
    }

    /// The exchange of a request that has no answer yet.
    pub(crate) fn number_of(&self, id: &Id) -> Option<ExchangeNumber> {
        self.in_flight.get(id).map(|request| request.number)
    }

    /// The request is over, for good; whether somebody waited for it.
    pub(crate) fn finish(&mut self, id: Option<&Id>, number: ExchangeNumber) -> bool {
        let Some(id) = id.filter(|id| self.number_of(id) == Some(number)) else { return false };
        self.resent.remove(id);
        self.in_flight.remove(id).is_some()
    }

    /// The request was refused with its session. `None`: nobody waits for it. Else whether it may
    /// be sent again, which is so once.
    pub(crate) fn refuse(&mut self, id: &Id, number: ExchangeNumber) -> Option<bool> {
        if self.number_of(id) != Some(number) {
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
    pub(crate) fn take_cancelled(&mut self, id: &Id) -> Option<InFlight> {
        // Not to be cancelled, says MCP.
        let is_initialize = self.in_flight.get(id)?.initialize;
        if is_initialize {
            return None;
        }
        self.resent.remove(id);
        self.in_flight.remove(id)
    }

    /// Nothing leaves any more; returns all that runs.
    pub(crate) fn close(&mut self) -> JoinSet<()> {
        self.closed = true;
        self.waiting.clear();
        self.in_flight.clear();
        std::mem::take(&mut self.tasks)
    }
}
