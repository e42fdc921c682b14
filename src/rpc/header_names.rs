//! The HTTP headers of MCP, on both sides.

use http::HeaderName;

/// The session of a legacy client.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Where a broken stream is resumed.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The revision, from 2025-06-18 on.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of a modern request.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What a modern request is about; see [`named_member`].
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The member of `params` that [`NAME`] repeats, for the methods that have one (protocol §6.3).
pub fn named_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}
