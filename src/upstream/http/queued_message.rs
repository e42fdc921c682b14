//! One message on its way to a server over HTTP, and the headers of its request.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use crate::mcp::header::PROTOCOL_VERSION;
use crate::upstream::outgoing::Outgoing;

use super::headers::with_headers;
use super::request_body::{Backlog, SendProgress};
use super::session::ServerSession;

/// A message on its way to a server over HTTP.
pub(crate) struct QueuedMessage {
    /// the message
    pub outgoing: Outgoing,
    /// the revision by which it goes, where that is of the modern era
    pub revision: Option<HeaderValue>,
    /// how far it has come
    pub progress: Arc<SendProgress>,
}

impl QueuedMessage {
    /// `last`: the revision of the last request, where that was of the modern era.
    pub(crate) fn new(
        outgoing: Outgoing,
        last: Option<&HeaderValue>,
        backlog: &Arc<Backlog>,
    ) -> Self {
        // A notification need not say of which era it is.
        let last = last.filter(|_| outgoing.role.is_notification());
        let revision = outgoing.revision.as_ref().or(last).cloned();
        let progress = SendProgress::new(outgoing.bytes.len(), backlog);
        QueuedMessage { outgoing, revision, progress }
    }

    /// Whether it goes by the rules of the modern era.
    pub(crate) fn is_modern(&self) -> bool {
        self.revision.is_some()
    }

    /// The headers of its POST.
    pub(crate) fn post_headers(&self, base: &HeaderMap, session: &ServerSession) -> HeaderMap {
        let mut headers = with_headers(base, &self.outgoing.headers);
        let Some(revision) = &self.revision else {
            session.put_into(&mut headers);
            return headers;
        };
        headers.insert(PROTOCOL_VERSION, revision.clone());
        if let Some(routing) = &self.outgoing.routing {
            routing.put_into(&mut headers);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::header::{METHOD, NAME, SESSION_ID};

    fn header(text: &str) -> Option<HeaderValue> {
        HeaderValue::from_str(text).ok()
    }

    fn message(text: &'static str) -> QueuedMessage {
        QueuedMessage::new(Outgoing::parse(text.into(), None), None, &Arc::default())
    }

    #[test]
    fn a_modern_request_says_in_headers_what_it_is() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"größe",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let session =
            ServerSession { id: header("s"), version: header("2025-06-18"), generation: 0 };
        let headers = message(text).post_headers(&HeaderMap::new(), &session);
        assert_eq!(headers[PROTOCOL_VERSION], "2026-07-28");
        assert_eq!(headers[METHOD], "tools/call");
        assert_eq!(headers[NAME], "=?base64?Z3LDtsOfZQ==?=");
        assert!(!headers.contains_key(SESSION_ID));
    }

    #[test]
    fn a_legacy_request_carries_its_session_and_from_2025_06_18_on_the_version() {
        let request = message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let with = |version| {
            let session =
                ServerSession { id: header("s"), version: header(version), generation: 0 };
            request.post_headers(&HeaderMap::new(), &session)
        };
        assert!(!with("2025-03-26").contains_key(PROTOCOL_VERSION));
        assert_eq!(with("2025-06-18")[PROTOCOL_VERSION], "2025-06-18");
        assert_eq!(with("2025-11-25")[SESSION_ID], "s");
    }
}
