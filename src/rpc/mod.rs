//! JSON-RPC as text: the envelope of a message, edits of its bytes, and the framing by lines.
//!
//! Nothing here knows of sessions or transports: a message is the bytes that came in, and
//! everything else borrows from them.

pub mod id;
pub mod lines;
pub mod message;
pub mod object;
pub mod outbox;
pub mod parsed_line;
pub mod splice;
pub mod sse;
pub mod string;
pub mod truncated;
