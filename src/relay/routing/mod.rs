//! Which way a message goes: those of the client, those of the server, and arrays of either.

mod batch;
mod from_client;
mod from_server;
mod questions;

pub(crate) use questions::Questions;
