//! What was sent on a stream, for a client that comes back for what it missed.

use std::collections::VecDeque;

use bytes::Bytes;

/// Events that are kept of a stream.
pub(crate) const MOST_EVENTS: usize = 256;
/// Bytes that are kept of a stream.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The last events of a stream, by their numbers.
#[derive(Default)]
pub(crate) struct ReplayBuffer {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last_number: u64,
}

impl ReplayBuffer {
    /// Keeps an event; returns its number. The oldest goes where too much is kept.
    pub(crate) fn record(&mut self, message: &Bytes) -> u64 {
        self.last_number += 1;
        self.bytes += message.len();
        self.events.push_back((self.last_number, message.clone()));
        while self.events.len() > MOST_EVENTS || self.bytes > MOST_BYTES {
            let Some((_, oldest)) = self.events.pop_front() else { break };
            self.bytes -= oldest.len();
        }
        self.last_number
    }

    /// The events after this one.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = &(u64, Bytes)> {
        self.events.iter().filter(move |(event, _)| *event > number)
    }

    /// The number of the last event; 0 where there was none.
    pub(crate) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// How much is kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
