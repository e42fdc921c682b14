//! The client's side: where messages come from, and where answers go.
//!
//! A transport implements [`reply::Responder`], and [`Channel`] once for each kind of client that it has.

mod batch;
mod channel;
pub(crate) mod http;
mod reply;
mod stdio;

pub(crate) use batch::Batch;
pub(crate) use channel::{Channel, ParamHeaders};
pub(crate) use reply::{Answer, Reply};
pub(crate) use stdio::{StdioClient, stdin, stdout};
