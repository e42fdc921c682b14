//! One message on its way to a server, and what its HTTP request is made of.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use crate::mcp::header::{PROTOCOL_VERSION, SESSION_ID};
use crate::mcp::revision::has_version_header;
use crate::upstream::{Headers, Outgoing};

use super::request_body::{Backlog, Sent};

/// A message on its way to a server over HTTP.
pub struct Message {
    pub outgoing: Outgoing,
    /// of the modern era, where it goes by that
    pub revision: Option<HeaderValue>,
    pub sent: Arc<Sent>,
}

impl Message {
    /// `last`: the revision of the last request, where that was of the modern era.
    pub fn new(outgoing: Outgoing, last: Option<&HeaderValue>, backlog: &Arc<Backlog>) -> Self {
        // A notification need not say of which era it is.
        let last = last.filter(|_| outgoing.role.is_notification());
        let revision = outgoing.revision.as_ref().or(last).cloned();
        let sent = Sent::new(outgoing.bytes.len(), backlog);
        Message { outgoing, revision, sent }
    }

    /// Whether it goes by the rules of the modern era.
    pub fn is_modern(&self) -> bool {
        self.revision.is_some()
    }

    /// The headers of its POST.
    pub fn post_headers(&self, base: &HeaderMap, session: &Session) -> HeaderMap {
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

/// What a legacy server is told with every message after `initialize`.
#[derive(Clone, Default)]
pub struct Session {
    pub id: Option<HeaderValue>,
    /// as agreed on
    pub version: Option<HeaderValue>,
    /// sessions before it in this life
    pub generation: u64,
}

impl Session {
    pub fn put_into(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.id {
            headers.insert(SESSION_ID, id.clone());
        }
        let version = self.version.as_ref();
        if let Some(version) = version.filter(|version| has_version_header(version.as_bytes())) {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
    }
}

/// The base with what goes with one message.
pub fn with_headers(base: &HeaderMap, more: &Headers) -> HeaderMap {
    let mut headers = base.clone();
    for name in more.iter().flat_map(|more| more.keys()) {
        headers.remove(name);
    }
    for (name, value) in more.iter().flat_map(|more| more.iter()) {
        headers.append(name, value.clone());
    }
    headers
}

pub fn header(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::header::{METHOD, NAME};

    fn message(text: &'static str) -> Message {
        Message::new(Outgoing::parse(text.into(), None), None, &Arc::default())
    }

    #[test]
    fn a_modern_request_says_in_headers_what_it_is() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"größe",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let session = Session { id: header("s"), version: header("2025-06-18"), generation: 0 };
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
            let session = Session { id: header("s"), version: header(version), generation: 0 };
            request.post_headers(&HeaderMap::new(), &session)
        };
        assert!(!with("2025-03-26").contains_key(PROTOCOL_VERSION));
        assert_eq!(with("2025-06-18")[PROTOCOL_VERSION], "2025-06-18");
        assert_eq!(with("2025-11-25")[SESSION_ID], "s");
    }

    #[test]
    fn the_headers_of_a_message_replace_configured_ones() {
        let mut base = HeaderMap::new();
        base.insert("x-a", HeaderValue::from_static("1"));
        let mut more = HeaderMap::new();
        more.append("x-a", HeaderValue::from_static("2"));
        more.append("x-a", HeaderValue::from_static("3"));
        let all = with_headers(&base, &Some(Arc::new(more)));
        assert_eq!(all.get_all("x-a").iter().collect::<Vec<_>>(), ["2", "3"]);
    }
}
