//! The client's side: where messages come from, and where answers go.

pub mod batch;
pub mod channel;
pub mod http;
pub mod reply;
pub mod stdio;
