//! Why a request over HTTP gets no answer, in words for people and models.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode, Uri};

use crate::upstream::observer::Loss;

use super::pool::SendError;
use super::remote::RemoteServer;
use super::root_cause::root_cause;

/// How much of an answer that is no message is shown.
const EXCERPT: usize = 200;

/// A connection that ended too early, as a sentence.
pub(crate) fn broken(address: &str, why: &str) -> String {
    format!("the connection to the server at {address} broke before it answered: {why}")
}

/// A request without an answer. `left`: the server may have the message.
pub(crate) fn unsent(remote: &RemoteServer, error: &SendError, left: bool) -> Loss {
    let (cause, reached) = match error {
        SendError::Connect(why) => (remote.unreachable(why).to_string(), false),
        SendError::Broken(error) => (broken(remote.address(), &root_cause(error)), left),
    };
    Loss { cause: cause.into(), reached, refusal: None }
}

/// A loss of a request that the server has begun with.
pub(crate) fn begun(cause: String) -> Loss {
    Loss { cause: cause.into(), reached: true, refusal: None }
}

/// A server that is there, and with which nothing can be begun.
pub(crate) fn no_http_sse(address: &str, why: &str) -> Loss {
    Loss::unsent(format!("the server at {address} can't be used over HTTP+SSE: {why}"))
}

/// A session that is forgotten again as soon as it is opened.
pub(crate) fn forgotten(address: &str) -> Loss {
    Loss::unsent(format!(
        "the server at {address} answered HTTP 404 Not Found, in a new session too: it has \
         forgotten both"
    ))
}

/// An answer that is no message: an error of a proxy in between, a redirection, a refusal.
pub(crate) fn status(address: &str, head: &Parts, body: Bytes) -> Loss {
    let status = head.status;
    let mut cause = format!("the server at {address} answered HTTP {status}");
    if let Some(target) = target(&head.headers).filter(|_| status.is_redirection()) {
        cause += &format!(", which is not followed: it names {target}; configure that URL");
    }
    let excerpt = excerpt(&body);
    if !excerpt.is_empty() {
        cause += &format!(": {excerpt}");
    }
    let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let refusal = refused.then(|| refusal(head, body));
    // Whoever answers 5xx, or 2xx without an answer, may have let the server begin.
    let reached = status.is_server_error() || status.is_success();
    Loss { cause: cause.into(), reached, refusal }
}

/// Where a redirection goes: its origin, since the rest may hold secrets.
fn target(headers: &HeaderMap) -> Option<String> {
    let target: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    let Some(host) = target.host() else { return Some("another path of the same server".into()) };
    let scheme = target.scheme_str().unwrap_or("http");
    let port = target.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{scheme}://{host}{port}"))
}

/// What an HTTP client is answered in our place.
fn refusal(head: &Parts, body: Bytes) -> Response<Bytes> {
    let mut refusal = Response::new(body);
    *refusal.status_mut() = head.status;
    for name in [WWW_AUTHENTICATE, CONTENT_TYPE] {
        for value in head.headers.get_all(&name) {
            refusal.headers_mut().append(&name, value.clone());
        }
    }
    refusal
}

/// The beginning of a body, without tags and what only a terminal understands.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(16 * EXCERPT)]);
    let mut plain = String::new();
    let mut in_tag = false;
    for c in text.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                plain.push(' ');
            }
            _ if in_tag => {}
            c => plain.push(if c.is_control() { ' ' } else { c }),
        }
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    let plain = words.join(" ");
    match plain.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(status: u16, name: &str, value: &str, body: &'static str) -> Loss {
        let head = Response::builder().status(status).header(name, value).body(()).unwrap();
        super::status("http://h/mcp", &head.into_parts().0, Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn a_page_of_a_proxy_is_shown_as_text() {
        let loss = lost(502, "content-type", "text/html", "<html><h1>Bad\tGateway</h1>\nnginx");
        assert_eq!(
            &*loss.cause,
            "the server at http://h/mcp answered HTTP 502 Bad Gateway: Bad Gateway nginx"
        );
        assert!(loss.reached && loss.refusal.is_none());
        assert!(!lost(413, "a", "b", "").reached);
    }

    #[test]
    fn a_redirection_names_the_origin_only() {
        let loss = lost(307, "location", "https://u:p@other:8443/x?token=1", "");
        assert!(loss.cause.contains("it names https://other:8443;"), "{}", loss.cause);
        assert!(!loss.reached);
    }

    #[test]
    fn a_refusal_keeps_what_an_http_client_needs() {
        let refusal = lost(401, "www-authenticate", "Bearer x=\"y\"", "no").refusal.unwrap();
        assert_eq!(refusal.status(), 401);
        assert_eq!(refusal.headers()[WWW_AUTHENTICATE], "Bearer x=\"y\"");
        assert_eq!(refusal.body(), "no");
    }
}
