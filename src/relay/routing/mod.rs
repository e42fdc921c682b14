//! Routing of messages: those of the client, those of the server, and arrays of either.

mod batch;
mod from_client;
mod from_server;
mod server_requests;

pub(crate) use server_requests::ServerRequests;
