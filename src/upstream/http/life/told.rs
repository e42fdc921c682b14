//! What exchanges tell the life that they are a part of.

use http::{HeaderValue, Uri};
use tracing::warn;

use crate::rpc::id::Id;
use crate::rpc::message::Envelope;
use crate::rpc::object::Members;
use crate::upstream::observer::Loss;
use crate::upstream::outgoing::{Headers, Role};

use super::HttpLife;
use crate::upstream::http::exchange::{ExchangeNumber, ExchangeObserver, ExchangeOutcome};
use crate::upstream::http::queued_message::QueuedMessage;
use crate::upstream::http::remote::SpokenTransport;
use crate::upstream::http::resumable_stream::ResumableStream;
use crate::upstream::http::session::ServerSession;
use crate::upstream::http::standalone_stream::{self, StandaloneEnd};

impl ExchangeObserver for HttpLife {
    fn session_opened(&self, number: ExchangeNumber, id: Option<HeaderValue>) {
        if let Some(session) = self.state().session_opened_by(number) {
            session.id = id;
        }
    }

    fn revision_agreed(&self, number: ExchangeNumber, answer: &Envelope) {
        let mut state = self.state();
        let Some(session) = state.session_opened_by(number) else { return };
        let revision =
            answer.result.and_then(Members::parse).and_then(|r| r.text("protocolVersion"));
        if let Some(revision) = revision.and_then(|text| HeaderValue::from_str(&text).ok()) {
            session.version = Some(revision);
        }
    }

    fn accepted(&self, message: &QueuedMessage, number: ExchangeNumber) {
        if message.outgoing.role == Role::Initialized {
            self.listen(message.outgoing.headers.clone());
            self.let_go(number);
        }
    }

    fn answered(&self, id: Option<&Id>, number: ExchangeNumber) {
        self.state().finish(id, number);
    }

    fn open_gate(&self, number: ExchangeNumber) {
        self.let_go(number);
    }

    fn waits_for(&self, id: Option<&Id>, number: ExchangeNumber) -> bool {
        let state = self.state();
        id.and_then(|id| state.number_of(id)) == Some(number)
    }

    fn switched(&self, stream: ResumableStream, address: Uri) {
        self.context.remote.note_transport(SpokenTransport::HttpSse);
        let mut state = self.state();
        state.http_sse = Some(address);
        state.http_sse_stream = Some(stream);
        drop(state);
        self.stream_opened.notify_one();
    }

    fn over(
        &self,
        message: QueuedMessage,
        session: &ServerSession,
        number: ExchangeNumber,
        outcome: ExchangeOutcome,
    ) {
        let id = message.outgoing.id.as_ref();
        match outcome {
            ExchangeOutcome::Sent => return,
            ExchangeOutcome::SessionForgotten => {
                return self.session_refused(message.outgoing, session, number);
            }
            ExchangeOutcome::Done => drop(self.state().finish(id, number)),
            ExchangeOutcome::Lost(loss) => match id {
                Some(id) => {
                    let waits = self.state().finish(Some(id), number);
                    if waits {
                        self.lose(&message.outgoing.role, id, loss);
                    }
                }
                None => warn!("a message is lost: {}", loss.cause),
            },
        }
        self.let_go(number);
    }
}

impl HttpLife {
    fn lose(&self, role: &Role, id: &Id, loss: Loss) {
        match self.keeper.upgrade() {
            // The handshake that others wait for has failed.
            Some(keeper) if *role == Role::Initialize && keeper.is_starting() => {
                keeper.give_up(&loss.cause);
            }
            _ => self.context.observer.request_lost(id, loss),
        }
    }

    /// Opens the stream on which a legacy server speaks by itself.
    fn listen(&self, headers: Headers) {
        let Some(me) = self.me.upgrade() else { return };
        let mut state = self.state();
        if state.closed || state.http_sse.is_some() {
            return;
        }
        let session = state.session.clone();
        let listener = state.tasks.spawn(async move {
            let stream = standalone_stream::read(me.context.clone(), session.clone(), headers);
            if stream.await == StandaloneEnd::SessionForgotten {
                me.session_gone(&session);
            }
        });
        if let Some(last) = state.listener.replace(listener) {
            last.abort();
        }
    }
}
