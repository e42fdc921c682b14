//! The session that a legacy server keeps for us.

use http::{HeaderMap, HeaderValue};

use crate::mcp::header::{PROTOCOL_VERSION, SESSION_ID};
use crate::mcp::revision::has_version_header;

/// What a legacy server is told with every message after `initialize`.
#[derive(Clone, Default)]
pub(crate) struct ServerSession {
    /// `None`: the server works without sessions
    pub id: Option<HeaderValue>,
    /// the revision, as agreed on
    pub version: Option<HeaderValue>,
    /// sessions before it in this life
    pub generation: u64,
}

impl ServerSession {
    /// Adds its headers to those of a request.
    pub(crate) fn put_into(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.id {
            headers.insert(SESSION_ID, id.clone());
        }
        let version = self.version.as_ref();
        if let Some(version) = version.filter(|version| has_version_header(version.as_bytes())) {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
    }
}
