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

    /// A place is free: the first in line goes.
    pub(super) fn leave_lane(&self, state: &mut State, tool: &Arc<str>) {
        let Some(lane) = state.lanes.get_mut(tool) else { return };
        lane.running -= 1;
        while let Some(next) = state.lanes.get_mut(tool).and_then(|l| l.waiting.pop_front()) {
            let Some(Pending { what: What::Call(call), .. }) = state.pending.get_mut(&next) else {
                continue;
            };
            let Some(message) = call.waiting.take() else { continue };
            if let Some(job) = &call.job {
                job.set_place(0);
            }
            if let Some(lane) = state.lanes.get_mut(tool) {
                lane.running += 1;
            }
            if let Err(cause) = self.to_server(state, &message) {
                // It frees its place, and with it goes on to the next in line.
                self.refuse(state, &next, &cause);
            }
            break;
        }
        self.number_lane(state, tool);
        state.lanes.retain(|_, lane| lane.running > 0 || !lane.waiting.is_empty());
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
