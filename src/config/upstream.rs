//! `[upstream]`: the server, either a command or a URL, and which layer has the last word on that.

use std::fmt;
use std::path::PathBuf;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Uri};

use super::error::{ConfigError, Problem};
use super::layers::Layer;
use super::raw;
use super::value::Text;

/// The server.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// A child process that speaks over stdio.
    Command(Command),
    /// A server that is reached over HTTP.
    Remote(Remote),
}

/// How a child is started.
#[derive(Clone)]
pub struct Command {
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
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("program", &self.program).finish_non_exhaustive()
    }
}

/// How a server over HTTP is reached.
#[derive(Clone)]
pub struct Remote {
    /// Absolute, `http` or `https`, with a host, without credentials and fragment. Its query may be
    /// a secret: what is shown to anybody is [`Remote::address`].
    pub url: Uri,
    /// Which of MCP's transports it speaks.
    pub transport: Transport,
    /// Sent with every request; their values are marked as sensitive.
    pub headers: HeaderMap,
    /// Headers of a client's request that go with it to the server; none of them is in `headers`.
    pub forward_headers: Vec<HeaderName>,
}

impl Remote {
    /// The URL without its query, for messages and logs.
    pub fn address(&self) -> String {
        let scheme = self.url.scheme_str().unwrap_or_default();
        let authority = self.url.authority().map(|authority| authority.as_str());
        format!("{scheme}://{}{}", authority.unwrap_or_default(), self.url.path())
    }
}

/// Header values and queries hold secrets, so they are not shown.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("address", &self.address())
            .field("transport", &self.transport)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("forward_headers", &self.forward_headers)
            .finish()
    }
}

/// How MCP is spoken over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Found out from the server's answers.
    #[default]
    Auto,
    /// 2025-03-26 and later.
    StreamableHttp,
    /// HTTP+SSE, 2024-11-05.
    Sse,
}

impl TryFrom<raw::Upstream> for Upstream {
    type Error = ConfigError;

    fn try_from(raw: raw::Upstream) -> Result<Self, ConfigError> {
        if let Some(url) = raw.url {
            return Ok(Upstream::Remote(Remote {
                url,
                transport: raw.transport.unwrap_or_default(),
                headers: raw.headers.0,
                forward_headers: once_each(raw.forward_headers),
            }));
        }
        let program = raw.command.filter(|program| !program.is_empty());
        Ok(Upstream::Command(Command {
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

/// The keys that mean something for one kind of server only, the one that names it first.
const OF_COMMAND: &[&str] = &["command", "args", "env", "cwd"];
const OF_URL: &[&str] = &["url", "transport", "headers", "forward_headers"];

/// Lets the strongest layer that names the server decide which kind it is: what weaker ones say of
/// the other kind is taken out, and so is what they say of another URL than the one that holds,
/// since credentials are for one server.
///
/// # Errors
/// A layer that names both kinds of server, or says something of the kind that it is not.
pub(super) fn settle(layers: &mut [Layer]) -> Result<(), Problem> {
    let both = |layer: &Layer| has(layer, "command") && has(layer, "url");
    if layers.iter().any(both) {
        return Err(problem("url", "a server is either a `command` or a `url`; take one out"));
    }
    let named = |layer: &Layer| has(layer, "command") || has(layer, "url");
    let Some(strongest) = layers.iter().rposition(named) else { return Ok(()) };
    let (others, text) = if has(&layers[strongest], "url") {
        (OF_COMMAND, "only for a `command`, and the server has a `url`; take it out")
    } else {
        (OF_URL, "only for a `url`, and the server is a `command`; take it out")
    };
    let (weaker, rest) = layers.split_at_mut(strongest);
    for layer in weaker {
        let replaced = if has(layer, "url") { OF_URL } else { &[] };
        others.iter().chain(replaced).for_each(|key| layer.remove("upstream", key));
    }
    let stray = others.iter().find(|key| rest.iter().any(|layer| has(layer, key)));
    stray.map_or(Ok(()), |key| Err(problem(key, text)))
}

/// Whether a layer sets this key of `[upstream]`. An empty text sets nothing: that is how a variable
/// is taken back where it can't be unset.
fn has(layer: &Layer, key: &str) -> bool {
    layer.value("upstream", key).is_some_and(|value| value.as_str() != Some(""))
}

fn problem(key: &str, text: &str) -> Problem {
    Problem { path: vec!["upstream".into(), key.into()], text: text.into() }
}

/// Refuses to forward what has to have another value, or must not leave (contract §10).
pub(super) fn check_forwarding(upstream: &raw::Upstream, has_token: bool) -> Result<(), Problem> {
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
