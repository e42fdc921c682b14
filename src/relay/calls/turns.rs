//! Calls of tools with `max_concurrent`: they take a place, wait for their turn, and leave.

use std::sync::{Arc, Weak};

use crate::relay::session::Session;
use crate::relay::state::State;
use crate::rpc::id::Id;

use super::call::Call;
use super::concurrency::Ticket;

impl Session {
    /// `true`: the call may go; else it stands in line now.
    pub(super) fn take_place(&self, call: &mut Call, id: &Id) -> bool {
        let most = call.policy.max_concurrent;
        if most == 0 {
            return true;
        }
        let place = call.place.get_or_insert_default().clone();
        let ticket = Ticket { turns: Arc::downgrade(&self.turns), call: id.clone(), place };
        self.concurrency.enter(&call.tool, most, ticket)
    }

    /// A call that stands in line is over. Where its turn has come meanwhile, that is found out
    /// when it is to be sent.
    pub(super) fn quit_line(&self, call: &Call) {
        if let Some(place) = &call.place {
            self.concurrency.quit(&call.tool, place);
        }
    }

    /// A place is free: the first in line goes; those that can't be sent are told so.
    pub(super) fn leave_place(&self, state: &mut State, tool: &Arc<str>) {
        let own = Arc::downgrade(&self.turns);
        while let Some(Ticket { turns, call, .. }) = self.concurrency.leave(tool) {
            if Weak::ptr_eq(&turns, &own) {
                if self.send_in_turn(state, &call) {
                    return;
                }
            } else if let Some(turns) = turns.upgrade() {
                // Its own task sends it: no session is locked while another is.
                return turns.add(tool.clone(), call);
            }
        }
    }

    /// Sends calls whose turn has come in a line that sessions share.
    pub(in crate::relay) fn send_all_in_turn(&self) {
        while let Some((tool, call)) = self.turns.take() {
            let mut state = self.state();
            if !self.send_in_turn(&mut state, &call) {
                self.leave_place(&mut state, &tool);
            }
        }
    }

    /// Sends the call that was first in line. `false`: it is over, and the next one may go.
    fn send_in_turn(&self, state: &mut State, id: &Id) -> bool {
        let Some(call) = state.calls.pending.call(id) else { return false };
        let Some(message) = call.waiting.clone() else { return false };
        if let Err(cause) = self.to_server(state, message) {
            self.refuse(state, id, &cause);
            return false;
        }
        if let Some(call) = state.calls.pending.call_mut(id) {
            call.waiting = None;
        }
        true
    }
}
