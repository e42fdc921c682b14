//! The client's side: where messages come from, and where answers go.

pub mod reply;
pub mod stdio;
