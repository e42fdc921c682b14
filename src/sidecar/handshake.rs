//! The beginning of a legacy session.

use std::sync::Arc;

use http::{HeaderValue, Response};

use crate::downstream::http::Body;
use crate::mcp::header::SESSION_ID;

use super::client_session::LegacySession;
use super::sessions::Sessions;

/// A session whose `initialize` is not answered. Unless it succeeds, the session ends.
pub(crate) struct Handshake {
    sessions: Arc<Sessions>,
    session: Option<Arc<LegacySession>>,
}

impl Handshake {
    /// `session` has begun, and waits for the answer to its `initialize`.
    pub(crate) fn new(sessions: Arc<Sessions>, session: Arc<LegacySession>) -> Self {
        Handshake { sessions, session: Some(session) }
    }

    /// The response to `initialize`, with the session's id unless that has failed.
    pub(crate) fn complete(mut self, mut response: Response<Body>, failed: bool) -> Response<Body> {
        if !failed
            && let Some(session) = self.session.take()
            && let Ok(id) = HeaderValue::from_str(&session.id)
        {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            self.sessions.retire(session);
        }
    }
}
