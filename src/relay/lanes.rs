//! Tools with `max_concurrent`: some calls run, the others stand in line, first come first served
//! (CONTRACT §3).

use std::collections::VecDeque;
use std::sync::Arc;

use tracing::debug;

use crate::config::ToolPolicy;
use crate::rpc::message::Id;

use super::pending::{Pending, What};
use super::session::{Session, State};

/// The calls of a tool with `max_concurrent`.
#[derive(Default)]
pub struct Lane {
    running: usize,
    pub(super) waiting: VecDeque<Id>,
}

impl Session {
    /// `true`: the call may go; else it stands in line now.
    pub(super) fn enter_lane(
        &self,
        state: &mut State,
        tool: &Arc<str>,
        policy: &ToolPolicy,
        id: &Id,
    ) -> bool {
        if policy.max_concurrent == 0 {
            return true;
        }
        let lane = state.lanes.entry(tool.clone()).or_default();
        if lane.running < policy.max_concurrent && lane.waiting.is_empty() {
            lane.running += 1;
            return true;
        }
        lane.waiting.push_back(id.clone());
        debug!(tool = &**tool, place = lane.waiting.len(), "the call waits in line");
        false
    }

    /// A place is free: the first in line goes; those that can't be sent are told so.
    pub(super) fn leave_lane(&self, state: &mut State, tool: &Arc<str>) {
        let Some(lane) = state.lanes.get_mut(tool) else { return };
        lane.running -= 1;
        while let Some(next) = state.lanes.get_mut(tool).and_then(|l| l.waiting.pop_front()) {
            if self.leaves_line(state, tool, &next) {
                break;
            }
        }
        self.number_lane(state, tool);
        state.lanes.retain(|_, lane| lane.running > 0 || !lane.waiting.is_empty());
    }

    /// Sends the call that is first in line. `false`: it is over, and the next one may go.
    fn leaves_line(&self, state: &mut State, tool: &Arc<str>, id: &Id) -> bool {
        let Some(Pending { what: What::Call(call), .. }) = state.pending.get(id) else {
            return false;
        };
        let Some(message) = call.waiting.clone() else { return false };
        let headers = call.headers.clone();
        if let Err(cause) = self.to_server(state, &message, &headers) {
            // It counts as in line still, so that it frees no place that it never had.
            self.refuse(state, id, &cause);
            return false;
        }
        if let Some(Pending { what: What::Call(call), .. }) = state.pending.get_mut(id) {
            call.waiting = None;
            if let Some(job) = &call.job {
                job.set_place(0);
            }
        }
        if let Some(lane) = state.lanes.get_mut(tool) {
            lane.running += 1;
        }
        true
    }

    /// Tells the jobs in a line their places.
    pub(super) fn number_lane(&self, state: &mut State, tool: &Arc<str>) {
        let Some(lane) = state.lanes.get(tool) else { return };
        for (place, id) in lane.waiting.iter().enumerate() {
            if let Some(Pending { what: What::Call(call), .. }) = state.pending.get(id)
                && let Some(job) = &call.job
            {
                job.set_place(place + 1);
            }
        }
    }
}
