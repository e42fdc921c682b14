//! What lies between a client and a server: which messages pass as they are, and which don't.
//!
//! ```text
//!   routing      which way a message goes; most pass as they are
//!      │
//!   calls        the life of a `tools/call`, and jobs      lists       tools and other lists
//!   lifecycle    servers that begin, end, start anew
//!      │
//!   session      one client, one server, and every message between them
//!   clock        what is done when its time has come
//!      │
//!   state        all of a session that changes, under one lock
//!   client, requester, deadlines, time_outs      what it is made of
//! ```
//!
//! What is done stands in methods of [`Session`], each where it belongs by what it is about.

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
