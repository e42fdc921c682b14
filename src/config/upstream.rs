//! `[upstream]`: the server, either a command or a URL.

use std::fmt;
use std::path::PathBuf;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Uri};

use super::error::{ConfigError, Problem};
use super::raw::UpstreamSection;
use super::value::{Text, Transport};

/// The server.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// A child process that speaks over stdio.
    Command(CommandConfig),
    /// A server that is reached over HTTP.
    Remote(RemoteConfig),
}

/// How a child is started.
#[derive(Clone)]
pub struct CommandConfig {
    /// The program, looked up on the `PATH` where it has no slash.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that are added to our own environment, or replace some of it.
    pub env: Vec<(String, String)>,
    /// Its directory; ours where there is none.
    pub cwd: Option<PathBuf>,
}

/// Arguments and variables hold secrets, so only the program is shown.
impl fmt::Debug for CommandConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandConfig").field("program", &self.program).finish_non_exhaustive()
    }
}

/// How a server over HTTP is reached.
#[derive(Clone)]
pub struct RemoteConfig {
    /// Absolute, `http` or `https`, with a host, without credentials and fragment. Its query may be
    /// a secret: what is shown to anybody is [`RemoteConfig::address`].
    pub url: Uri,
    /// Which of MCP's transports it speaks.
    pub transport: Transport,
    /// Sent with every request; their values are marked as sensitive.
    pub headers: HeaderMap,
    /// Headers of a client's request that go with it to the server; none of them is in `headers`.
    pub forward_headers: Vec<HeaderName>,
}

impl RemoteConfig {
    /// The URL without its query, for messages and logs.
    pub fn address(&self) -> String {
        let scheme = self.url.scheme_str().unwrap_or_default();
        let authority = self.url.authority().map(|authority| authority.as_str());
        format!("{scheme}://{}{}", authority.unwrap_or_default(), self.url.path())
    }
}

/// Header values and queries hold secrets, so they are not shown.
impl fmt::Debug for RemoteConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteConfig")
            .field("address", &self.address())
            .field("transport", &self.transport)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("forward_headers", &self.forward_headers)
            .finish()
    }
}

impl TryFrom<UpstreamSection> for Upstream {
    type Error = ConfigError;

    fn try_from(raw: UpstreamSection) -> Result<Self, ConfigError> {
        if let Some(url) = raw.url {
            return Ok(Upstream::Remote(RemoteConfig {
                url,
                transport: raw.transport.unwrap_or_default(),
                headers: raw.headers.0,
                forward_headers: once_each(raw.forward_headers),
            }));
        }
        let program = raw.command.filter(|program| !program.is_empty());
        Ok(Upstream::Command(CommandConfig {
            program: program.ok_or(ConfigError::NoServer)?,
            args: raw.args,
            env: raw.env.into_iter().collect(),
            cwd: raw.cwd,
        }))
    }
}

fn once_each(names: Vec<Text<HeaderName>>) -> Vec<HeaderName> {
    let mut once = Vec::new();
    for Text(name) in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// Refuses to forward what has to have another value, or must not leave (contract §10).
///
/// # Errors
/// The first name in `forward_headers` that is one of these.
pub(super) fn check_forwarding(upstream: &UpstreamSection, has_token: bool) -> Result<(), Problem> {
    for (index, Text(name)) in upstream.forward_headers.iter().enumerate() {
        let text = if has_token && name == AUTHORIZATION {
            "`authorization` carries `server.token`, which is for unhurry alone; give the server \
             its own one in `upstream.headers`"
        } else if upstream.headers.0.contains_key(name) {
            "has a value in `upstream.headers` already; take it out here or there"
        } else {
            continue;
        };
        let path = ["upstream", "forward_headers", &index.to_string()].map(String::from);
        return Err(Problem { path: path.into(), text: text.into() });
    }
    Ok(())
}
