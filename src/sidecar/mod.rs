//! Many clients over HTTP: which session a request belongs to, and who may use it.
//!
//! `endpoint` tells the pages apart and lets callers in or not; `post` is the request that carries
//! messages, told apart by era in `legacy` (sessions, 2025-03-26 to 2025-11-25) and `modern`
//! (2026-07-28, one shared session for each principal).

mod accept;
mod answers;
mod client_session;
mod endpoint;
mod handshake;
mod legacy;
mod legacy_stream;
mod modern;
mod outcome;
mod post;
mod principal;
mod request_body;
mod respond;
mod service;
mod session_of;
mod sessions;

pub(crate) use endpoint::PATH;
pub(crate) use principal::Principals;
pub(crate) use service::Sidecar;
pub(crate) use sessions::Sessions;
