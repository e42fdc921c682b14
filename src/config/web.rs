//! Values of HTTP: headers, URLs, hosts, addresses and tokens, each refused where it could not work.
//!
//! As in `value.rs`, no error holds the text that it refuses.

use std::fmt;
use std::net::SocketAddr;

use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use super::server::Token;
use super::upstream::Transport;
use super::value::{FromText, Text, choose};

/// Headers that belong to one hop: whoever speaks HTTP or MCP there makes them itself.
const OF_THE_HOP: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Those that are made of a call's arguments.
const OF_ARGUMENTS: &str = "mcp-param-";

impl FromText for HeaderName {
    const EXPECTED: &'static str = "the name of a header, like \"X-User\"";

    fn from_text(text: &str) -> Result<Self, String> {
        let name = HeaderName::from_bytes(text.as_bytes());
        let name = name.map_err(|_| format!("expected {}", Self::EXPECTED))?;
        if OF_THE_HOP.contains(&name.as_str()) || name.as_str().starts_with(OF_ARGUMENTS) {
            return Err("unhurry makes this header itself; take it out".into());
        }
        Ok(name)
    }
}

impl FromText for HeaderValue {
    const EXPECTED: &'static str = "a header's value: one line of ASCII text";
    const UNIT: Option<&'static str> = Some("");

    fn from_text(text: &str) -> Result<Self, String> {
        // Spaces around it are not part of a value (RFC 9110, 5.5). Other bytes than ASCII have no
        // meaning there that both sides agree on.
        let text = Some(text.trim_matches([' ', '\t'])).filter(|text| text.is_ascii());
        let value = text.and_then(|text| HeaderValue::from_str(text).ok());
        let mut value = value.ok_or_else(|| format!("expected {}", Self::EXPECTED))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// A table of headers.
#[derive(Debug, Default)]
pub(super) struct Headers(pub HeaderMap);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Headers, A::Error> {
                let mut headers = HeaderMap::new();
                while let Some(name) = table.next_key::<String>()? {
                    let header = Header { name: &name, before: &headers };
                    let (name, value) = table.next_value_seed(header)?;
                    headers.insert(name, value);
                }
                Ok(Headers(headers))
            }
        }
        from.deserialize_map(Table)
    }
}

/// One line of the table. Its name is looked at together with its value, so that an error has the
/// path of both.
struct Header<'a> {
    name: &'a str,
    before: &'a HeaderMap,
}

impl<'de> DeserializeSeed<'de> for Header<'_> {
    type Value = (HeaderName, HeaderValue);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        let name = HeaderName::from_text(self.name).map_err(D::Error::custom)?;
        if self.before.contains_key(&name) {
            return Err(D::Error::custom("is here twice: names of headers may have any case"));
        }
        let Text(value) = Text::deserialize(from)?;
        Ok((name, value))
    }
}

impl FromText for Uri {
    const EXPECTED: &'static str = "an http or https URL like \"https://example.com/mcp\"";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.contains('#') {
            return Err("a server's URL has no fragment; take out the `#` and what follows".into());
        }
        let expected = || format!("expected {}", Self::EXPECTED);
        let url: Uri = text.parse().map_err(|_| expected())?;
        let authority = url.authority().ok_or_else(expected)?;
        if authority.as_str().contains('@') {
            return Err("no user or password in a URL: they end up in logs; send them with \
                        `upstream.headers` or `--header`"
                .into());
        }
        let known = matches!(url.scheme_str(), Some("http" | "https"));
        if known && is_host(authority) { Ok(url) } else { Err(expected()) }
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

impl FromText for Transport {
    const EXPECTED: &'static str = "`auto`, `streamable-http` or `sse`";

    fn from_text(text: &str) -> Result<Self, String> {
        let known =
            [("auto", Self::Auto), ("streamable-http", Self::StreamableHttp), ("sse", Self::Sse)];
        choose(text, known, Self::EXPECTED)
    }
}

impl FromText for SocketAddr {
    const EXPECTED: &'static str = "an IP address and a port, like \"127.0.0.1:8808\" or \"[::1]:8808\"; \
         \"0.0.0.0:8808\" is every address of this machine";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("expected {}", Self::EXPECTED))
    }
}

/// What lets in every origin, or every host.
const ANY: &str = "*";

/// What a browser sends as `Origin`, in lower case as there, or [`ANY`].
#[derive(Debug)]
pub(super) struct Origin(pub String);

impl FromText for Origin {
    const EXPECTED: &'static str = "an origin like \"https://app.example.com\" (scheme, host, perhaps a port; no path), or \"*\"";

    fn from_text(text: &str) -> Result<Self, String> {
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
            Err(format!("expected {}", Self::EXPECTED))
        }
    }
}

/// What may stand in `Host`, in lower case, or [`ANY`].
#[derive(Debug)]
pub(super) struct Host(pub String);

impl FromText for Host {
    const EXPECTED: &'static str =
        "a host like \"mcp.example.com\" or \"[::1]\", with or without a port, or \"*\"";

    fn from_text(text: &str) -> Result<Self, String> {
        let host = text.to_ascii_lowercase();
        let whole = |host: Authority| is_host(&host) && !host.as_str().contains(['@', '*']);
        if text == ANY || host.parse().is_ok_and(whole) {
            Ok(Host(host))
        } else {
            Err(format!("expected {}", Self::EXPECTED))
        }
    }
}

impl FromText for Token {
    const EXPECTED: &'static str = "a token: visible ASCII characters, no spaces";
    const UNIT: Option<&'static str> = Some("");

    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("must not be empty; take the key out where no token is needed".into());
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("expected {}", Self::EXPECTED));
        }
        Ok(Token::new(text))
    }
}
