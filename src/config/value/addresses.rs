//! Where a server or a client is: URLs, socket addresses, hosts and origins.

use std::net::SocketAddr;

use http::Uri;
use http::uri::Authority;

use super::error::ValueError;
use super::text::FromText;

impl FromText for Uri {
    const FORM: &'static str = "an http or https URL like \"https://example.com/mcp\"";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        if text.contains('#') {
            return Err(ValueError::Fragment);
        }
        let no_url = || ValueError::form(Self::FORM);
        let url: Uri = text.parse().map_err(|_| no_url())?;
        let authority = url.authority().ok_or_else(no_url)?;
        if authority.as_str().contains('@') {
            return Err(ValueError::UserInUrl);
        }
        let known = matches!(url.scheme_str(), Some("http" | "https"));
        if known && is_host(authority) { Ok(url) } else { Err(no_url()) }
    }
}

/// Whether this is a host and, where there is a `:`, a port.
fn is_host(authority: &Authority) -> bool {
    let host = authority.host();
    let port = authority.as_str().strip_prefix(host);
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    !host.is_empty()
        && port.is_some_and(|port| port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

impl FromText for SocketAddr {
    const FORM: &'static str = "an IP address and a port, like \"127.0.0.1:8808\" or \"[::1]:8808\"; \
         \"0.0.0.0:8808\" is every address of this machine";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|_| ValueError::form(Self::FORM))
    }
}

/// What lets in every origin, or every host.
const ANY: &str = "*";

/// What a browser sends as `Origin`, in lower case as there, or [`ANY`].
#[derive(Debug)]
pub(crate) struct Origin(pub String);

impl FromText for Origin {
    const FORM: &'static str = "an origin like \"https://app.example.com\" (scheme, host, perhaps a port; no path), or \"*\"";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        let origin = text.to_ascii_lowercase();
        let url: Option<Uri> = origin.parse().ok();
        let whole = |url: &Uri| {
            let (Some(scheme), Some(host)) = (url.scheme_str(), url.authority()) else {
                return false;
            };
            is_host(host) && !host.as_str().contains('*') && origin == format!("{scheme}://{host}")
        };
        if text == ANY || url.as_ref().is_some_and(whole) {
            Ok(Origin(origin))
        } else {
            Err(ValueError::form(Self::FORM))
        }
    }
}

/// What may stand in `Host`, in lower case, or [`ANY`].
#[derive(Debug)]
pub(crate) struct Host(pub String);

impl FromText for Host {
    const FORM: &'static str =
        "a host like \"mcp.example.com\" or \"[::1]\", with or without a port, or \"*\"";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        let host = text.to_ascii_lowercase();
        let whole = |host: Authority| is_host(&host) && !host.as_str().contains(['@', '*']);
        if text == ANY || host.parse().is_ok_and(whole) {
            Ok(Host(host))
        } else {
            Err(ValueError::form(Self::FORM))
        }
    }
}
