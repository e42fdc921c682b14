//! A message on its way to the server, with all that has to be known of it on that way.
//!
//! Whoever sends one has parsed it before; it is made of those parts, so that nothing is parsed
//! again, and costs a child's stdin, which needs none of them, next to nothing.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::mcp::compose::request_line;
use crate::mcp::header::{METHOD, NAME};
use crate::mcp::method::Method;
use crate::mcp::param_headers::encode;
use crate::mcp::params::Params;
use crate::mcp::revision;
use crate::rpc::id::Id;
use crate::rpc::lines::compact;
use crate::rpc::message::{Envelope, Kind};

/// Headers that go with one message over HTTP besides those that the transport makes itself: the
/// caller's forwarded ones, and `Mcp-Param-*`. A child has no use for them.
pub(crate) type Headers = Option<Arc<HeaderMap>>;

/// What a message is to the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// the request `initialize`
    Initialize,
    /// the request `server/discover`
    Discover,
    /// any other request
    Request,
    /// `notifications/initialized`
    Initialized,
    /// `notifications/cancelled`, of the request with this id
    Cancelled(Option<Id>),
    /// any other notification
    Notification,
    /// an answer to a request of the server, or what nobody can make sense of
    Response,
}

impl Role {
    fn of_request(method: Option<Method>) -> Self {
        match method {
            Some(Method::Initialize) => Role::Initialize,
            Some(Method::Discover) => Role::Discover,
            _ => Role::Request,
        }
    }

    fn of_notification(method: Option<Method>, params: &Params) -> Self {
        match method {
            Some(Method::Initialized) => Role::Initialized,
            Some(Method::Cancelled) => Role::Cancelled(params.get("requestId").and_then(Id::parse)),
            _ => Role::Notification,
        }
    }

    /// Whether it is that of a notification.
    pub(crate) fn is_notification(&self) -> bool {
        matches!(self, Role::Initialized | Role::Cancelled(_) | Role::Notification)
    }
}

/// A message for the server.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// what the server gets
    pub bytes: Bytes,
    /// what goes with this message alone
    pub headers: Headers,
    /// what it is to the transport
    pub role: Role,
    /// of a request: the id by which the server knows it
    pub id: Option<Id>,
    /// the revision that it names for itself, as messages of the modern era do
    pub revision: Option<HeaderValue>,
    /// what it says of itself in headers, if it is of the modern era
    pub routing: Option<Box<Routing>>,
}

/// The headers by which intermediaries of the modern era tell what a message is about.
#[derive(Debug, Clone)]
pub(crate) struct Routing {
    method: HeaderValue,
    name: Option<HeaderValue>,
}

impl Routing {
    fn new(method: Option<Method>, envelope: &Envelope, params: &Params) -> Box<Self> {
        let named = method.and_then(Method::named_member);
        let name = named.and_then(|member| params.text(member)).map(|name| encode(&name));
        let method = match method {
            Some(method) => HeaderValue::from_static(method.as_str()),
            None => encode(&envelope.method_name()),
        };
        Box::new(Routing { method, name })
    }

    /// Adds them to the headers of a request.
    pub(crate) fn put_into(&self, headers: &mut HeaderMap) {
        headers.insert(METHOD, self.method.clone());
        if let Some(name) = &self.name {
            headers.insert(NAME, name.clone());
        }
    }
}

impl Outgoing {
    /// A request. `id`: by which the server knows it. `method`, `envelope` and `params` are those of
    /// the message that it was made of; no edit on the way changes what is read of them.
    pub(crate) fn request(
        bytes: Bytes,
        headers: Headers,
        id: Id,
        method: Option<Method>,
        envelope: &Envelope,
        params: &Params,
    ) -> Self {
        let revision = revision_of(params);
        let routing = revision.as_ref().map(|_| Routing::new(method, envelope, params));
        let role = Role::of_request(method);
        Outgoing { bytes, headers, role, id: Some(id), revision, routing }
    }

    /// A request of our own; `params` is raw JSON.
    pub(crate) fn own_request(
        id: &Id,
        method: Method,
        params: Option<&str>,
        headers: Headers,
    ) -> Self {
        let bytes = request_line(id, method, params);
        let params = Params::parse(params);
        let envelope = Envelope::default();
        Outgoing::request(bytes, headers, id.clone(), Some(method), &envelope, &params)
    }

    /// A notification; `params` as they are in `bytes`.
    pub(crate) fn notification(
        bytes: Bytes,
        headers: Headers,
        method: Option<Method>,
        envelope: &Envelope,
        params: &Params,
    ) -> Self {
        // It need not say of which era it is, so the headers are made in any case.
        let routing = Some(Routing::new(method, envelope, params));
        let revision = revision_of(params);
        let role = Role::of_notification(method, params);
        Outgoing { bytes, headers, role, id: None, revision, routing }
    }

    /// A `notifications/cancelled` of the request that the server knows by `id`. `params`: those of
    /// the client's message, where it is one.
    pub(crate) fn cancelled(bytes: Bytes, headers: Headers, id: Id, params: &Params) -> Self {
        let method = Some(Method::Cancelled);
        let routing = Some(Routing::new(method, &Envelope::default(), params));
        let revision = revision_of(params);
        Outgoing { bytes, headers, role: Role::Cancelled(Some(id)), id: None, revision, routing }
    }

    /// An answer to a request of the server.
    pub(crate) fn response(bytes: Bytes, headers: Headers) -> Self {
        Outgoing { bytes, headers, role: Role::Response, id: None, revision: None, routing: None }
    }

    /// A message that nobody has parsed yet.
    pub(crate) fn parse(bytes: Bytes, headers: Headers) -> Self {
        let text = String::from_utf8_lossy(&bytes);
        let envelope = Envelope::parse(&text).unwrap_or_default();
        let method = Method::of(&envelope);
        let params = || Params::parse(envelope.params);
        match envelope.kind() {
            Kind::Request => {
                let params = params();
                let revision = revision_of(&params);
                let routing = revision.as_ref().map(|_| Routing::new(method, &envelope, &params));
                let (role, id) = (Role::of_request(method), envelope.request_id());
                Outgoing { bytes: bytes.clone(), headers, role, id, revision, routing }
            }
            Kind::Notification => {
                Outgoing::notification(bytes.clone(), headers, method, &envelope, &params())
            }
            Kind::Response | Kind::Unknown => Outgoing::response(bytes.clone(), headers),
        }
    }

    /// As it may be kept for longer than its turn.
    pub(crate) fn kept(mut self) -> Self {
        self.bytes = compact(&self.bytes);
        self
    }
}

/// The revision that a message names, as a header's value; `None` where it could be none.
fn revision_of(params: &Params) -> Option<HeaderValue> {
    match &*params.protocol_version()? {
        revision::MODERN => Some(HeaderValue::from_static(revision::MODERN)),
        other => HeaderValue::from_str(other).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> Outgoing {
        Outgoing::parse(Bytes::from_static(text.as_bytes()), None)
    }

    #[test]
    fn what_is_parsed_here_is_what_the_parsed_parts_give() {
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"prompts/get","params":{"name":"größe",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let envelope = Envelope::parse(text).unwrap();
        let (method, params) = (Method::of(&envelope), Params::parse(envelope.params));
        let id = Id::Text("a".into());
        let made = Outgoing::request(Bytes::new(), None, id, method, &envelope, &params);
        let parsed = parse(text);
        assert_eq!((made.role, made.id), (parsed.role, parsed.id));
        assert_eq!(made.revision, parsed.revision);
        let headers = |outgoing: Option<Box<Routing>>| {
            let mut headers = HeaderMap::new();
            outgoing.unwrap().put_into(&mut headers);
            headers
        };
        let (made, parsed) = (headers(made.routing), headers(parsed.routing));
        assert_eq!(made, parsed);
        assert_eq!(made[NAME], "=?base64?Z3LDtsOfZQ==?=");
    }

    #[test]
    fn the_role_of_a_message_is_told_by_its_kind_and_its_method() {
        let cancelled = Role::Cancelled(Some(Id::Number(7)));
        for (text, role) in [
            (r#"{"id":1,"method":"initialize"}"#, Role::Initialize),
            (r#"{"id":1,"method":"server/discover"}"#, Role::Discover),
            (r#"{"id":null,"method":"tools/list"}"#, Role::Request),
            (r#"{"method":"notifications/initialized"}"#, Role::Initialized),
            (r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#, cancelled),
            (r#"{"method":"notifications/cancelled"}"#, Role::Cancelled(None)),
            (r#"{"method":"initialize"}"#, Role::Notification),
            (r#"{"id":1,"result":{}}"#, Role::Response),
            ("[]", Role::Response),
        ] {
            assert_eq!(parse(text).role, role, "{text}");
        }
        assert_eq!(parse(r#"{"id":null,"method":"tools/list"}"#).id, None);
    }

    #[test]
    fn a_request_says_of_itself_that_it_is_modern_and_a_notification_need_not() {
        assert!(parse(r#"{"id":1,"method":"tools/list"}"#).routing.is_none());
        let notification = parse(r#"{"method":"notifications/progress"}"#);
        assert!(notification.revision.is_none() && notification.routing.is_some());
        let escaped = parse(
            r#"{"id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol\/protocol\u0056ersion":"2027-01-01"}}}"#,
        );
        assert_eq!(escaped.revision.unwrap(), "2027-01-01");
    }
}
