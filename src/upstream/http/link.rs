//! One life of a server at a URL: the order in which messages leave, and the session they are in.
//!
//! Each message is a task of its own. What must not be overtaken closes the gate: what comes behind
//! it waits in line until it has arrived.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::rpc::message::{Envelope, Id};
use crate::rpc::object::Members;
use crate::upstream::supervisor::{Forgotten, Supervisor};
use crate::upstream::{Events, Headers, Room, Way};

use super::Remote;
use super::exchange::{Exchange, Outcome};
use super::listen::listen;
use super::loss;
use super::message::{Message, Role, Session, header, with_headers};
use super::outgoing::{Backlog, Outgoing, Sent};

/// The longest that `notifications/initialized` holds up what follows it.
const INITIALIZED: Duration = Duration::from_secs(2);
/// How long the stream of a legacy request that was cancelled is still read.
const CANCELLED: Duration = Duration::from_secs(10);
/// How long the server has to hear that a session is over.
const GOODBYE: Duration = Duration::from_secs(1);

/// One life of a server.
pub struct Link {
    pub(super) remote: Arc<Remote>,
    pub(super) events: Arc<dyn Events>,
    /// `max_message`
    pub(super) limit: usize,
    supervisor: Weak<Supervisor>,
    backlog: Arc<Backlog>,
    me: Weak<Link>,
    state: Mutex<State>,
}

struct State {
    /// what holds up all that follows it
    gate: Option<Token>,
    waiting: VecDeque<Message>,
    session: Arc<Session>,
    /// the version of the last request, where that was modern
    modern: Option<HeaderValue>,
    in_flight: HashMap<Id, InFlight>,
    /// requests that a server refused with its session, and that were sent again
    resent: HashSet<Id>,
    tasks: JoinSet<()>,
    listener: Option<AbortHandle>,
    last_token: Token,
    closed: bool,
}

type Token = u64;
/// The gate before the first connection.
const CONNECTING: Token = 0;

/// A request that has no answer yet.
struct InFlight {
    token: Token,
    sent: Arc<Sent>,
    modern: bool,
    initialize: bool,
    task: AbortHandle,
}

/// How a life ended.
pub struct Ended {
    /// one sentence
    pub cause: Arc<str>,
    /// nothing was sent
    pub untouched: bool,
}

impl Link {
    /// Nothing is sent before [`Link::run`].
    pub fn new(
        remote: Arc<Remote>,
        events: Arc<dyn Events>,
        limit: usize,
        supervisor: Weak<Supervisor>,
    ) -> Arc<Self> {
        let state = State {
            gate: Some(CONNECTING),
            waiting: VecDeque::new(),
            session: Arc::default(),
            modern: None,
            in_flight: HashMap::new(),
            resent: HashSet::new(),
            tasks: JoinSet::new(),
            listener: None,
            last_token: CONNECTING,
            closed: false,
        };
        Arc::new_cyclic(|me| Link {
            remote,
            events,
            limit,
            supervisor,
            backlog: Arc::default(),
            me: me.clone(),
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the link is held")
    }

    /// The whole life: until `stop` is fired, or the server can't be reached at all.
    pub async fn run(self: Arc<Self>, stop: Arc<Notify>) -> Ended {
        let mut stopped = pin!(stop.notified());
        let warm = tokio::select! {
            biased;
            () = &mut stopped => None,
            warm = self.remote.warm_up() => Some(warm),
        };
        match warm {
            Some(Ok(())) => {
                self.open_gate(CONNECTING);
                stopped.await;
            }
            Some(Err(cause)) => {
                self.close().await;
                return Ended { cause: cause.into(), untouched: true };
            }
            None => {}
        }
        self.close().await;
        let cause = format!("the connection to the server at {} was closed", self.remote.address());
        Ended { cause: cause.into(), untouched: false }
    }

    /// Drops all streams, and tells a legacy server that its session is over.
    async fn close(&self) {
        let (mut tasks, session) = {
            let mut state = self.state();
            state.closed = true;
            state.waiting.clear();
            state.in_flight.clear();
            (std::mem::take(&mut state.tasks), state.session.clone())
        };
        tasks.shutdown().await;
        if session.id.is_some() {
            let mut headers = HeaderMap::new();
            session.put_into(&mut headers);
            let headers = with_headers(self.remote.base(), &Some(Arc::new(headers)));
            let url = &self.remote.url;
            let goodbye = self.remote.send(Method::DELETE, url, headers, Outgoing::default());
            let _ = timeout(GOODBYE, goodbye).await;
        }
    }

    /// The gate is opened by what closed it: what waits is sent, up to what closes it again.
    pub(super) fn open_gate(&self, token: Token) {
        let mut state = self.state();
        if state.gate != Some(token) {
            return;
        }
        state.gate = None;
        while state.gate.is_none()
            && let Some(message) = state.waiting.pop_front()
        {
            self.dispatch(&mut state, message);
        }
    }

    /// Sends a message now.
    fn dispatch(&self, state: &mut State, message: Message) {
        while state.tasks.try_join_next().is_some() {}
        let Some(me) = self.me.upgrade() else { return };
        if let Role::Cancelled(id) = &message.role {
            match id.as_ref().and_then(|id| state.take_cancelled(id)) {
                Some(request) => return self.cancel(state, me, request, message),
                // A modern server has no use for it.
                None if message.modern.is_some() => return,
                None => {}
            }
        }
        state.last_token += 1;
        let token = state.last_token;
        match message.role {
            Role::Initialize => state.renew_session(),
            Role::Request => {
                state.modern = message.modern.as_ref().map(|modern| modern.version.clone());
            }
            _ => {}
        }
        let closes = matches!(message.role, Role::Initialize | Role::Initialized);
        let (id, modern, sent) =
            (message.id.clone(), message.modern.is_some(), message.sent.clone());
        let initialize = message.role == Role::Initialize;
        let is_initialized = message.role == Role::Initialized;
        let exchange =
            Exchange { link: me.clone(), message, session: state.session.clone(), token };
        let task = state.tasks.spawn(exchange.run());
        if closes {
            state.gate = Some(token);
        }
        if is_initialized {
            state.tasks.spawn(async move {
                sleep(INITIALIZED).await;
                me.open_gate(token);
            });
        }
        if let Some(id) = id {
            state.in_flight.insert(id, InFlight { token, sent, modern, initialize, task });
        }
    }

    /// A modern server is told by the end of the stream, a legacy one by a message, which must not
    /// overtake the request.
    fn cancel(&self, state: &mut State, me: Arc<Link>, request: InFlight, message: Message) {
        if request.modern {
            return request.task.abort();
        }
        let exchange =
            Exchange { link: me, message, session: state.session.clone(), token: CONNECTING };
        state.tasks.spawn(async move {
            request.sent.arrived().await;
            exchange.run().await;
            sleep(CANCELLED).await;
            request.task.abort();
        });
    }

    /// The server has opened a session, or works without one.
    pub(super) fn session_opened(&self, token: Token, id: Option<HeaderValue>) {
        self.state().change_session(token, |session| session.id = id);
    }

    /// The answer to `initialize` names the version.
    pub(super) fn agreed(&self, token: Token, answer: &str) {
        let result = Envelope::parse(answer).ok().and_then(|envelope| envelope.result);
        let version = result.and_then(Members::parse).and_then(|r| r.text("protocolVersion"));
        if let Some(version) = version.and_then(|version| header(&version)) {
            self.state().change_session(token, |session| session.version = Some(version));
        }
    }

    /// The server took what has no answer.
    pub(super) fn accepted(&self, message: &Message, token: Token) {
        if message.role != Role::Initialized {
            return;
        }
        {
            let mut state = self.state();
            if let Some(me) = self.me.upgrade().filter(|_| !state.closed) {
                let stream = listen(me, state.session.clone(), message.headers.clone());
                let listener = state.tasks.spawn(stream);
                if let Some(old) = state.listener.replace(listener) {
                    old.abort();
                }
            }
        }
        self.open_gate(token);
    }

    /// A request has its answer, which goes to the relay next.
    pub(super) fn answer_came(&self, id: Option<&Id>, token: Token) {
        self.state().finish(id, token);
    }

    /// Whether somebody waits for the answer to a request.
    pub(super) fn waits_for(&self, id: Option<&Id>, token: Token) -> bool {
        let state = self.state();
        id.and_then(|id| state.in_flight.get(id)).is_some_and(|request| request.token == token)
    }

    /// A message is through with the server.
    pub(super) fn over(&self, message: Message, session: &Session, token: Token, outcome: Outcome) {
        let id = message.id.as_ref();
        match outcome {
            Outcome::Done => drop(self.state().finish(id, token)),
            Outcome::Forgotten => return self.forgotten(message, session, token),
            Outcome::Lost(loss) => match id {
                Some(id) if self.state().finish(Some(id), token) => {
                    let supervisor = self.supervisor.upgrade();
                    match supervisor.filter(|_| message.role == Role::Initialize) {
                        // The handshake that others wait for has failed.
                        Some(supervisor) if supervisor.is_starting() => {
                            supervisor.give_up(&loss.cause);
                        }
                        _ => self.events.request_lost(id, loss),
                    }
                }
                Some(_) => {}
                None => warn!("a message is lost: {}", loss.cause),
            },
        }
        self.open_gate(token);
    }

    /// The server does not know the session: a new one is opened once, and the message sent in it.
    fn forgotten(&self, message: Message, session: &Session, token: Token) {
        let waits = {
            let mut state = self.state();
            let waits = state.settle(message.id.as_ref(), token);
            let again = message.id.as_ref().filter(|_| waits);
            if let Some(id) = again
                && !state.resent.insert(id.clone())
            {
                state.resent.remove(id);
                drop(state);
                let cause = loss::forgotten(self.remote.address());
                let id = message.id.as_ref().expect("it is the id that was looked up");
                self.events.request_lost(id, cause);
                return self.open_gate(token);
            }
            waits
        };
        let again = match message.role {
            Role::Initialized => None,
            Role::Request if waits => Some((message.bytes, message.headers)),
            Role::Notification => Some((message.bytes, message.headers)),
            // It was about something in the old session.
            _ => return self.open_gate(token),
        };
        debug!("the server has forgotten its session");
        if let Some(supervisor) = self.supervisor.upgrade() {
            supervisor.renew(again, || self.forget(session.generation));
        }
    }

    /// Forgets the session of this generation; tells what has not left yet.
    fn forget(&self, generation: u64) -> Forgotten {
        let mut state = self.state();
        if state.closed {
            return Forgotten::Over;
        }
        if state.session.generation != generation {
            return Forgotten::Before;
        }
        state.renew_session();
        state.gate = None;
        let waiting = state.waiting.drain(..);
        Forgotten::Now(waiting.map(|message| (message.bytes, message.headers)).collect())
    }
}

impl State {
    fn renew_session(&mut self) {
        let generation = self.session.generation + 1;
        self.session = Arc::new(Session { generation, ..Session::default() });
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
    }

    /// Changes the session that the `initialize` with this token opens.
    fn change_session(&mut self, token: Token, change: impl FnOnce(&mut Session)) {
        if self.gate != Some(token) {
            return;
        }
        let Session { id, version, generation } = &*self.session;
        let mut session =
            Session { id: id.clone(), version: version.clone(), generation: *generation };
        change(&mut session);
        self.session = Arc::new(session);
    }

    /// Nobody waits for the request any more; whether somebody did.
    fn settle(&mut self, id: Option<&Id>, token: Token) -> bool {
        let Some(id) = id else { return false };
        if self.in_flight.get(id).is_none_or(|request| request.token != token) {
            return false;
        }
        self.in_flight.remove(id);
        true
    }

    /// The same, for good: it is not sent again.
    fn finish(&mut self, id: Option<&Id>, token: Token) -> bool {
        let waited = self.settle(id, token);
        if let Some(id) = id.filter(|_| waited) {
            self.resent.remove(id);
        }
        waited
    }

    /// The request that a cancel is about, from now on without anybody who waits for it.
    fn take_cancelled(&mut self, id: &Id) -> Option<InFlight> {
        // Not to be cancelled, says MCP.
        let is_initialize = self.in_flight.get(id)?.initialize;
        if is_initialize { None } else { self.in_flight.remove(id) }
    }
}

impl Way for Link {
    fn push(&self, message: &Bytes, headers: &Headers) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        let message = Message::new(message, headers, state.modern.as_ref(), &self.backlog);
        // A server may ask something before it answers what closed the gate.
        let passes = message.role == Role::Response && state.gate != Some(CONNECTING);
        if state.gate.is_none() || passes {
            self.dispatch(&mut state, message);
        } else {
            state.waiting.push_back(message);
        }
    }

    fn has_room(&self) -> bool {
        self.backlog.has_room()
    }

    fn room(self: Arc<Self>) -> Room {
        let backlog = self.backlog.clone();
        Box::pin(async move { backlog.room().await })
    }
}
