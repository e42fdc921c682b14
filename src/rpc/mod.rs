//! JSON-RPC as text: the envelope of a message, edits of its bytes, and the framing by lines and
//! events.
//!
//! Nothing here knows of sessions or transports: a message is the bytes that came in, and
//! everything else borrows from them.

pub(crate) mod documents;
pub(crate) mod id;
pub(crate) mod line;
pub(crate) mod lines;
pub(crate) mod message;
pub(crate) mod message_buffer;
pub(crate) mod object;
pub(crate) mod outbox;
mod oversized;
pub(crate) mod parsed_line;
pub(crate) mod splice;
pub(crate) mod sse;
pub(crate) mod string;
pub(crate) mod truncated;
