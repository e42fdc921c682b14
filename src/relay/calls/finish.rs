//! The end of a call: its answer, or that there will be none.

use crate::jobs::handle::failure;
use crate::jobs::record::Outcome;
use crate::jobs::wording;
use crate::mcp::compose::result_line;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::{Call, RequestKind, outcome_of};
use crate::relay::state::requester::Requester;
use crate::rpc::id::Id;
use crate::rpc::message::Message;

impl Session {
    /// The server's answer goes to the client that waits, or into the job.
    pub(in crate::relay) fn call_answered(
        &self,
        state: &mut State,
        call: Call,
        mut requester: Option<Requester>,
        message: &Message,
    ) {
        if self.is_header_mismatch(&call, message)
            && let Some(requester) = requester.take_if(|requester| !requester.headers_refused)
        {
            self.release_call(state, &call);
            return self.retry_with_new_headers(state, &call, requester);
        }
        if message.envelope.result.is_some() {
            self.registry.past_runs.record(&call.tool, call.received.elapsed());
        }
        if let Some(job) = call.job.clone() {
            let outcome = outcome_of(message).copied();
            if let Outcome::Result(question) = &outcome
                && call.asks_for_input(message.envelope.result)
            {
                self.release_call(state, &call);
                return self.park(state, call, &job, question.clone());
            }
            self.registry.finish(&job, outcome);
        }
        self.release_call(state, &call);
        self.forward_answer(requester.as_ref(), message);
        if let Some(requester) = requester {
            self.track_delivery(state, &requester, call, message);
        }
    }

    /// No answer will come. `reached`: the server may have created with the call (§7).
    pub(in crate::relay) fn call_lost(
        &self,
        state: &mut State,
        call: Call,
        requester: Option<Requester>,
        cause: &str,
        reached: bool,
    ) {
        let text = match reached {
            true => wording::outcome_unknown(cause),
            false => wording::not_started(&call.tool, cause),
        };
        if let Some(requester) = requester {
            let mark = match reached {
                true => wording::repeatable(state.lists.catalog.repeatable(&call.tool)),
                false => wording::MAY_BE_REPEATED,
            };
            let result = failure(call.client.is_modern(), &format!("{text} {mark}"));
            self.answer(&requester, &result_line(&requester.id, &result));
        }
        if let Some(job) = &call.job {
            match reached {
                true => self.registry.finish(job, Outcome::Lost(text.into())),
                false => self.registry.never_began(job, text),
            };
        }
        self.release_call(state, &call);
    }

    /// Cancels a request at the server.
    pub(super) fn cancel_pending(&self, state: &mut State, id: &Id, reason: &str) {
        let Some(pending) = state.calls.pending.withdraw(id) else { return };
        let mut headers = pending.requester.and_then(|requester| requester.headers);
        if let RequestKind::Call(call) = pending.kind {
            headers = call.headers.clone();
            let was_queued = call.is_queued();
            self.release_cancelled(state, &call);
            if was_queued {
                return;
            }
        }
        self.send_cancelled(id, reason, headers);
    }

    /// Takes a cancelled call out of the line, or frees its place and its deadline.
    pub(super) fn release_cancelled(&self, state: &mut State, call: &Call) {
        if call.is_queued() {
            if let Some(slot) = call.deadline {
                state.deadlines.remove(slot);
            }
            self.leave_queue(call);
            self.notify_request_over();
        } else {
            self.release_call(state, call);
        }
    }

    /// Frees the place and the deadline of a call that is over.
    fn release_call(&self, state: &mut State, call: &Call) {
        self.notify_request_over();
        if let Some(slot) = call.deadline {
            state.deadlines.remove(slot);
        }
        if !call.is_queued() && call.policy.max_concurrent > 0 {
            self.release_place(state, &call.tool);
        }
    }
}
