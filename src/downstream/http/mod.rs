//! Streamable HTTP towards clients: the parts of a response, and who may ask.
//!
//! [`exchange`] is a request and its answer, [`event_stream`] the body of an answer as SSE,
//! [`streams`] all ways to one legacy client, [`body`] what hyper writes, [`guard`] the checks before
//! anything else, [`listener`] the connections.

pub mod body;
pub mod event_stream;
pub mod exchange;
pub mod guard;

pub mod listener;
pub mod no_channel;
pub mod streams;
