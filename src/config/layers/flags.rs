//! The command line as a layer (contract §2).

use std::path::PathBuf;

use figment::value::Value;
use http::HeaderName;

use crate::config::error::{ConfigError, Place};

use super::environment::typed;
use super::expand::{Variables, expand};
use super::layer::Layer;

/// What the command line says; it wins over everything (contract §2).
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config`: the config file, which must exist.
    pub config_file: Option<PathBuf>,
    /// `--answer-within`: `[defaults] answer_within`, as typed.
    pub answer_within: Option<String>,
    /// `--env`: `NAME=VALUE` pairs for the child; `${VAR}` in a value is expanded.
    pub env: Vec<String>,
    /// `--header`: `Name: value` pairs for the server; `${VAR}` in a value is expanded.
    pub headers: Vec<String>,
    /// `--listen`: `[server] listen`, as typed.
    pub listen: Option<String>,
    /// `--store`: `[jobs] store`, as typed.
    pub store: Option<String>,
    /// `--tool-prefix`: `[jobs] tool_prefix`, as typed.
    pub tool_prefix: Option<String>,
    /// The server's URL, taken as it is. Replaces what weaker layers say of the server.
    pub url: Option<String>,
    /// The server's program and its arguments, taken as they are; empty when there is a URL, or the
    /// config file names the server. Replaces `upstream.command` and `upstream.args` both.
    pub command: Vec<String>,
}

/// What the command line sets.
///
/// # Errors
/// An `--env` that is not `NAME=VALUE`, a `--header` that is not `Name: value`, or an unset variable
/// in one of them.
pub(crate) fn from_overrides(
    flags: &Overrides,
    variables: &Variables,
) -> Result<Layer, ConfigError> {
    let mut layer = Layer::default();
    let mut set = |path: &[&str], value: Value, flag| {
        layer.set(path.iter().map(|name| name.to_string()).collect(), value, Place::Flag(flag));
    };
    if let Some((program, args)) = flags.command.split_first() {
        set(&["upstream", "command"], program.as_str().into(), "command line");
        // Also when there are none: the file's belong to another command.
        set(&["upstream", "args"], args.to_vec().into(), "command line");
    }
    if let Some(url) = &flags.url {
        set(&["upstream", "url"], url.as_str().into(), "command line");
    }
    if let Some(address) = &flags.listen {
        set(&["server", "listen"], address.as_str().into(), "--listen");
    }
    if let Some(duration) = &flags.answer_within {
        set(&["defaults", "answer_within"], typed(duration), "--answer-within");
    }
    if let Some(kind) = &flags.store {
        set(&["jobs", "store"], kind.as_str().into(), "--store");
    }
    if let Some(prefix) = &flags.tool_prefix {
        set(&["jobs", "tool_prefix"], prefix.as_str().into(), "--tool-prefix");
    }
    for pair in &flags.env {
        let (name, value) = child_variable(pair, variables)?;
        set(&["upstream", "env", name], value.into(), "--env");
    }
    for pair in &flags.headers {
        let (name, value) = header(pair, variables)?;
        set(&["upstream", "headers", name.as_str()], value.into(), "--header");
    }
    Ok(layer)
}

fn child_variable<'a>(
    pair: &'a str,
    variables: &Variables,
) -> Result<(&'a str, String), ConfigError> {
    let pair = pair.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| refused("--env", &["env"], "expected NAME=VALUE"))?;
    let value = expand(value, variables);
    Ok((name, value.map_err(|problem| refused("--env", &["env", name], &problem.to_string()))?))
}

/// The name is taken apart here already, since what is no name may be a value in the wrong place.
fn header(pair: &str, variables: &Variables) -> Result<(HeaderName, String), ConfigError> {
    let parts = pair.split_once(':').and_then(|(name, value)| {
        Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
    });
    let no_pair = || refused("--header", &["headers"], "expected 'Name: value'");
    let (name, value) = parts.ok_or_else(no_pair)?;
    match expand(value, variables) {
        Ok(value) => Ok((name, value)),
        Err(problem) => Err(refused("--header", &["headers", name.as_str()], &problem.to_string())),
    }
}

/// A flag for a key of `[upstream]` that can't be read.
fn refused(flag: &'static str, path: &[&str], problem: &str) -> ConfigError {
    let path = ["upstream"].iter().chain(path).map(|name| name.to_string()).collect();
    ConfigError::Key { place: Place::Flag(flag), path, problem: problem.into() }
}
