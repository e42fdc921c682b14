//! JSON-RPC as text: the envelope of a message, edits of its bytes, and the framing by lines.
//!
//! Nothing here knows of sessions or transports: a message is the bytes that came in, and
//! everything else borrows from them. Of jobs it knows the names of our members in `_meta`.

pub mod header_names;
pub mod heard;
pub mod lines;
pub mod message;
pub mod object;
pub mod outbox;
pub mod param_headers;
pub mod params;
pub mod splice;
pub mod sse;
