//! Times at which something is due, in one ordered set with one sleeping task.
//!
//! A timer for each call would cost more than the rest of its path; most are never due.

use std::collections::BTreeMap;
use std::sync::Weak;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use uuid::Uuid;

use crate::downstream::Batch;
use crate::jobs::handle::seconds;
use crate::rpc::id::Id;

use super::pending::What;
use super::revival::Step;
use super::session::{Session, State};

/// Deadlines that are acted on before others get their turn.
const AT_A_TIME: usize = 32;

/// What may be due.
#[derive(Debug)]
pub enum Due {
    /// the budget of a call, or the longest time that it may run
    Call(Id),
    /// a list that the server has not answered
    List(Id),
    /// the end of this walk through the pages of the tools
    Walk(u64),
    /// what a batch has so far
    Batch(Weak<Batch>),
    /// an answer to the question of a job
    Input(Uuid),
    /// the answer to this `initialize`
    Handshake(Id),
}

/// A key of an entry, to take it out again.
pub type Slot = (Instant, u64);

/// Things that are due at a time.
#[derive(Debug)]
pub struct Deadlines<T> {
    due: BTreeMap<Slot, T>,
    serial: u64,
    /// what the sleeping task sleeps until
    alarm: Option<Instant>,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Deadlines { due: BTreeMap::new(), serial: 0, alarm: None }
    }
}

impl<T> Deadlines<T> {
    /// Adds an entry. `true`: the sleeping task must be woken, since it sleeps longer.
    #[must_use]
    pub fn add(&mut self, at: Instant, what: T) -> (Slot, bool) {
        self.serial += 1;
        let slot = (at, self.serial);
        self.due.insert(slot, what);
        let sooner = self.alarm.is_none_or(|alarm| at < alarm);
        if sooner {
            self.alarm = Some(at);
        }
        (slot, sooner)
    }

    pub fn remove(&mut self, slot: Slot) {
        self.due.remove(&slot);
    }

    /// Takes out the first that is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<T> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// The time to sleep until; from now on entries before it wake the task.
    pub fn set_alarm(&mut self) -> Option<Instant> {
        self.alarm = self.due.first_key_value().map(|(slot, _)| slot.0);
        self.alarm
    }
}

impl Session {
    /// Adds a deadline and wakes the task that waits for it if need be.
    pub(super) fn add_deadline(&self, state: &mut State, at: Instant, due: Due) -> Slot {
        let (slot, sooner) = state.deadlines.add(at, due);
        if sooner {
            self.sooner.notify_one();
        }
        slot
    }

    /// Acts on deadlines when their time comes; runs for ever.
    pub async fn keep_time(&self) {
        loop {
            self.take_turns();
            let next = self.act_on_due();
            match next {
                // Many handles at once must leave one by one, and nobody else waits for them all.
                Some(at) if at <= Instant::now() => yield_now().await,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.sooner.notified() => {}
                },
                None => self.sooner.notified().await,
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

    pub(super) fn due(&self, state: &mut State, due: Due) {
        match due {
            Due::Call(id) => self.call_due(state, &id),
            Due::Walk(walk) => self.walk_due(state, walk),
            Due::Batch(batch) => batch.upgrade().iter().for_each(|batch| batch.flush()),
            Due::Input(job) => self.input_due(state, &job),
            Due::List(id) => self.repeat_list(state, &id),
            Due::Handshake(id) => self.handshake_due(state, &id),
        }
    }

    pub(super) fn handshake_due(&self, state: &mut State, id: &Id) {
        let Some(pending) = state.pending.get(id) else { return };
        let cause = format!(
            "the server has not answered initialize for {} (upstream.start_timeout)",
            seconds(self.config.start_timeout)
        );
        match &pending.what {
            What::Initialize => self.fail_locked(state, &cause),
            What::Revival(Step::Initialize) => self.upstream.give_up(&cause),
            _ => {}
        }
    }
}
