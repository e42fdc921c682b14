//! A message above `max_message`, of which only the two ends are kept (contract §9).

use bytes::{Bytes, BytesMut};

use super::line::Line;

/// How much of each end of an overlong line is kept, so that its id can still be found.
const KEPT: usize = 4 << 10;

/// A message above the limit, of which only the two ends are kept.
pub(super) struct Oversized {
    head: Bytes,
    tail: BytesMut,
    length: u64,
}

impl Oversized {
    /// The part of the message that has come.
    pub(super) fn begin(line: Bytes) -> Self {
        let head = Bytes::copy_from_slice(&line[..KEPT.min(line.len())]);
        let mut oversized = Oversized { head, tail: BytesMut::new(), length: 0 };
        oversized.add(&line);
        oversized
    }

    /// Adds what comes next.
    pub(super) fn add(&mut self, more: &[u8]) {
        self.length += more.len() as u64;
        self.tail.extend_from_slice(&more[more.len().saturating_sub(KEPT)..]);
        if self.tail.len() > KEPT {
            let _ = self.tail.split_to(self.tail.len() - KEPT);
        }
    }

    /// Adds the rest of the message, and ends it.
    pub(super) fn finish(mut self, rest: &[u8]) -> Line {
        self.add(rest);
        Line::TooLong { head: self.head, tail: self.tail.freeze(), length: self.length }
    }
}
