//! One life of a server at a URL: the order in which messages leave, and the session they are in.
//!
//! Each message is a task of its own. What must not be overtaken closes the gate: what comes behind
//! it waits in line until it has arrived.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::rpc::id::Id;

use crate::rpc::message::Envelope;
use crate::rpc::object::Members;
use crate::upstream::outgoing::Role;
use crate::upstream::renewal::Forgotten;
use crate::upstream::supervisor::Supervisor;
use crate::upstream::{Events, Headers, Loss, Outgoing, Room, Way};

use super::exchange::{Exchange, Outcome};
use super::listen::listen;
use super::message::{Message, Session, header};
use super::request_body::Backlog;
use super::state::{CONNECTING, InFlight, State, Token};
use super::{Remote, loss};

/// The longest that `notifications/initialized` holds up what follows it.
const INITIALIZED: Duration = Duration::from_secs(2);
/// How long the stream of a legacy request that was cancelled is still read.
const CANCELLED: Duration = Duration::from_secs(10);

/// One life of a server.
pub struct Link {
    pub(super) remote: Arc<Remote>,
    pub(super) events: Arc<dyn Events>,
    /// `max_message`
    pub(super) limit: usize,
    supervisor: Weak<Supervisor>,
    /// what has not left
    backlog: Arc<Backlog>,
    me: Weak<Link>,
    state: Mutex<State>,
    /// fired when a message waits
    pub(super) asked: Notify,
    /// fired when the server was found to speak HTTP+SSE
    pub(super) switched: Notify,
}

impl Link {
    /// Nothing is sent before [`Link::run`].
    pub fn new(
        remote: Arc<Remote>,
        events: Arc<dyn Events>,
        limit: usize,
        supervisor: Weak<Supervisor>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Link {
            remote,
            events,
            limit,
            supervisor,
            backlog: Arc::default(),
            me: me.clone(),
            state: Mutex::new(State::new()),
            asked: Notify::new(),
            switched: Notify::new(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the link is held")
    }

    /// The gate is opened by what closed it: what waits is sent, up to what closes it again.
    pub(super) fn open_gate(&self, token: Token) {
        let mut state = self.state();
        if state.gate == Some(token) {
            state.gate = None;
            self.flush(&mut state);
        }
    }

    fn flush(&self, state: &mut State) {
        while state.gate.is_none()
            && let Some(message) = state.waiting.pop_front()
        {
            self.dispatch(state, message);
        }
    }

    /// Sends a message now.
    fn dispatch(&self, state: &mut State, message: Message) {
        while state.tasks.try_join_next().is_some() {}
        let Some(me) = self.me.upgrade() else { return };
        if let Role::Cancelled(id) = &message.outgoing.role {
            match id.as_ref().and_then(|id| state.take_cancelled(id)) {
                Some(request) => return self.cancel(state, me, request, message),
                // A modern server has no use for it.
                None if message.is_modern() && state.two_ways.is_none() => return,
                None => {}
            }
        }
        let token = state.next_token();
        if self.closes_gate(&message.outgoing.role) {
            state.gate = Some(token);
        }
        match message.outgoing.role {
            Role::Initialize => {
                state.modern = None;
                state.renew_session();
            }
            Role::Request | Role::Discover => {
                state.modern.clone_from(&message.revision);
            }
            Role::Initialized => {
                let me = me.clone();
                state.tasks.spawn(async move {
                    sleep(INITIALIZED).await;
                    me.open_gate(token);
                });
            }
            _ => {}
        }
        let (id, sent) = (message.outgoing.id.clone(), message.sent.clone());
        let (modern, initialize) = (message.is_modern(), message.outgoing.role == Role::Initialize);
        let exchange = exchange(me, state, message, token);
        let task = state.tasks.spawn(exchange.run());
        if let Some(id) = id {
            state.insert(id, InFlight { token, sent, modern, initialize, task });
        }
    }

    fn closes_gate(&self, role: &Role) -> bool {
        match role {
            Role::Initialize | Role::Initialized => true,
            // Its answer may show where the others must go.
            Role::Discover => self.remote.spoken().is_none(),
            _ => false,
        }
    }

    /// A modern server is told by the end of the stream, a legacy one by a message, which must not
    /// overtake the request.
    fn cancel(&self, state: &mut State, me: Arc<Link>, request: InFlight, message: Message) {
        let held_up = state.gate == Some(request.token);
        if request.modern && state.two_ways.is_none() {
            request.task.abort();
        } else {
            let cancel = exchange(me, state, message, CONNECTING);
            state.tasks.spawn(async move {
                request.sent.arrived().await;
                cancel.run().await;
                sleep(CANCELLED).await;
                request.task.abort();
            });
        }
        if held_up {
            state.gate = None;
            self.flush(state);
        }
    }

    /// The server has opened a session, or works without one.
    pub(super) fn session_opened(&self, token: Token, id: Option<HeaderValue>) {
        self.state().change_session(token, |session| session.id = id);
    }

    /// The answer to `initialize` names the version.
    pub(super) fn agreed(&self, token: Token, answer: &Envelope) {
        let version =
            answer.result.and_then(Members::parse).and_then(|r| r.text("protocolVersion"));
        if let Some(version) = version.and_then(|version| header(&version)) {
            self.state().change_session(token, |session| session.version = Some(version));
        }
    }

    /// The server took what has no answer.
    pub(super) fn accepted(&self, message: &Message, token: Token) {
        if message.outgoing.role == Role::Initialized {
            self.listen(message.outgoing.headers.clone());
            self.open_gate(token);
        }
    }

    /// Opens the stream on which a legacy server speaks by itself.
    fn listen(&self, headers: Headers) {
        let Some(me) = self.me.upgrade() else { return };
        let mut state = self.state();
        if state.closed || state.two_ways.is_some() {
            return;
        }
        let stream = listen(me, state.session.clone(), headers);
        let listener = state.tasks.spawn(stream);
        if let Some(last) = state.listener.replace(listener) {
            last.abort();
        }
    }

    /// A request has its answer, which goes to the relay next.
    pub(super) fn answer_came(&self, id: Option<&Id>, token: Token) {
        self.state().finish(id, token);
    }

    /// Whether somebody waits for the answer to a request.
    pub(super) fn waits_for(&self, id: Option<&Id>, token: Token) -> bool {
        let state = self.state();
        id.and_then(|id| state.token_of(id)) == Some(token)
    }

    /// A message is through with the server.
    pub(super) fn over(&self, message: Message, session: &Session, token: Token, outcome: Outcome) {
        let id = message.outgoing.id.as_ref();
        match outcome {
            Outcome::Sent => return,
            Outcome::Forgotten => return self.forgotten(message, session, token),
            Outcome::Done => drop(self.state().finish(id, token)),
            Outcome::Lost(loss) => match id {
                Some(id) => {
                    let waits = self.state().finish(Some(id), token);
                    if waits {
                        self.lose(&message.outgoing.role, id, loss);
                    }
                }
                None => warn!("a message is lost: {}", loss.cause),
            },
        }
        self.open_gate(token);
    }

    fn lose(&self, role: &Role, id: &Id, loss: Loss) {
        match self.supervisor.upgrade() {
            // The handshake that others wait for has failed.
            Some(supervisor) if *role == Role::Initialize && supervisor.is_starting() => {
                supervisor.give_up(&loss.cause);
            }
            _ => self.events.request_lost(id, loss),
        }
    }

    /// The server has forgotten the session of its own stream.
    pub(super) fn session_gone(&self, session: &Session) {
        debug!("the server has forgotten its session");
        if let Some(supervisor) = self.supervisor.upgrade() {
            supervisor.renew(None, || self.forget(session.generation));
        }
    }

    /// The server does not know the session: a new one is opened once, and the message sent in it.
    fn forgotten(&self, message: Message, session: &Session, token: Token) {
        let Message { outgoing, .. } = message;
        let refused = outgoing.id.as_ref().and_then(|id| self.state().refuse(id, token));
        let again = match (&outgoing.role, refused) {
            (Role::Request | Role::Discover, Some(true)) | (Role::Notification, _) => {
                Some(outgoing)
            }
            // It will be sent as a part of the new handshake.
            (Role::Initialized, _) => None,
            (_, Some(false)) => {
                if let Some(id) = &outgoing.id {
                    self.events.request_lost(id, loss::forgotten(self.remote.address()));
                }
                return self.open_gate(token);
            }
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
        Forgotten::Now(waiting.map(|message| message.outgoing).collect())
    }
}

/// A message with all that it needs to leave now.
fn exchange(link: Arc<Link>, state: &State, message: Message, token: Token) -> Exchange {
    let (session, two_ways) = (state.session.clone(), state.two_ways.clone());
    Exchange { link, message, session, two_ways, token }
}

impl Way for Link {
    fn push(&self, message: Outgoing) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        let message = Message::new(message, state.modern.as_ref(), &self.backlog);
        if state.gate.is_none() || state.passes_gate(&message) {
            self.dispatch(&mut state, message);
        } else {
            state.waiting.push_back(message);
            self.asked.notify_one();
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
