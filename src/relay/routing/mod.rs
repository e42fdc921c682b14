//! Routing of messages: those of the client, those of the server, and arrays of either.

mod batch;
mod from_client;
mod from_server;
