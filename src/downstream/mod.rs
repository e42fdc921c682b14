//! The client's side: where messages come from, and where answers go.
//!
//! A transport implements [`reply::Responder`], and [`Channel`] once for each kind of client that it has.

mod batch;
mod channel;
pub mod http;
mod reply;
mod stdio;

pub use batch::Batch;
pub use channel::{Channel, ParamHeaders};
pub use reply::{Answer, Reply};
pub use stdio::{StdioClient, stdin, stdout};
