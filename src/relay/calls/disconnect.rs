//! An HTTP client that closed the stream of a request before its answer (contract §6).

use std::sync::Arc;

use tracing::{debug, warn};

use crate::config::OnClientCancel;
use crate::downstream::Reply;
use crate::jobs::record::Outcome;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::{
    Call, Disconnected, PendingRequest, RequestKind, RequestState, Undelivered, outcome_of,
};
use crate::relay::state::requester::Requester;
use crate::rpc::id::Id;
use crate::rpc::message::Message;

impl Session {
    /// The client closed the stream of this request. `closing_cancels`: in the modern era that
    /// cancels the request; in the legacy era it does not, and the call goes on.
    pub(crate) fn client_disconnected(&self, key: &Id, closing_cancels: bool) {
        let mut state = self.state();
        match state.calls.state_of(key) {
            RequestState::Waiting => {
                if let Some(wait) = state.calls.waits.remove(key) {
                    wait.task.abort();
                }
            }
            RequestState::Pending(upstream_id) => {
                self.request_disconnected(&mut state, &upstream_id, closing_cancels)
            }
            RequestState::Undelivered => {
                if let Some(Undelivered { call, outcome }) = state.calls.undelivered.remove(key) {
                    self.store_undelivered(&state, &call, outcome);
                }
            }
            RequestState::Disconnected | RequestState::AnsweredByProxy | RequestState::Unknown => {
                state.lists.catalog.cancel(key);
            }
        }
        self.notify_request_over();
    }

    /// Remembers a long answer until it is delivered, since its client may close the stream before.
    pub(super) fn track_delivery(
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

    /// The whole answer to this request has been delivered.
    pub(crate) fn answer_delivered(&self, key: &Id) {
        let mut state = self.state();
        if !state.calls.undelivered.is_empty() {
            state.calls.undelivered.remove(key);
        }
    }

    /// An answer that could not be delivered becomes a finished job (§6).
    fn store_undelivered(&self, state: &State, call: &Call, outcome: Outcome) {
        match self.registry.create(self.new_job(state, call)) {
            Ok(created) => drop(self.registry.finish(&created.job, outcome.copied())),
            Err(full) => warn!("an answer that its client did not take is lost ({full})"),
        }
    }

    /// The client closed the stream of a request that the server has.
    fn request_disconnected(&self, state: &mut State, upstream_id: &Id, closing_cancels: bool) {
        debug!(id = upstream_id.to_json(), "the client left before the answer");
        let cancels = closing_cancels && self.disconnect_cancels(state, upstream_id);
        if cancels {
            return self.cancel_pending(state, upstream_id, "the client closed its stream");
        }
        // A request that is no call goes on; its answer is for a client that resumes the stream.
        let Some(PendingRequest {
            kind: RequestKind::Call(call), requester: Some(requester), ..
        }) = state.calls.pending.get(upstream_id)
        else {
            return;
        };
        let budget = call.deadline.map(|slot| slot.0);
        let until = budget.unwrap_or(call.received + call.policy.max_runtime);
        let requester = requester.clone();
        if self.detach(state, upstream_id)
            && let Some(job) = state.calls.pending.get(upstream_id).and_then(PendingRequest::job)
        {
            let disconnected = Disconnected { job: job.clone(), until, requester };
            state.calls.disconnected.retain(|_, other| !other.job.is_done());
            let key = disconnected.requester.key.clone();
            state.calls.disconnected.insert(key, disconnected);
        }
    }

    /// The client resumes the stream of a request whose call went on as a job: it gets the answer
    /// that it waited for, result or handle, on that stream.
    pub(crate) fn stream_resumed(self: &Arc<Self>, key: &Id, reply: Reply) {
        let mut state = self.state();
        let Some(Disconnected { requester, job, until }) = state.calls.disconnected.remove(key)
        else {
            return;
        };
        let requester = Requester { reply, ..requester };
        self.resume_wait(state, requester, &job, until);
    }

    /// Whether a modern client that closed its stream has cancelled. Where it does so twice at the
    /// same age of a call, that is its time-out, and from then on the budget is below it.
    fn disconnect_cancels(&self, state: &State, upstream_id: &Id) -> bool {
        let Some(call) = state.calls.pending.call(upstream_id) else { return true };
        self.time_outs.disconnected(&self.caller, &call.client, call.received.elapsed());
        call.policy.on_client_cancel != OnClientCancel::Detach
    }
}
