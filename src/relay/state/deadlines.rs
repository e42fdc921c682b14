//! Times at which something is due, in one ordered set with one sleeping task.
//!
//! A timer for each call would cost more than the rest of its path; most are never due.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// The key of an entry, by which it is removed.
pub(crate) type Slot = (Instant, u64);

/// Things that are due at a time.
#[derive(Debug)]
pub(crate) struct Deadlines<T> {
    due: BTreeMap<Slot, T>,
    serial: u64,
    /// when the sleeping task wakes up
    alarm: Option<Instant>,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Deadlines { due: BTreeMap::new(), serial: 0, alarm: None }
    }
}

impl<T> Deadlines<T> {
    /// Adds an entry. `true`: the sleeping task must be woken, since it would wake up later.
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

    /// Removes an entry.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.due.remove(&slot);
    }

    /// Takes out the first entry that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// The time of the first entry, until which the task sleeps; an entry before it wakes the task.
    pub(crate) fn set_alarm(&mut self) -> Option<Instant> {
        self.alarm = self.due.first_key_value().map(|(slot, _)| slot.0);
        self.alarm
    }
}
