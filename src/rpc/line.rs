//! One message as it was received: a line, or the data of an event.

use bytes::Bytes;

/// One line without its line end.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// a whole line
    Whole(Bytes),
    /// a line above the limit, thrown away but for its two ends
    TooLong { head: Bytes, tail: Bytes, length: u64 },
}
