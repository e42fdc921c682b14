//! A message that comes in pieces, such as the body of an HTTP request (contract §9).

use bytes::{Bytes, BytesMut};

use super::line::Line;
use super::lines::BOM;
use super::oversized::Oversized;

/// Puts one message together that comes in pieces, with a bound on memory.
pub(crate) struct MessageBuffer {
    limit: usize,
    /// how long the message says that it is; 0 where it does not
    expected: usize,
    /// the one piece that is the whole message, as long as no other follows
    first: Bytes,
    /// the pieces so far, where there are several
    more: BytesMut,
    oversized: Option<Oversized>,
}

impl MessageBuffer {
    /// `limit`: the longest message in bytes (`max_message`). `expected`: how long the message says
    /// that it is, 0 where it does not.
    pub(crate) fn new(limit: usize, expected: u64) -> Self {
        let expected = usize::try_from(expected).map_or(limit, |expected| expected.min(limit));
        MessageBuffer {
            limit,
            expected,
            first: Bytes::new(),
            more: BytesMut::new(),
            oversized: None,
        }
    }

    /// How many bytes have come.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    /// Takes out what has come, if `begins` accepts it.
    pub(crate) fn take_if(&mut self, begins: impl Fn(&[u8]) -> bool) -> Option<Bytes> {
        let read = if self.more.is_empty() { &self.first[..] } else { &self.more[..] };
        let text = read.strip_prefix(BOM).unwrap_or(read);
        if self.oversized.is_some() || !begins(text) {
            return None;
        }
        let mark = read.len() - text.len();
        let first = std::mem::take(&mut self.first);
        let read = if self.more.is_empty() { first } else { self.more.split().freeze() };
        Some(read.slice(mark..))
    }

    /// Adds a piece. A message of one piece is not copied; of several, each is copied at once, so
    /// that the buffer which it is a slice of can be used again.
    pub(crate) fn add(&mut self, piece: Bytes) {
        let is_first = self.first.is_empty() && self.more.is_empty();
        if let Some(oversized) = &mut self.oversized {
            oversized.add(&piece);
        } else if is_first && (self.expected..=self.limit).contains(&piece.len()) {
            self.first = piece;
        } else {
            if self.more.is_empty() {
                // Reserved memory costs nothing before it is written to.
                self.more.reserve(self.expected.max(self.first.len() + piece.len()));
                self.more.extend_from_slice(&self.first);
            }
            self.more.extend_from_slice(&piece);
            if self.more.len() > self.limit {
                self.oversized = Some(Oversized::begin(std::mem::take(&mut self.more).freeze()));
            }
        }
    }

    /// The message; `None` where there is nothing but white space.
    pub(crate) fn finish(self) -> Option<Line> {
        if let Some(oversized) = self.oversized {
            return Some(oversized.finish(&[]));
        }
        let whole = if self.more.is_empty() { self.first } else { self.more.freeze() };
        let whole = whole.strip_prefix(BOM).map_or(whole.clone(), |rest| whole.slice_ref(rest));
        let line = whole.slice_ref(whole.trim_ascii());
        (!line.is_empty()).then_some(Line::Whole(line))
    }
}
