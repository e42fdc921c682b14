//! MCP itself: what its revisions brought, its methods, error codes, `_meta` keys and HTTP headers.
//! Each is defined here once.
//!
//! Nothing here knows of sessions or transports, and nothing decides what happens to a message.

pub(crate) mod compose;
pub(crate) mod error_code;
pub(crate) mod header;
pub(crate) mod meta;
pub(crate) mod method;
pub(crate) mod param_headers;
pub(crate) mod params;
pub(crate) mod revision;
