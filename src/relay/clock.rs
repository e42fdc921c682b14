//! The task that acts on the deadlines of a session.

use crate::relay::state::deadlines::Slot;
use crate::relay::state::{Due, State};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::session::Session;

/// How many deadlines are acted on under one lock.
const AT_A_TIME: usize = 32;

impl Session {
    /// Adds a deadline and wakes the task that waits for it if need be.
    pub(super) fn add_deadline(&self, state: &mut State, at: Instant, due: Due) -> Slot {
        let (slot, is_earliest) = state.deadlines.add(at, due);
        if is_earliest {
            self.earlier_deadline.notify_one();
        }
        slot
    }

    /// Acts on deadlines when they are reached; runs for ever.
    pub(crate) async fn run_deadlines(&self) {
        loop {
            self.send_all_in_turn();
            let next = self.act_on_due();
            match next {
                // Where many calls are due at once, other tasks get their turn in between.
                Some(at) if at <= Instant::now() => yield_now().await,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.earlier_deadline.notified() => {}
                    () = self.ready_calls.added() => {}
                },
                None => tokio::select! {
                    () = self.earlier_deadline.notified() => {}
                    () = self.ready_calls.added() => {}
                },
            }
        }
    }

    /// Acts on some of what is due; returns the time of the next deadline.
    fn act_on_due(&self) -> Option<Instant> {
        let mut state = self.state();
        let now = Instant::now();
        for _ in 0..AT_A_TIME {
            let Some(due) = state.deadlines.pop_due(now) else { break };
            self.due(&mut state, due);
        }
        state.deadlines.set_alarm()
    }

    fn due(&self, state: &mut State, due: Due) {
        match due {
            Due::Call(id) => self.call_due(state, &id),
            Due::Reading(number) => self.reading_due(state, number),
            Due::Batch(batch) => batch.upgrade().iter().for_each(|batch| batch.flush()),
            Due::Input(job) => self.input_due(state, &job),
            Due::List(id) => self.repeat_list(state, &id),
            Due::Handshake(id) => self.handshake_due(state, &id),
        }
    }
}
