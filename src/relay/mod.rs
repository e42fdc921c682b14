//! The relay between a client and a server: which messages pass as they are, and what is done with
//! the others.
//!
//! ```text
//!   routing      which way a message goes; most pass as they are
//!      │
//!   calls        the life of a `tools/call`, and jobs      lists       tools and other lists
//!   lifecycle    servers that begin, end, start anew
//!      │
//!   session      one client, one server, and every message between them
//!   clock        the task that acts on deadlines
//!      │
//!   state        all of a session that changes, under one lock
//!   client, requester, deadlines, time_outs      what it is made of
//! ```
//!
//! All of these add methods to [`Session`], each those of its own subject.

mod calls;
mod client;
mod clock;
mod deadlines;
mod lifecycle;
mod lists;
mod requester;
mod routing;
mod session;
mod state;
mod time_outs;

pub(crate) use requester::Requester;
pub(crate) use session::{Session, Shared};
