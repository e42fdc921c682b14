//! Who may ask at all: `Host`, `Origin` and the sidecar's own token (contract §10).
//!
//! A page that a browser has loaded from elsewhere must reach neither the server nor its jobs, be
//! it by its own name (`Origin`) or by one that it made point here (`Host`).

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::{BearerToken, ServerConfig};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// a header by which somebody is let in stands twice, and others may go by the other one
    #[error("the header {0} stands there more than once")]
    Repeated(HeaderName),
    /// its `Host` has a user in front of the name
    #[error("a Host has no user in it")]
    UserInHost,
    /// its `Host` is none of `server.allowed_hosts`
    #[error("this Host is not let in; name it in server.allowed_hosts")]
    Host,
    /// its `Origin` is none of `server.allowed_origins`
    #[error("this Origin is not let in; name it in server.allowed_origins")]
    Origin,
    /// the sidecar's own token is missing or wrong
    #[error("a bearer token is needed (server.token)")]
    Token,
}

/// Checks that a request says but once who sends it and whom it is for. A proxy in front may add its
/// own header behind a client's, and the client must not be believed.
///
/// # Errors
/// The first header that it is wrong in.
pub(crate) fn check_form(server: &ServerConfig, headers: &HeaderMap) -> Result<(), Refusal> {
    for name in [&HOST, &AUTHORIZATION, &server.identity_header] {
        if headers.get_all(name).iter().nth(1).is_some() {
            return Err(Refusal::Repeated(name.clone()));
        }
    }
    match headers.get(HOST).is_some_and(|host| host.as_bytes().contains(&b'@')) {
        true => Err(Refusal::UserInHost),
        false => Ok(()),
    }
}

/// Checks the names of a request, before anything of it is used.
///
/// # Errors
/// The first rule that it breaks.
pub(crate) fn check_names(server: &ServerConfig, headers: &HeaderMap) -> Result<(), Refusal> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_allowed_host(server, host) {
        return Err(Refusal::Host);
    }
    match headers.get_all(ORIGIN).iter().all(|origin| is_allowed_origin(server, origin, host)) {
        true => Ok(()),
        false => Err(Refusal::Origin),
    }
}

/// Checks that a request bears the sidecar's token, if there is one.
///
/// # Errors
/// [`Refusal::Token`] where it does not.
pub(crate) fn check_token(server: &ServerConfig, headers: &HeaderMap) -> Result<(), Refusal> {
    match &server.token {
        Some(token) if !bears(headers, token) => Err(Refusal::Token),
        _ => Ok(()),
    }
}

fn is_allowed_host(server: &ServerConfig, host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let same = |allowed: &String| {
        allowed == "*"
            || allowed.eq_ignore_ascii_case(authority.host())
            || allowed.eq_ignore_ascii_case(host)
    };
    server.allowed_hosts.iter().any(same)
}

/// An Origin that is the request's own Host is let in, as that Host was. Where `*` lets in every
/// Host, that proves nothing.
fn is_allowed_origin(server: &ServerConfig, origin: &HeaderValue, host: &str) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let is_host = |(_, name): (&str, &str)| name.eq_ignore_ascii_case(host);
    let is_ours = !server.allowed_hosts.iter().any(|allowed| allowed == "*")
        && origin.split_once("://").is_some_and(is_host);
    let same = |allowed: &String| allowed == "*" || allowed.eq_ignore_ascii_case(origin);
    is_ours || server.allowed_origins.iter().any(same)
}

fn bears(headers: &HeaderMap, token: &BearerToken) -> bool {
    let Some(value) = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes) else { return false };
    let Some((scheme, given)) = value.split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && token.is(given.trim_ascii())
}
