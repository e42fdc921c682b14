//! Tests that take the whole machine: ten thousand calls or connections at once, floods, bounds of
//! memory. Cargo runs one target after the other, so they disturb none of the others.
#![forbid(unsafe_code)]

mod http_limits;
mod load;
