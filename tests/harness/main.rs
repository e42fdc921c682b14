//! The fake server and the clients in `support`, without unhurry: the other tests rely on them.
#![forbid(unsafe_code)]

mod fake_server;
mod fake_server_http;
