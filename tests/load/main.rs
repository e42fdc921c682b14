//! Much at once: ten thousand calls, ten thousand connections, floods. Cargo runs one target after the
//! other, so these tests disturb none of the others; those that keep the whole machine busy take turns.
#![forbid(unsafe_code)]

mod http_limits;
mod load;
