//! The `unhurry` program: parse, log to stderr, run a verb, exit with its code.
#![forbid(unsafe_code)]

fn main() {}
