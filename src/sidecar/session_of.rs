//! Which legacy session a request names, and whether it is its sender's.

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};

use crate::downstream::http::Body;
use crate::mcp::error_code::{NO_SESSION, REFUSED};
use crate::mcp::header::{PROTOCOL_VERSION, SESSION_ID};
use crate::mcp::revision;

use super::answers::error;
use super::client_session::LegacySession;
use super::service::Sidecar;

/// Why a request belongs to no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownSession {
    /// it names none
    #[error("Mcp-Session-Id is missing: begin with initialize")]
    Unnamed,
    /// it names a revision that has no sessions
    #[error("MCP-Protocol-Version must be one of {}", revision::LEGACY.join(", "))]
    BadVersion,
    /// its sender has no session of this id
    #[error("no such session: begin a new one with initialize")]
    NotFound,
}

impl UnknownSession {
    /// The response that says so.
    pub(crate) fn response(&self) -> Response<Body> {
        let (status, code) = match self {
            UnknownSession::Unnamed | UnknownSession::BadVersion => {
                (StatusCode::BAD_REQUEST, REFUSED)
            }
            UnknownSession::NotFound => (StatusCode::NOT_FOUND, NO_SESSION),
        };
        error(status, None, code, &self.to_string())
    }
}

impl Sidecar {
    /// The caller's session that the headers name.
    pub(super) fn session_of(
        &self,
        headers: &HeaderMap,
    ) -> Result<Arc<LegacySession>, UnknownSession> {
        let Some(id) = headers.get(SESSION_ID) else { return Err(UnknownSession::Unnamed) };
        if let Some(version) = headers.get(PROTOCOL_VERSION)
            && !revision::LEGACY.iter().any(|known| version == known)
        {
            return Err(UnknownSession::BadVersion);
        }
        let principal = self.principals.of(headers);
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id, &principal));
        found.ok_or(UnknownSession::NotFound)
    }
}
