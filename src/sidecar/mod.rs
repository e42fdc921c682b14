//! Many clients over HTTP: which session a request belongs to, and who may use it.
//!
//! [`endpoint`] answers one HTTP request; [`post`] is the one that carries messages (read by
//! [`request_body`]), told apart by era: [`legacy`] (sessions, 2025-03-26 to 2025-11-25) and [`modern`] (2026-07-28, one shared
//! session for each principal). [`principal`] says who is who, [`sessions`] keeps the sessions and
//! ends them.

pub mod answers;
pub mod endpoint;
pub mod legacy;
pub mod modern;
pub mod post;
pub mod principal;
pub mod request_body;
pub mod sessions;
