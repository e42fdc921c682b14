//! The HTTP headers of MCP, on both sides.

use http::HeaderName;

/// The session of a legacy client.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The id of the event after which a broken stream is resumed.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The revision in force, from 2025-06-18 on.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of a modern request.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What a modern request is about; see [`super::method::Method::named_member`].
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The prefix of the headers that repeat arguments of a tool.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";
