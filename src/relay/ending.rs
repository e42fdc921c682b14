//! Ends: of the server, of the client, and of requests that get no answer.

use std::sync::Arc;

use tracing::warn;

use crate::jobs::job::Outcome;
use crate::rpc::id::Id;
use crate::upstream::{End, Loss};

use super::call::Call;
use super::catalog::Held;
use super::pending::{Asker, Pending, What};
use super::session::{Session, State};
use crate::mcp::compose::subscription_end_line;
use crate::mcp::error_code::INTERNAL_ERROR;
use crate::rpc::truncated::{id_at_an_end, is_request};

/// What becomes of jobs that still run when the proxy ends (§11).
const INTERRUPTED: &str =
    "interrupted: the proxy ended. Outcome unknown: check before you repeat it.";

impl Session {
    /// There will never be a server: requests are answered with the cause, and
    /// [`Session::failed`] returns.
    pub fn fail(&self, cause: &str) {
        self.fail_locked(&mut self.state(), cause);
    }

    pub(super) fn fail_locked(&self, state: &mut State, cause: &str) {
        state.failure = Some(cause.into());
        for id in state.pending.ids() {
            self.refuse(state, &id, cause);
        }
        self.failed.notify_one();
    }

    /// Waits until it is clear that there is no server; returns why.
    pub async fn failed(&self) -> Arc<str> {
        loop {
            if let Some(cause) = self.state().failure.clone() {
                return cause;
            }
            self.failed.notified().await;
        }
    }

    /// Waits until nothing is left to do: no client waits, and no job runs.
    pub async fn at_rest(&self) {
        self.until(|state| {
            !is_asked(state) && state.pending.calls() == 0 && state.parked.is_empty()
        })
        .await;
    }

    /// Waits until a request has been answered.
    pub async fn answered(&self) {
        self.answered.notified().await;
    }

    /// Waits until the client waits for nothing any more.
    pub async fn idle(&self) {
        self.until(|state| !is_asked(state)).await;
    }

    /// Waits until a request is over after which this holds.
    async fn until(&self, holds: impl Fn(&State) -> bool) {
        while !holds(&self.state()) {
            self.answered.notified().await;
        }
    }

    /// The client has gone: whatever waits for it is ended, running jobs are recorded.
    pub fn close(&self) {
        let mut state = self.state();
        for (_, wait) in state.waits.drain() {
            wait.task.abort();
        }
        self.interrupt_parked(&mut state);
        for id in state.pending.ids() {
            match state.pending.remove(&id) {
                Some(Pending { what: What::Call(call), .. }) => self.interrupted(&call),
                Some(Pending { what: What::Listen { .. }, asker, .. }) => self.end_listen(asker),
                _ => {}
            }
        }
    }

    /// The proxy ends: whoever still waits is told so, running jobs are recorded (§9).
    pub fn interrupt(&self) {
        let mut state = self.state();
        self.interrupt_parked(&mut state);
        for id in state.pending.ids() {
            match state.pending.remove(&id) {
                Some(Pending { what: What::Listen { .. }, asker, .. }) => self.end_listen(asker),
                Some(pending) => {
                    self.lost_request(&mut state, pending, "interrupted, the proxy ended", true);
                }
                None => {}
            }
        }
    }

    fn interrupt_parked(&self, state: &mut State) {
        state.parked.drain().for_each(|(_, call)| self.interrupted(&call));
    }

    /// Records the job of a call, if it is one.
    fn interrupted(&self, call: &Call) {
        if let Some(job) = &call.job {
            self.registry.finish(job, Outcome::Lost(INTERRUPTED.into()));
        }
    }

    /// A subscription ends from our side. A client is told where its stream would else be cut
    /// (protocol §2).
    fn end_listen(&self, asker: Option<Asker>) {
        let Some(asker) = asker.filter(|asker| asker.reply.has_own_stream()) else { return };
        self.answer(&asker, &subscription_end_line(&asker.id));
    }

    /// One request will get no answer.
    pub(super) fn request_without_answer(&self, id: &Id, loss: Loss) {
        let mut state = self.state();
        let Some(mut pending) = state.pending.remove(id) else { return };
        warn!("{}", loss.cause);
        if let Some(refusal) = loss.refusal
            && self.config.forwards_authorization()
            && let Some(asker) = &pending.asker
            && asker.reply.refuse(refusal)
        {
            pending.asker = None;
        }
        self.lost_request(&mut state, pending, &loss.cause, loss.reached);
    }

    /// The server is gone: what it had to answer is lost.
    pub(super) fn server_lost(&self, end: &End) {
        let end = &End { cause: self.shown(&end.cause).into(), ..end.clone() };
        let mut state = self.state();
        let probed = state.pending.iter().any(|(_, p)| matches!(p.what, What::Discover));
        if end.never_up && !probed && self.ends_with_server {
            return self.fail_locked(&mut state, &end.cause);
        }
        state.questions.abandon();
        let held = state.catalog.abandon();
        for Held { asker, .. } in held.held {
            self.answer_error(&asker, INTERNAL_ERROR, &end.cause);
        }
        self.take_up(held.calls);
        state.pending.mark_lost_listens();
        // Chosen beforehand: the end of a call lets the next in its line go, to the next server.
        let lost = state.pending.iter().filter(|(_, pending)| !pending.survives_the_server());
        let lost: Vec<Id> = lost.map(|(id, _)| id.clone()).collect();
        for id in lost {
            let Some(pending) = state.pending.remove(&id) else { continue };
            self.lost_request(&mut state, pending, &end.cause, !end.during_start);
        }
    }

    /// Tells whoever waits for a request that no answer will come.
    pub(super) fn lost_request(
        &self,
        state: &mut State,
        pending: Pending,
        cause: &str,
        reached: bool,
    ) {
        match pending.what {
            What::Call(call) => self.call_lost(state, *call, pending.asker, cause, reached),
            What::List { repeat, .. } => {
                if let Some(slot) = repeat {
                    state.deadlines.remove(slot);
                }
                self.answer_lost(pending.asker.as_ref(), cause);
            }
            // Given up with the server, or the end of the pages.
            What::Catalog if state.catalog.is_reading() => self.catalog_page(state, None),
            What::Catalog => {}
            What::Revival(_) => {}
            _ => self.answer_lost(pending.asker.as_ref(), cause),
        }
    }

    pub(super) fn answer_lost(&self, asker: Option<&Asker>, cause: &str) {
        if let Some(asker) = asker {
            self.answer_error(asker, INTERNAL_ERROR, cause);
        }
    }

    /// An answer of the server above `max_message` was dropped: its request fails, nothing else.
    pub(super) fn server_too_long(&self, head: &[u8], tail: &[u8], length: u64) {
        warn!(bytes = length, "dropped a message of the server that is above max_message");
        let Some(raw) = id_at_an_end(head, tail).filter(|_| !is_request(head)) else { return };
        let Some(id) = Id::parse(&raw) else { return };
        let mut state = self.state();
        if let Some(pending) = state.pending.remove(&id) {
            let cause = self.too_long("The server's answer", length);
            self.lost_request(&mut state, pending, &cause, true);
        }
    }

    pub(super) fn too_long(&self, what: &str, length: u64) -> String {
        format!(
            "{what} of {length} bytes is longer than max_message ({} bytes) and was dropped",
            self.config.max_message
        )
    }
}

/// Whether a client waits for anything that has an end.
fn is_asked(state: &State) -> bool {
    state.pending.any_asked() || state.catalog.is_holding() || !state.waits.is_empty()
}
