//! The sidecar, `unhurry serve`: clients over HTTP, of every era, in front of a server that is a child.
#![forbid(unsafe_code)]

mod http_batches;
mod http_drain;
mod http_giving_up;
mod http_guard;
mod http_health;
mod http_ids;
mod http_keepalive;
mod http_lives;
mod http_modern;
mod http_principals;
mod http_resumption;
mod http_sessions;
mod http_shared;
mod http_streams;
mod http_tokens;
mod transparency_http;
