//! HTTP responses of our own.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};

use crate::downstream::http::Body;
use crate::mcp::error_code::{INVALID_REQUEST, REFUSED};
use crate::rpc::string::quoted;

/// The media type of an answer.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The media type of a stream of events.
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    with(status, Body::Whole(Bytes::new()))
}

/// A response with a text for people.
pub(crate) fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    with(status, Body::Whole(Bytes::from_static(text.as_bytes())))
}

/// A response with a JSON body.
pub(crate) fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = with(status, body);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A stream of events. Intermediaries are asked not to gather it (MCP 2026-07-28).
pub(crate) fn events(body: Body) -> Response<Body> {
    let mut response = with(StatusCode::OK, body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A refusal with its reason. `id`: of the request, raw JSON, where it is known.
pub(crate) fn error(
    status: StatusCode,
    id: Option<&str>,
    code: i32,
    message: &str,
) -> Response<Body> {
    error_with(status, id, code, message, None)
}

/// The same with `data`, raw JSON.
pub(crate) fn error_with(
    status: StatusCode,
    id: Option<&str>,
    code: i32,
    message: &str,
    data: Option<&str>,
) -> Response<Body> {
    let id = id.map(|id| format!(r#","id":{id}"#)).unwrap_or_default();
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    let message = quoted(message);
    let body =
        format!(r#"{{"jsonrpc":"2.0"{id},"error":{{"code":{code},"message":{message}{data}}}}}"#);
    json(status, Body::Whole(body.into()))
}

/// A response of the server's that is no message: its status, its body, and what says what these
/// mean. Headers that belong to its connection stay behind.
pub(crate) fn passed_on(response: Response<Bytes>) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let mut passed = with(parts.status, Body::Whole(body));
    for name in [CONTENT_TYPE, WWW_AUTHENTICATE, CACHE_CONTROL, RETRY_AFTER] {
        for value in parts.headers.get_all(&name) {
            passed.headers_mut().append(name.clone(), value.clone());
        }
    }
    passed
}

/// No answer could name the request.
pub(crate) fn bad_id() -> Response<Body> {
    let problem = "the id must be a string or a number";
    error(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, problem)
}

/// The method can't be used here.
pub(crate) fn not_allowed(allow: &'static str) -> Response<Body> {
    let message = format!("this method is not allowed here; allowed: {allow}");
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, None, REFUSED, &message);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// The sidecar's own token is missing or wrong.
pub(crate) fn unauthorized(message: &str) -> Response<Body> {
    let mut response = error(StatusCode::UNAUTHORIZED, None, REFUSED, message);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// There is no room now.
pub(crate) fn unavailable(id: Option<&str>, message: &str) -> Response<Body> {
    let mut response = error(StatusCode::SERVICE_UNAVAILABLE, id, REFUSED, message);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    response
}

fn with(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
