//! The words of MCP: what its revisions brought, its methods, error codes, `_meta` keys and HTTP
//! headers. Each stands here once.
//!
//! Nothing here knows of sessions or transports, and nothing decides what happens to a message.

pub mod compose;
pub mod error_code;
pub mod header;
pub mod meta;
pub mod method;
pub mod param_headers;
pub mod params;
pub mod revision;
