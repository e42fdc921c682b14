//! The relay between a client and a server: which messages pass as they are, and what is done with
//! the others.
//!
//! ```text
//!   routing        which way a message goes; most pass as they are
//!   lifecycle      servers that begin, end, start anew
//!   lists          tools and other lists
//!   calls          the life of a `tools/call`, and jobs
//!   clock          the task that acts on deadlines
//!      │
//!   session        one client, one server, and every message between them
//!      │
//!   state          all of a session that changes, under one lock
//!   concurrency, time_outs      what sessions share
//! ```
//!
//! Those above `session` add methods to [`Session`], each those of its own subject.

mod calls;
mod clock;
mod concurrency;
mod lifecycle;
mod lists;
mod routing;
mod session;
mod state;
mod time_outs;

pub(crate) use session::{Session, Shared};
pub(crate) use state::requester::Requester;
