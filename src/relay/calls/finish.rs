//! The end of a call: its answer, or that there will be none.

use crate::jobs::handle::failure;
use crate::jobs::record::Outcome;
use crate::jobs::wording;
use crate::mcp::compose::result_line;
use crate::relay::requester::Requester;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::rpc::id::Id;
use crate::rpc::message::Message;

use super::call::{Call, outcome_of};
use super::pending::RequestKind;

impl Session {
    /// The server's answer: to the client that waits, or into the job.
    pub(in crate::relay) fn call_answered(
        &self,
        state: &mut State,
        call: Call,
        mut requester: Option<Requester>,
        message: &Message,
    ) {
        if self.missed_headers(&call, message)
            && let Some(requester) = requester.take_if(|requester| !requester.refused)
        {
            self.call_closed(state, &call);
            return self.call_again(state, &call, requester);
        }
        if message.envelope.result.is_some() {
            self.registry.past_runs.record(&call.tool, call.received.elapsed());
        }
        if let Some(job) = call.job.clone() {
            let outcome = outcome_of(message).copied();
            if let Outcome::Result(question) = &outcome
                && call.asks_for_input(message.envelope.result)
            {
                self.call_closed(state, &call);
                return self.park(state, call, &job, question.clone());
            }
            self.registry.finish(&job, outcome);
        }
        self.call_closed(state, &call);
        self.pass_answer(requester.as_ref(), message);
        if let Some(requester) = requester {
            self.note_delivery(state, &requester, call, message);
        }
    }

    /// No answer will come. `reached`: the server may have begun with it (§7).
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
        self.call_closed(state, &call);
    }

    /// Takes a request back from the server, which may answer it all the same: its id stays taken
    /// for a while.
    pub(super) fn take_back(&self, state: &mut State, id: &Id, reason: &str) {
        let Some(pending) = state.calls.pending.withdraw(id) else { return };
        let mut headers = pending.requester.and_then(|requester| requester.headers);
        if let RequestKind::Call(call) = pending.kind {
            headers = call.headers.clone();
            let in_line = call.is_in_line();
            self.call_over(state, &call);
            if in_line {
                return;
            }
        }
        self.cancel_upstream(id, reason, headers);
    }

    /// A call that was taken back: it leaves the line or frees its place.
    pub(super) fn call_over(&self, state: &mut State, call: &Call) {
        if call.is_in_line() {
            if let Some(slot) = call.deadline {
                state.deadlines.remove(slot);
            }
            self.quit_line(call);
            self.note_answered();
        } else {
            self.call_closed(state, call);
        }
    }

    /// What every call that has left the server leaves behind.
    fn call_closed(&self, state: &mut State, call: &Call) {
        self.note_answered();
        if let Some(slot) = call.deadline {
            state.deadlines.remove(slot);
        }
        if !call.is_in_line() && call.policy.max_concurrent > 0 {
            self.leave_place(state, &call.tool);
        }
    }
}
