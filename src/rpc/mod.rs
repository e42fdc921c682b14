//! JSON-RPC as text: the envelope of a message, edits of its bytes, and the framing by lines.
//!
//! Nothing here knows of jobs, sessions or transports (DESIGN §2): a message is the bytes that
//! came in, and everything else borrows from them.

pub mod lines;
pub mod message;
pub mod object;
pub mod outbox;
pub mod params;
pub mod splice;
