//! The end of a session: there will be no server, the client has gone, or the proxy ends.

use std::sync::Arc;

use crate::jobs::record::Outcome;
use crate::jobs::wording;
use crate::mcp::compose::subscription_end_line;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::{Call, PendingRequest, RequestKind};
use crate::relay::state::requester::Requester;

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// the client has gone, so nothing is sent to it
    ClientGone,
    /// the proxy ends, and requesters that wait are told so
    Interrupted,
}

impl Session {
    /// There will never be a server: requests are answered with the cause, and
    /// [`Session::failed`] returns.
    pub(crate) fn fail(&self, cause: &str) {
        self.fail_locked(&mut self.state(), cause);
    }

    /// [`Session::fail`], where the state is locked already.
    pub(super) fn fail_locked(&self, state: &mut State, cause: &str) {
        state.failure = Some(cause.into());
        for id in state.calls.pending.ids() {
            self.fail_unsent(state, &id, cause);
        }
        self.failed.notify_one();
    }

    /// Waits until it is clear that there is no server; returns why.
    pub(crate) async fn failed(&self) -> Arc<str> {
        loop {
            if let Some(cause) = self.state().failure.clone() {
                return cause;
            }
            self.failed.notified().await;
        }
    }

    /// Waits until nothing is left to do: no client waits, and no job runs.
    pub(crate) async fn idle(&self) {
        self.until(|state| !state.has_requester() && !state.calls.any_running()).await;
    }

    /// Waits until a request is over, with an answer or without.
    pub(crate) async fn request_over(&self) {
        self.request_over.notified().await;
    }

    /// Waits until no client waits for an answer.
    pub(crate) async fn all_answered(&self) {
        self.until(|state| !state.has_requester()).await;
    }

    /// Waits until this holds; it is looked at whenever a request is over.
    async fn until(&self, holds: impl Fn(&State) -> bool) {
        while !holds(&self.state()) {
            self.request_over.notified().await;
        }
    }

    /// The client has gone: its requests end, and running jobs are recorded as lost.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        for (_, wait) in state.calls.waits.drain() {
            wait.task.abort();
        }
        self.end_requests(&mut state, End::ClientGone);
    }

    /// The proxy ends: requesters that still wait are told so, and running jobs are recorded as
    /// lost (§9).
    pub(crate) fn interrupt(&self) {
        self.end_requests(&mut self.state(), End::Interrupted);
    }

    /// Ends all requests that the server has.
    fn end_requests(&self, state: &mut State, end: End) {
        state.calls.parked.drain().for_each(|(_, call)| self.interrupted(&call));
        for id in state.calls.pending.ids() {
            let Some(pending) = state.calls.pending.remove(&id) else { continue };
            self.end_request(state, pending, end);
        }
    }

    fn end_request(&self, state: &mut State, pending: PendingRequest, end: End) {
        match (&pending.kind, end) {
            (RequestKind::Listen { .. }, _) => self.end_listen(pending.requester),
            (_, End::Interrupted) => {
                self.lost_request(state, pending, "interrupted, the proxy ended", true);
            }
            (RequestKind::Call(call), End::ClientGone) => self.interrupted(call),
            (
                RequestKind::Initialize
                | RequestKind::Discover
                | RequestKind::List { .. }
                | RequestKind::Other
                | RequestKind::ToolsPage
                | RequestKind::Restart(_),
                End::ClientGone,
            ) => {}
        }
    }

    /// Records the job of a call, if it has become one, as interrupted.
    fn interrupted(&self, call: &Call) {
        if let Some(job) = &call.job {
            self.registry.finish(job, Outcome::Lost(wording::INTERRUPTED.into()));
        }
    }

    /// The proxy ends a subscription. A client that has a stream for it is told (protocol §2),
    /// since the stream would else break off.
    fn end_listen(&self, requester: Option<Requester>) {
        let requester = requester.filter(|requester| requester.reply.has_own_stream());
        if let Some(requester) = requester {
            self.answer(&requester, &subscription_end_line(&requester.id));
        }
    }
}
