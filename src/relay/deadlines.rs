//! Times at which something is due, in one ordered set with one sleeping task.
//!
//! A timer for each call would cost more than the rest of its path; most are never due.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// A key of an entry, to take it out again.
pub(crate) type Slot = (Instant, u64);

/// Things that are due at a time.
#[derive(Debug)]
pub(crate) struct Deadlines<T> {
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
    pub(crate) fn add(&mut self, at: Instant, what: T) -> (Slot, bool) {
        self.serial += 1;
        let slot = (at, self.serial);
        self.due.insert(slot, what);
        let is_earliest = self.alarm.is_none_or(|alarm| at < alarm);
        if is_earliest {
            self.alarm = Some(at);
        }
        (slot, is_earliest)
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        self.due.remove(&slot);
    }

    /// Takes out the first that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// The time to sleep until; from now on entries before it wake the task.
    pub(crate) fn set_alarm(&mut self) -> Option<Instant> {
        self.alarm = self.due.first_key_value().map(|(slot, _)| slot.0);
        self.alarm
    }
}
