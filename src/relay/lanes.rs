//! Tools with `max_concurrent`: some calls run, the others stand in line, first come first served
//! (contract §3). The limit is the server's: sessions that share one stand in one line.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tracing::debug;

use crate::rpc::id::Id;

use super::call::Call;
use super::pending::{Pending, What};
use super::session::{Session, State};

/// The lines of one server, by tool.
#[derive(Default)]
pub struct Lanes(Mutex<HashMap<Arc<str>, Lane>>);

#[derive(Default)]
struct Lane {
    running: usize,
    waiting: VecDeque<Ticket>,
}

/// A call in line.
struct Ticket {
    session: Weak<Session>,
    call: Id,
    place: Place,
}

/// A call's place in its line, from 1; 0 where the server has it (§4.2).
pub type Place = Arc<AtomicUsize>;

impl Lanes {
    fn lanes(&self) -> MutexGuard<'_, HashMap<Arc<str>, Lane>> {
        self.0.lock().expect("no panic while the lines are held")
    }

    /// Takes one of `most` places, or the last one in line; whether the call may go.
    fn enter(&self, tool: &Arc<str>, most: usize, ticket: Ticket) -> bool {
        let mut lanes = self.lanes();
        let lane = lanes.entry(tool.clone()).or_default();
        if lane.running < most && lane.waiting.is_empty() {
            lane.running += 1;
            return true;
        }
        lane.waiting.push_back(ticket);
        lane.number();
        debug!(tool = &**tool, place = lane.waiting.len(), "the call waits in line");
        false
    }

    /// A call has left the server; the first in line gets its place, and is returned.
    fn leave(&self, tool: &Arc<str>) -> Option<Ticket> {
        let mut lanes = self.lanes();
        let lane = lanes.get_mut(tool)?;
        let next = lane.waiting.pop_front();
        match &next {
            Some(ticket) => ticket.place.store(0, Ordering::Relaxed),
            None => lane.running -= 1,
        }
        lane.number();
        if lane.running == 0 {
            lanes.remove(tool);
        }
        next
    }

    /// A call leaves the line without having run.
    fn quit(&self, tool: &Arc<str>, place: &Place) {
        if let Some(lane) = self.lanes().get_mut(tool) {
            lane.waiting.retain(|ticket| !Arc::ptr_eq(&ticket.place, place));
            lane.number();
        }
    }
}

impl Lane {
    fn number(&self) {
        for (place, ticket) in self.waiting.iter().enumerate() {
            ticket.place.store(place + 1, Ordering::Relaxed);
        }
    }
}

impl Session {
    /// `true`: the call may go; else it stands in line now.
    pub(super) fn enter_lane(&self, call: &mut Call, id: &Id) -> bool {
        let most = call.policy.max_concurrent;
        if most == 0 {
            return true;
        }
        let place = call.place.get_or_insert_default().clone();
        let ticket = Ticket { session: self.me.clone(), call: id.clone(), place };
        self.lanes.enter(&call.tool, most, ticket)
    }

    /// A call that stands in line is over. Where its turn has come meanwhile, that is found out
    /// when it is taken.
    pub(super) fn quit_lane(&self, call: &Call) {
        if let Some(place) = &call.place {
            self.lanes.quit(&call.tool, place);
        }
    }

    /// A place is free: the first in line goes; those that can't be sent are told so.
    pub(super) fn leave_lane(&self, state: &mut State, tool: &Arc<str>) {
        while let Some(Ticket { session, call, .. }) = self.lanes.leave(tool) {
            if Weak::ptr_eq(&session, &self.me) {
                if self.take_turn(state, &call) {
                    return;
                }
            } else if let Some(session) = session.upgrade() {
                // Its own task sends it: no session is locked while another is.
                session.turns().push_back((tool.clone(), call));
                session.sooner.notify_one();
                return;
            }
        }
    }

    fn turns(&self) -> MutexGuard<'_, VecDeque<(Arc<str>, Id)>> {
        self.turns.lock().expect("no panic while the turns are held")
    }

    /// Sends calls whose turn has come in a line that is shared.
    pub(super) fn take_turns(&self) {
        loop {
            let next = self.turns().pop_front();
            let Some((tool, call)) = next else { return };
            let mut state = self.state();
            if !self.take_turn(&mut state, &call) {
                self.leave_lane(&mut state, &tool);
            }
        }
    }

    /// Sends the call that was first in line. `false`: it is over, and the next one may go.
    fn take_turn(&self, state: &mut State, id: &Id) -> bool {
        let Some(Pending { what: What::Call(call), .. }) = state.pending.get(id) else {
            return false;
        };
        let Some(message) = call.waiting.clone() else { return false };
        if let Err(cause) = self.to_server(state, message) {
            self.refuse(state, id, &cause);
            return false;
        }
        if let Some(Pending { what: What::Call(call), .. }) = state.pending.get_mut(id) {
            call.waiting = None;
        }
        true
    }
}
