//! Long bodies leave in parts, so that it is known how much of one a client has taken.

use bytes::Bytes;

/// The size of a part.
const PART: usize = 256 << 10;

/// Takes the next part of a body.
pub(crate) fn take_part(bytes: &mut Bytes) -> Bytes {
    bytes.split_to(bytes.len().min(PART))
}

/// Whether a body of this length leaves in several parts.
pub(crate) fn is_in_parts(length: usize) -> bool {
    length > PART
}
