//! A session that the server has forgotten (404): a new one is opened once, within this life.

use tracing::debug;

use crate::upstream::life::Forgotten;
use crate::upstream::outgoing::{Outgoing, Role};

use super::HttpLife;
use crate::upstream::http::exchange::ExchangeNumber;
use crate::upstream::http::loss;
use crate::upstream::http::session::ServerSession;

impl HttpLife {
    /// The server has forgotten the session of its own stream.
    pub(super) fn session_gone(&self, session: &ServerSession) {
        self.renew(None, session);
    }

    /// The server does not know the session of a message, which is sent again in a new one, once.
    pub(super) fn session_refused(
        &self,
        message: Outgoing,
        session: &ServerSession,
        number: ExchangeNumber,
    ) {
        let refused = message.id.as_ref().and_then(|id| self.state().refuse(id, number));
        match (&message.role, refused) {
            (Role::Request | Role::Discover, Some(true)) | (Role::Notification, _) => {
                self.renew(Some(message), session);
            }
            // It will be sent as a part of the new handshake.
            (Role::Initialized, _) => self.renew(None, session),
            (_, Some(false)) => {
                if let Some(id) = &message.id {
                    let loss = loss::forgotten(self.context.remote.address());
                    self.context.observer.request_lost(id, loss);
                }
                self.let_go(number);
            }
            // It was about something in the old session.
            _ => self.let_go(number),
        }
    }

    fn renew(&self, refused: Option<Outgoing>, session: &ServerSession) {
        debug!("the server has forgotten its session");
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.renew(refused, Box::new(|| self.forget(session.generation)));
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
        Forgotten::Now(state.waiting.drain(..).map(|message| message.outgoing).collect())
    }
}
