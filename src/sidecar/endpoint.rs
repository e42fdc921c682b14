//! One HTTP request: which page it is for, whether its sender is let in, and what it is.

use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tracing::debug;

use crate::downstream::http::Body;
use crate::downstream::http::Endpoint;
use crate::downstream::http::{Refusal, check_form, check_names, check_token};
use crate::mcp::error_code::REFUSED;
use crate::upstream::{RemoteServer, Server};

use super::answers::{empty, error, not_allowed, passed_on, text, unauthorized};
use super::service::Sidecar;

/// Where MCP is spoken.
pub(crate) const PATH: &str = "/mcp";
/// Where a server says how to get a token for it (RFC 9728).
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

impl Endpoint for Sidecar {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/healthz" => return text(StatusCode::OK, "ok\n"),
            "/readyz" => return self.readiness().await,
            _ => {}
        }
        let (server, headers) = (&self.config.server, request.headers());
        if let Err(refusal) =
            check_form(server, headers).and_then(|()| check_names(server, headers))
        {
            return refused(&refusal);
        }
        let origin = request.headers().get(header::ORIGIN).cloned();
        let mut response = self.answer_allowed(request).await;
        if let Some(origin) = origin {
            add_cors_headers(response.headers_mut(), origin);
        }
        response
    }
}

impl Sidecar {
    /// A request whose `Host` and `Origin` are let in. A browser asks beforehand, without the token.
    async fn answer_allowed(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().trim_end_matches('/');
        if path == PATH && request.method() == Method::OPTIONS {
            return preflight();
        }
        if let Err(refusal) = check_token(&self.config.server, request.headers()) {
            return refused(&refusal);
        }
        if path == PATH {
            return self.mcp(request).await;
        }
        match self.resource_metadata(path) {
            Some((remote, path)) => document(request.method(), remote, &path).await,
            None => text(StatusCode::NOT_FOUND, "not found: MCP is at /mcp\n"),
        }
    }

    async fn mcp(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.get(&request),
            Method::DELETE => self.delete(&request),
            _ => not_allowed("POST, GET, DELETE, OPTIONS"),
        }
    }

    /// 503 until calls can be served (contract §2). Why is for the log, since anybody may ask.
    async fn readiness(&self) -> Response<Body> {
        match self.server.ready().await {
            Ok(()) => text(StatusCode::OK, "ready\n"),
            Err(cause) => {
                debug!("not ready: {cause}");
                text(StatusCode::SERVICE_UNAVAILABLE, "the server can't be reached\n")
            }
        }
    }

    /// The documents by which a client finds out where to get a token are the server's own, where
    /// the token that it gets there is handed on: the server, and its path for this one of ours.
    fn resource_metadata(&self, path: &str) -> Option<(&RemoteServer, String)> {
        let Server::Remote(remote) = &self.server else { return None };
        let path = metadata_path(path, remote.url().path())?;
        self.config.forwards_authorization().then_some((remote, path))
    }
}

/// A document of the server's. Of an answer to HEAD the body stays behind.
async fn document(method: &Method, remote: &RemoteServer, path: &str) -> Response<Body> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    match remote.get(path).await {
        Ok(document) => passed_on(document),
        Err(problem) => error(StatusCode::BAD_GATEWAY, None, REFUSED, &problem.to_string()),
    }
}

/// The path of a document about the server's endpoint: that of the whole host, or that of the
/// endpoint, by our path or its own. It is made of what we know, so that nothing else can be asked
/// for, however a path is written.
fn metadata_path(asked: &str, endpoint: &str) -> Option<String> {
    let endpoint = endpoint.trim_end_matches('/');
    let of = match asked.strip_prefix(RESOURCE_METADATA)? {
        "" => "",
        of if of == PATH || of == endpoint => endpoint,
        _ => return None,
    };
    Some(format!("{RESOURCE_METADATA}{of}"))
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let message = refusal.to_string();
    let status = match refusal {
        Refusal::Token => return unauthorized(&message),
        Refusal::Host | Refusal::Origin => StatusCode::FORBIDDEN,
        Refusal::Repeated(_) | Refusal::UserInHost => StatusCode::BAD_REQUEST,
    };
    error(status, None, REFUSED, &message)
}

/// What a browser asks before it sends what it would not send by itself.
fn preflight() -> Response<Body> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("POST, GET, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers
        .insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
    response
}

/// A page whose Origin was let in may read the answer.
fn add_cors_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k19_only_the_documents_about_the_host_and_the_endpoint_have_a_path() {
        let at = |rest: &str, endpoint: &str| {
            let found = metadata_path(&format!("{RESOURCE_METADATA}{rest}"), endpoint);
            found.map(|path| path[RESOURCE_METADATA.len()..].to_owned())
        };
        for endpoint in ["/api/mcp", "/api/mcp/"] {
            assert_eq!(at("", endpoint).as_deref(), Some(""));
            assert_eq!(at("/mcp", endpoint).as_deref(), Some("/api/mcp"));
            assert_eq!(at("/api/mcp", endpoint).as_deref(), Some("/api/mcp"));
            for other in ["XX", "/", "/api", "/api/mcp/..", "/api/../mcp", "/MCP", "/mcp/x"] {
                assert_eq!(at(other, endpoint), None, "{other}");
            }
        }
        assert_eq!(at("/mcp", "/").as_deref(), Some(""));
    }
}
