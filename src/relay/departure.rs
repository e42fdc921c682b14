//! An HTTP client that closed the stream of a request before its answer (contract §6).

use std::sync::Arc;

use tokio::time::Instant;
use tracing::{debug, warn};

use crate::config::OnClientCancel;
use crate::downstream::Reply;
use crate::jobs::job::{Job, Outcome};
use crate::rpc::id::Id;

use super::call::{Call, outcome_of};
use super::pending::{Asker, Pending, What};
use super::session::{Session, State};
use crate::rpc::message::Message;

/// A client that left, and may come back for the answer.
pub struct Away {
    asker: Asker,
    job: Arc<Job>,
    /// the end of its budget
    until: Instant,
}

impl Session {
    /// Nobody reads the answer to this request any more. In the legacy era that says nothing of the
    /// work, which goes on; in the modern era it is the way to cancel (`closing_cancels`).
    pub fn left(&self, key: &Id, closing_cancels: bool) {
        let mut state = self.state();
        if let Some(wait) = state.waits.remove(key) {
            wait.task.abort();
        } else if let Some(inside) = state.pending.asked_as(key) {
            self.left_request(&mut state, &inside, closing_cancels);
        } else if let Some((call, outcome)) = state.undelivered.remove(key) {
            self.keep_answer(&state, &call, outcome);
        } else {
            state.catalog.cancel(key);
        }
        self.note_answered();
    }

    /// A long answer leaves bit by bit, and its client may go away meanwhile.
    pub(super) fn note_delivery(
        &self,
        state: &mut State,
        asker: &Asker,
        call: Call,
        message: &Message,
    ) {
        if call.job.is_none() && asker.reply.is_delivered_later(message.line.len()) {
            state.undelivered.insert(asker.key.clone(), (call, outcome_of(message)));
        }
    }

    /// The client has taken all of the answer.
    pub fn took(&self, key: &Id) {
        let mut state = self.state();
        if !state.undelivered.is_empty() {
            state.undelivered.remove(key);
        }
    }

    /// An answer that could not be delivered becomes a finished job (§6).
    fn keep_answer(&self, state: &State, call: &Call, outcome: Outcome) {
        match self.registry.create(self.origin(&state.catalog, call)) {
            Ok(job) => drop(self.registry.finish(&job, outcome.copied())),
            Err(full) => warn!("an answer that its client did not take is lost ({full})"),
        }
    }

    fn left_request(&self, state: &mut State, inside: &Id, closing_cancels: bool) {
        debug!(id = inside.to_json(), "the client left before the answer");
        let cancels = closing_cancels && self.is_cancel(state, inside);
        if cancels {
            return self.take_back(state, inside, "the client closed its stream");
        }
        // Whatever can be no job runs on; its answer waits for a client that comes back.
        let Some(Pending { what: What::Call(call), asker: Some(asker), .. }) =
            state.pending.get(inside)
        else {
            return;
        };
        let budget = call.deadline.map(|slot| slot.0);
        let until = budget.unwrap_or(call.received + call.policy.max_runtime);
        let asker = asker.clone();
        if self.detach(state, inside)
            && let Some(job) = state.pending.get(inside).and_then(Pending::job).cloned()
        {
            state.away.retain(|_, away| !away.job.is_done());
            state.away.insert(asker.key.clone(), Away { asker, job, until });
        }
    }

    /// The client resumes the stream of a request whose call went on as a job: it gets the answer
    /// that it waited for, result or handle, on that stream.
    pub fn came_back(self: &Arc<Self>, key: &Id, reply: Reply) {
        let mut state = self.state();
        let Some(Away { asker, job, until }) = state.away.remove(key) else { return };
        let asker = Asker { reply, ..asker };
        self.wait_again(state, asker, job, until);
    }

    /// Whether a modern client that left has cancelled. Two that leave at the same age of a call
    /// have a time-out: from then on the budget is below it.
    fn is_cancel(&self, state: &State, inside: &Id) -> bool {
        let Some(Pending { what: What::Call(call), .. }) = state.pending.get(inside) else {
            return true;
        };
        self.patience.left(&self.caller, &call.client, call.received.elapsed());
        call.policy.on_client_cancel != OnClientCancel::Detach
    }
}
