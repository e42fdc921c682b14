//! `[server]`: how clients reach `unhurry serve`, and who is let in.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::HeaderName;
use http::header::AUTHORIZATION;

use super::raw::ServerSection;
use super::value::{BearerToken, Text};

/// `[server]`, but for `max_message`, which holds for every client.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The `Origin` values that are let in, besides requests without one; in lower case. `*` lets
    /// in every one.
    pub allowed_origins: Vec<String>,
    /// The hosts of `Host` values that are let in, in lower case; one without a port stands for
    /// every port, `*` for every host.
    pub allowed_hosts: Vec<String>,
    /// The header that says who a caller is. Whoever wants to know asks [`ServerConfig::identity`].
    pub identity_header: HeaderName,
    /// What clients must send as their bearer token.
    pub token: Option<BearerToken>,
    /// Sessions at a time; at least 1.
    pub max_sessions: usize,
    /// A session that is idle for so long ends; more than 0.
    pub session_idle: Duration,
    /// What runs at the end may go on for so long.
    pub drain_timeout: Duration,
}

impl ServerConfig {
    /// The header that says who a caller is (contract §10). There is none where all callers send
    /// the same one, which is `server.token`.
    pub fn identity(&self) -> Option<&HeaderName> {
        let shared = self.token.is_some() && self.identity_header == AUTHORIZATION;
        (!shared).then_some(&self.identity_header)
    }
}

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8808);
/// The names of this machine: a page on another site cannot reach us by its own (DNS rebinding).
const ALLOWED_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
const MAX_SESSIONS: usize = 1000;
const SESSION_IDLE: Duration = Duration::from_mins(30);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

impl From<ServerSection> for ServerConfig {
    fn from(raw: ServerSection) -> Self {
        let hosts = raw.allowed_hosts.map(|hosts| hosts.into_iter().map(|Text(host)| host.0));
        Self {
            listen: raw.listen.unwrap_or(LISTEN),
            allowed_origins: raw.allowed_origins.into_iter().map(|Text(origin)| origin.0).collect(),
            allowed_hosts: hosts.map_or(ALLOWED_HOSTS.map(String::from).into(), Iterator::collect),
            identity_header: raw.identity_header.unwrap_or(AUTHORIZATION),
            token: raw.token,
            max_sessions: raw.max_sessions.unwrap_or(MAX_SESSIONS),
            session_idle: raw.session_idle.unwrap_or(SESSION_IDLE),
            drain_timeout: raw.drain_timeout.unwrap_or(DRAIN_TIMEOUT),
        }
    }
}
