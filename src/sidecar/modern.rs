//! 2026-07-28: every request by itself, with headers that say what its body says (protocol §6.3).

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, Response, StatusCode};

use crate::downstream::http::{Body, ResponseReader};
use crate::mcp::error_code::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_VERSION,
};
use crate::mcp::header::{METHOD, NAME, PROTOCOL_VERSION};
use crate::mcp::method::Method;
use crate::mcp::param_headers::decode;
use crate::mcp::params::Params;
use crate::mcp::revision::MODERN;
use crate::relay::Requester;
use crate::rpc::id::Id;
use crate::rpc::message::{Kind, Message};
use crate::rpc::string::quoted;

use super::accept::AcceptedTypes;
use super::answers::{bad_id, empty, error, error_with, unavailable};
use super::outcome::PostOutcome;
use super::service::Sidecar;

/// Whether a message is to be served without a session: it says so itself, or its header does.
pub(crate) fn is_modern(headers: &HeaderMap, params: &Params) -> bool {
    let named = || {
        headers.get(PROTOCOL_VERSION).is_some_and(|version| version.as_bytes() >= MODERN.as_bytes())
    };
    params.protocol_version().is_some() || named()
}

impl Sidecar {
    /// One message of a modern client.
    pub(super) fn modern(
        &self,
        headers: &HeaderMap,
        accept: AcceptedTypes,
        message: &Message,
        params: &Params,
    ) -> PostOutcome {
        match message.envelope.kind() {
            Kind::Request => self.modern_request(headers, accept, message, params),
            // No notification of a client is defined over HTTP; to cancel, it closes the stream.
            Kind::Notification => empty(StatusCode::ACCEPTED).into(),
            Kind::Response | Kind::Unknown => {
                let problem = "a response can't be sent: the server asks nothing (2026-07-28)";
                error(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, problem).into()
            }
        }
    }

    fn modern_request(
        &self,
        headers: &HeaderMap,
        accept: AcceptedTypes,
        message: &Message,
        params: &Params,
    ) -> PostOutcome {
        let id = message.id();
        if Id::parse(id).is_none() {
            return bad_id().into();
        }
        let method = message.envelope.method_name();
        let checked = check_meta(params)
            .and_then(|version| check_version(headers, &version))
            .and_then(|()| check_named(headers, &method, params));
        if let Err(Problem { code, text }) = checked {
            return error(StatusCode::BAD_REQUEST, Some(id), code, &text).into();
        }
        if let Some(refusal) = self.unknown_version(params, id) {
            return refusal.into();
        }
        let shared = match self.sessions.shared_by(&self.principals.of(headers)) {
            Ok(shared) => shared,
            Err(problem) => return unavailable(Some(id), &problem.to_string()).into(),
        };
        let (key, responder) = shared.open(accept.events, params.wants_logs());
        let reader = ResponseReader::new(&responder);
        let requester = Requester::new(key, id, responder, self.forwarded_headers(headers, true));
        shared.session.client_request(message, params, requester);
        PostOutcome::Waiting(reader)
    }

    /// A server behind HTTP judges versions itself. A child may have been told one long ago, and
    /// may look at none since: what can be no version is refused for it.
    fn unknown_version(&self, params: &Params, id: &str) -> Option<Response<Body>> {
        let version = params.protocol_version()?;
        if self.config.remote().is_some() || is_date(&version) {
            return None;
        }
        let requested = quoted(&version);
        let data = format!(r#"{{"supported":["{MODERN}"],"requested":{requested}}}"#);
        let text = format!("unsupported protocol version: {version}");
        let (status, code) = (StatusCode::BAD_REQUEST, UNSUPPORTED_VERSION);
        Some(error_with(status, Some(id), code, &text, Some(&data)))
    }
}

/// Versions are dates.
fn is_date(version: &str) -> bool {
    let shape = "0000-00-00".bytes();
    version.len() == shape.len()
        && version.bytes().zip(shape).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            form => byte == form,
        })
}

/// What is wrong with a request.
struct Problem {
    code: i32,
    text: String,
}

fn mismatch<T>(text: String) -> Result<T, Problem> {
    Err(Problem { code: HEADER_MISMATCH, text })
}

/// What every request must carry; returns the version.
fn check_meta<'a>(params: &Params<'a>) -> Result<Cow<'a, str>, Problem> {
    let missing = |name: &str| {
        let text = format!("params._meta must have io.modelcontextprotocol/{name}");
        Problem { code: INVALID_PARAMS, text }
    };
    let version = params.protocol_version().ok_or_else(|| missing("protocolVersion"))?;
    match params.client_capabilities() {
        Some(capabilities) if capabilities.starts_with('{') => Ok(version),
        _ => Err(missing("clientCapabilities")),
    }
}

fn check_version(headers: &HeaderMap, version: &str) -> Result<(), Problem> {
    match headers.get(PROTOCOL_VERSION) {
        None => mismatch("the header MCP-Protocol-Version is missing".into()),
        Some(named) if named == version => Ok(()),
        Some(_) => mismatch("MCP-Protocol-Version and params._meta name different versions".into()),
    }
}

fn check_named(headers: &HeaderMap, method: &str, params: &Params) -> Result<(), Problem> {
    must_equal(headers, &METHOD, method)?;
    // Without it the request is wrong in itself, which the server will say.
    let named = Method::parse(method).and_then(Method::named_member);
    match named.and_then(|member| params.text(member)) {
        Some(name) => must_equal(headers, &NAME, &name),
        None => Ok(()),
    }
}

fn must_equal(headers: &HeaderMap, name: &HeaderName, expected: &str) -> Result<(), Problem> {
    let Some(value) = headers.get(name) else {
        return mismatch(format!("the header {name} is missing"));
    };
    match decode(value) {
        Some(value) if value == expected => Ok(()),
        Some(_) => mismatch(format!("the header {name} differs from the body")),
        None => mismatch(format!("the header {name} can't be decoded")),
    }
}
