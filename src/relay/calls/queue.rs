//! Calls of tools with `max_concurrent`: they take a place or wait in line, and free the place at
//! their end.

use std::sync::{Arc, Weak};

use crate::relay::concurrency::QueuedCall;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::Call;
use crate::rpc::id::Id;

impl Session {
    /// Takes a place for the call (`true`), or puts it in line.
    pub(super) fn enter_queue(&self, call: &mut Call, id: &Id) -> bool {
        let most = call.policy.max_concurrent;
        if most == 0 {
            return true;
        }
        let place = call.place.get_or_insert_default().clone();
        let queued_call =
            QueuedCall { ready_calls: Arc::downgrade(&self.ready_calls), call: id.clone(), place };
        self.concurrency.enter(&call.tool, most, queued_call)
    }

    /// Takes a call out of the line. If its turn has come already, `send_in_turn` finds that it is
    /// over.
    pub(super) fn leave_queue(&self, call: &Call) {
        if let Some(place) = &call.place {
            self.concurrency.remove(&call.tool, place);
        }
    }

    /// Frees a place and sends the first call in line; one that can't be sent gets an error, and
    /// the next one goes.
    pub(super) fn release_place(&self, state: &mut State, tool: &Arc<str>) {
        let our_ready_calls = Arc::downgrade(&self.ready_calls);
        while let Some(QueuedCall { ready_calls, call, .. }) = self.concurrency.release(tool) {
            if Weak::ptr_eq(&ready_calls, &our_ready_calls) {
                if self.send_in_turn(state, &call) {
                    return;
                }
            } else if let Some(ready_calls) = ready_calls.upgrade() {
                // Its our_ready_calls task sends it: no session is locked while another is.
                return ready_calls.add(tool.clone(), call);
            }
        }
    }

    /// Sends the calls of this session whose turn came when another session freed a place.
    pub(in crate::relay) fn send_all_in_turn(&self) {
        while let Some((tool, call)) = self.ready_calls.take() {
            let mut state = self.state();
            if !self.send_in_turn(&mut state, &call) {
                self.release_place(&mut state, &tool);
            }
        }
    }

    /// Sends the call that was first in line. `false`: it was not sent, and the next one may go.
    fn send_in_turn(&self, state: &mut State, id: &Id) -> bool {
        let Some(call) = state.calls.pending.call(id) else { return false };
        let Some(message) = call.queued.clone() else { return false };
        if let Err(cause) = self.send_to_server(state, message) {
            self.fail_unsent(state, id, &cause);
            return false;
        }
        if let Some(call) = state.calls.pending.call_mut(id) {
            call.queued = None;
        }
        true
    }
}
