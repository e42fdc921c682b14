//! An HTTP client that closed the stream of a request before its answer (contract §6).

use std::sync::Arc;

use tracing::{debug, warn};

use crate::config::OnClientCancel;
use crate::downstream::Reply;
use crate::jobs::record::Outcome;
use crate::relay::requester::Requester;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::rpc::id::Id;
use crate::rpc::message::Message;

use super::call::{Call, outcome_of};
use super::pending::{PendingRequest, RequestKind};
use super::under_way::{Disconnected, Standing, Undelivered};

impl Session {
    /// Nobody reads the answer to this request any more. `closing_cancels`: in the modern era that is
    /// the way to cancel; in the legacy era it says nothing of the work, which goes on.
    pub(crate) fn left(&self, key: &Id, closing_cancels: bool) {
        let mut state = self.state();
        match state.calls.find(key) {
            Standing::Waiting => {
                if let Some(wait) = state.calls.waits.remove(key) {
                    wait.task.abort();
                }
            }
            Standing::Pending(inside) => self.left_request(&mut state, &inside, closing_cancels),
            Standing::Undelivered => {
                if let Some(Undelivered { call, outcome }) = state.calls.undelivered.remove(key) {
                    self.keep_answer(&state, &call, outcome);
                }
            }
            Standing::Disconnected | Standing::Parted | Standing::Unknown => {
                state.lists.catalog.cancel(key);
            }
        }
        self.note_answered();
    }

    /// A long answer leaves bit by bit, and its client may go away meanwhile.
    pub(super) fn note_delivery(
        &self,
        state: &mut State,
        requester: &Requester,
        call: Call,
        message: &Message,
    ) {
        if call.job.is_none() && requester.reply.is_delivered_later(message.line.len()) {
            let undelivered = Undelivered { call, outcome: outcome_of(message) };
            state.calls.undelivered.insert(requester.key.clone(), undelivered);
        }
    }

    /// The client has taken all of the answer.
    pub(crate) fn took(&self, key: &Id) {
        let mut state = self.state();
        if !state.calls.undelivered.is_empty() {
            state.calls.undelivered.remove(key);
        }
    }

    /// An answer that could not be delivered becomes a finished job (§6).
    fn keep_answer(&self, state: &State, call: &Call, outcome: Outcome) {
        match self.registry.create(self.start_of(state, call)) {
            Ok(begun) => drop(self.registry.finish(&begun.job, outcome.copied())),
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
        let Some(PendingRequest {
            kind: RequestKind::Call(call), requester: Some(requester), ..
        }) = state.calls.pending.get(inside)
        else {
            return;
        };
        let budget = call.deadline.map(|slot| slot.0);
        let until = budget.unwrap_or(call.received + call.policy.max_runtime);
        let requester = requester.clone();
        if self.detach(state, inside)
            && let Some(job) = state.calls.pending.get(inside).and_then(PendingRequest::job)
        {
            let disconnected = Disconnected { job: job.clone(), until, requester };
            state.calls.disconnected.retain(|_, other| !other.job.is_done());
            let key = disconnected.requester.key.clone();
            state.calls.disconnected.insert(key, disconnected);
        }
    }

    /// The client resumes the stream of a request whose call went on as a job: it gets the answer
    /// that it waited for, result or handle, on that stream.
    pub(crate) fn came_back(self: &Arc<Self>, key: &Id, reply: Reply) {
        let mut state = self.state();
        let Some(Disconnected { requester, job, until }) = state.calls.disconnected.remove(key)
        else {
            return;
        };
        let requester = Requester { reply, ..requester };
        self.wait_again(state, requester, &job, until);
    }

    /// Whether a modern client that left has cancelled. Two that leave at the same age of a call
    /// have a time-out: from then on the budget is below it.
    fn is_cancel(&self, state: &State, inside: &Id) -> bool {
        let Some(call) = state.calls.pending.call(inside) else { return true };
        self.time_outs.left(&self.caller, &call.client, call.received.elapsed());
        call.policy.on_client_cancel != OnClientCancel::Detach
    }
}
