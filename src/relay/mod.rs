//! What lies between a client and a server: which messages pass as they are, and which don't.
//!
//! [`session`] holds it all; [`from_client`] and [`from_server`] tell messages apart, and those that
//! are looked into have a file each: [`call`] (`tools/call`, with [`lanes`] for those that wait their
//! turn, [`detach`] for those that become jobs, [`mirrored`] for arguments that are headers too),
//! [`own`] (calls of our tools), [`greeting`] (`initialize`, `server/discover`), [`listing`] (lists,
//! with the [`catalog`] of tools), [`cancel`] (`notifications/cancelled`), [`batch`], [`questions`]
//! (requests of the server), [`input`] (calls in the background that need an answer).
//! Everything else is forwarded. [`ending`] and [`revival`] are about servers that come and go,
//! [`departure`] about HTTP clients that do.

pub mod batch;
pub mod call;
pub mod cancel;
pub mod catalog;
pub mod client;
pub mod deadlines;
pub mod departure;
pub mod detach;
pub mod ending;
pub mod from_client;
pub mod from_server;
pub mod greeting;
pub mod input;
pub mod lanes;
pub mod listing;
pub mod lists;
pub mod mirrored;
pub mod own;
pub mod patience;
pub mod pending;
pub mod questions;
pub mod revival;
pub mod session;
