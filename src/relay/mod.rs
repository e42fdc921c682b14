//! What lies between a client and a server: which messages pass as they are, and which don't.
//!
//! [`session`] tells five kinds of messages apart; each kind has a file: [`call`] (`tools/call`),
//! [`own`] (calls of our tools), [`greeting`] (`initialize`, `server/discover`), [`catalog`]
//! (`tools/list`), [`cancel`] (`notifications/cancelled`). Everything else is forwarded.

pub mod batch;
pub mod call;
pub mod cancel;
pub mod catalog;
pub mod client;
pub mod deadlines;
pub mod greeting;
pub mod lists;
pub mod own;
pub mod patience;
pub mod pending;
pub mod revival;
pub mod session;
