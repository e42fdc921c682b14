//! The order in which messages leave.
//!
//! Each message is a task of its own. What must not be overtaken closes the gate: what comes behind
//! it waits in line until it has arrived.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::rpc::outbox::Room;
use crate::upstream::message_sink::MessageSink;
use crate::upstream::outgoing::{Outgoing, Role};

use super::HttpLife;
use super::state::{CONNECTING, HttpLifeState, InFlight};
use crate::upstream::http::exchange::{ExchangeNumber, PostExchange};
use crate::upstream::http::queued_message::QueuedMessage;

/// The longest that `notifications/initialized` holds up what follows it.
const INITIALIZED: Duration = Duration::from_secs(2);
/// How long the stream of a legacy request that was cancelled is still read.
const CANCELLED: Duration = Duration::from_secs(10);

impl MessageSink for HttpLife {
    fn push(&self, message: Outgoing) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        let message = QueuedMessage::new(message, state.last_revision.as_ref(), &self.backlog);
        if state.gate.is_none() || state.passes_gate(&message) {
            self.dispatch(&mut state, message);
        } else {
            state.waiting.push_back(message);
            self.message_waits.notify_one();
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

impl HttpLife {
    /// The gate is opened by what closed it: what waits is sent, up to what closes it again.
    pub(super) fn let_go(&self, number: ExchangeNumber) {
        let mut state = self.state();
        if state.gate == Some(number) {
            state.gate = None;
            self.flush(&mut state);
        }
    }

    fn flush(&self, state: &mut HttpLifeState) {
        while state.gate.is_none()
            && let Some(message) = state.waiting.pop_front()
        {
            self.dispatch(state, message);
        }
    }

    /// Sends a message now.
    fn dispatch(&self, state: &mut HttpLifeState, message: QueuedMessage) {
        while state.tasks.try_join_next().is_some() {}
        let Some(me) = self.me.upgrade() else { return };
        if let Role::Cancelled(id) = &message.outgoing.role {
            match id.as_ref().and_then(|id| state.take_cancelled(id)) {
                Some(request) => return self.cancel(state, me, request, message),
                // A modern server has no use for it.
                None if message.is_modern() && state.http_sse.is_none() => return,
                None => {}
            }
        }
        let number = state.next_number();
        self.prepare(state, &me, &message, number);
        let (id, progress) = (message.outgoing.id.clone(), message.progress.clone());
        let modern = message.is_modern();
        let initialize = message.outgoing.role == Role::Initialize;
        let exchange = exchange(me, state, message, number);
        let task = state.tasks.spawn(exchange.run());
        if let Some(id) = id {
            state.insert(id, InFlight { number, progress, modern, initialize, task });
        }
    }

    /// What a message changes before it leaves.
    fn prepare(
        &self,
        state: &mut HttpLifeState,
        me: &Arc<HttpLife>,
        message: &QueuedMessage,
        number: ExchangeNumber,
    ) {
        if self.closes_gate(&message.outgoing.role) {
            state.gate = Some(number);
        }
        match message.outgoing.role {
            Role::Initialize => {
                state.last_revision = None;
                state.renew_session();
            }
            Role::Request | Role::Discover => state.last_revision.clone_from(&message.revision),
            Role::Initialized => {
                let me = me.clone();
                state.tasks.spawn(async move {
                    sleep(INITIALIZED).await;
                    me.let_go(number);
                });
            }
            _ => {}
        }
    }

    fn closes_gate(&self, role: &Role) -> bool {
        match role {
            Role::Initialize | Role::Initialized => true,
            // Its answer may show where the others must go.
            Role::Discover => self.context.remote.transport().is_none(),
            _ => false,
        }
    }

    /// A modern server is told by the end of the stream, a legacy one by a message, which must not
    /// overtake the request.
    fn cancel(
        &self,
        state: &mut HttpLifeState,
        me: Arc<HttpLife>,
        request: InFlight,
        message: QueuedMessage,
    ) {
        let held_up = state.gate == Some(request.number);
        if request.modern && state.http_sse.is_none() {
            request.task.abort();
        } else {
            let cancel = exchange(me, state, message, CONNECTING);
            state.tasks.spawn(async move {
                request.progress.arrived().await;
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
}

/// A message with all that it needs to leave now.
fn exchange(
    life: Arc<HttpLife>,
    state: &HttpLifeState,
    message: QueuedMessage,
    number: ExchangeNumber,
) -> PostExchange {
    let (session, http_sse) = (state.session.clone(), state.http_sse.clone());
    PostExchange { context: life.context.clone(), life, message, session, http_sse, number }
}
