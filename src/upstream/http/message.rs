//! One message on its way to a server, and what its HTTP request is made of.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use memchr::memmem;

use crate::mcp::header::{METHOD, NAME, PROTOCOL_VERSION, SESSION_ID};
use crate::mcp::method::Method;
use crate::mcp::param_headers::encode;
use crate::mcp::params::Params;
use crate::mcp::revision::has_version_header;
use crate::rpc::id::Id;
use crate::rpc::message::{Envelope, Kind};
use crate::upstream::Headers;

use super::outgoing::{Backlog, Sent};

/// What a message is to the transport.
#[derive(Debug, PartialEq, Eq)]
pub enum Role {
    Initialize,
    /// `server/discover`
    Discover,
    Initialized,
    /// of the request with this id
    Cancelled(Option<Id>),
    Request,
    Notification,
    /// an answer to a request of the server
    Response,
}

/// A message for the server.
pub struct Message {
    pub bytes: Bytes,
    /// what goes with this message alone
    pub headers: Headers,
    pub role: Role,
    /// of a request
    pub id: Option<Id>,
    /// what the modern era says in headers
    pub modern: Option<Box<Modern>>,
    pub sent: Arc<Sent>,
}

/// The headers of the modern era (2026-07-28).
#[derive(Clone)]
pub struct Modern {
    pub version: HeaderValue,
    method: HeaderValue,
    name: Option<HeaderValue>,
}

impl Message {
    /// `version`: that of the modern era, where the last request was of it.
    pub fn new(
        bytes: &Bytes,
        headers: &Headers,
        version: Option<&HeaderValue>,
        backlog: &Arc<Backlog>,
    ) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let envelope = Envelope::parse(&text).unwrap_or_default();
        let kind = envelope.kind();
        let method = envelope.method_name();
        let params = match kind {
            Kind::Request if may_be_modern(bytes) => Params::parse(envelope.params),
            Kind::Notification => Params::parse(envelope.params),
            _ => Params::default(),
        };
        let id = envelope.request_id();
        let own = params.protocol_version().and_then(|version| header(&version));
        // A notification need not say of which era it is.
        let version = own.or_else(|| version.filter(|_| kind == Kind::Notification).cloned());
        let modern = version.map(|version| Box::new(Modern::new(version, &method, &params)));
        let role = role(kind, &method, &params);
        let sent = Sent::new(bytes.len(), backlog);
        Message { bytes: bytes.clone(), headers: headers.clone(), role, id, modern, sent }
    }

    /// The headers of its POST.
    pub fn post_headers(&self, base: &HeaderMap, session: &Session) -> HeaderMap {
        let mut headers = with_headers(base, &self.headers);
        match &self.modern {
            Some(modern) => modern.put_into(&mut headers),
            None => session.put_into(&mut headers),
        }
        headers
    }
}

/// Whether the era of a request has to be looked for. Some writers escape the `/` in the key, and
/// any may escape letters.
fn may_be_modern(bytes: &[u8]) -> bool {
    let parts = [b"protocolVersion".as_slice(), br"\u"];
    parts.iter().any(|part| memmem::find(bytes, part).is_some())
}

fn role(kind: Kind, method: &str, params: &Params) -> Role {
    match (kind, Method::parse(method)) {
        (Kind::Request, Some(Method::Initialize)) => Role::Initialize,
        (Kind::Request, Some(Method::Discover)) => Role::Discover,
        (Kind::Request, _) => Role::Request,
        (Kind::Notification, Some(Method::Initialized)) => Role::Initialized,
        (Kind::Notification, Some(Method::Cancelled)) => {
            Role::Cancelled(params.get("requestId").and_then(Id::parse))
        }
        (Kind::Notification, _) => Role::Notification,
        (Kind::Response | Kind::Unknown, _) => Role::Response,
    }
}

impl Modern {
    fn new(version: HeaderValue, method: &str, params: &Params) -> Self {
        let named = Method::parse(method).and_then(Method::named_member);
        let name = named.and_then(|member| params.text(member));
        Modern { version, method: encode(method), name: name.map(|name| encode(&name)) }
    }

    fn put_into(&self, headers: &mut HeaderMap) {
        headers.insert(PROTOCOL_VERSION, self.version.clone());
        headers.insert(METHOD, self.method.clone());
        if let Some(name) = &self.name {
            headers.insert(NAME, name.clone());
        }
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

    fn message(text: &'static str) -> Message {
        Message::new(&Bytes::from(text), &None, None, &Arc::default())
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
