//! The revisions of MCP, and what each of them brought (protocol §1.1).
//!
//! Revisions are dates, so the order of their text is their order in time.

/// The revisions of the legacy era: a session begins with `initialize`.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The newest revision of the legacy era.
pub(crate) const NEWEST_LEGACY: &str = LEGACY[3];
/// The first revision of the modern era: no handshake, every request says who sends it.
pub(crate) const MODERN: &str = "2026-07-28";

/// The one revision in which arrays of messages are legal.
const BATCHES: &str = "2025-03-26";
/// The first revision whose results have `structuredContent`.
const STRUCTURED_CONTENT: &str = "2025-06-18";
/// The first revision in which HTTP clients repeat the agreed revision in a header.
const VERSION_HEADER: &str = "2025-06-18";

/// Whether a revision is of the modern era.
pub(crate) fn is_modern(revision: &str) -> bool {
    revision >= MODERN
}

/// Whether arrays of messages are legal.
pub(crate) fn has_batches(revision: &str) -> bool {
    revision == BATCHES
}

/// Whether results have `structuredContent`.
pub(crate) fn has_structured_content(revision: &str) -> bool {
    revision >= STRUCTURED_CONTENT
}

/// Whether HTTP clients send `MCP-Protocol-Version` after the handshake. `revision`: a header's
/// value.
pub(crate) fn has_version_header(revision: &[u8]) -> bool {
    revision >= VERSION_HEADER.as_bytes()
}
