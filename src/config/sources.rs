//! The two layers that are no file: environment variables and command line flags (contract §2).

use std::str::FromStr;

use figment::value::Value;
use http::HeaderName;

use super::Overrides;
use super::error::{ConfigError, Path, Place};
use super::expand::{Environment, expand};
use super::layers::Layer;

/// The tables that `UNHURRY_<SECTION>__<KEY>` can mean; all other names are somebody else's.
const SECTIONS: &[&str] = &["upstream", "server", "defaults", "tools", "clients", "jobs"];

/// The variables of the form `UNHURRY_<SECTION>__<KEY>`.
pub(super) fn from_environment(environment: &Environment) -> Layer {
    let mut layer = Layer::default();
    let mut variables: Vec<_> = environment.iter().collect();
    // A whole table comes before its own keys, so that these win.
    variables.sort();
    for (name, value) in variables {
        if let Some(path) = path_of(name) {
            let value = parse(&path, value);
            layer.set(path, value, Place::Variable(name.clone()));
        }
    }
    layer
}

/// What a variable sets. Names of tools, clients and the child's variables keep their case, and may
/// hold `__` themselves.
fn path_of(variable: &str) -> Option<Path> {
    let (section, rest) = variable.strip_prefix("UNHURRY_")?.split_once("__")?;
    let section = section.to_lowercase();
    if !SECTIONS.contains(&section.as_str()) {
        return None;
    }
    let names = match (section.as_str(), rest.split_once("__"), rest.rsplit_once("__")) {
        ("tools" | "clients", _, Some((name, key))) => vec![name.into(), key.to_lowercase()],
        ("tools" | "clients", _, None) => vec![rest.into()],
        (_, Some((key, name)), _) => vec![key.to_lowercase(), name.into()],
        _ => vec![rest.to_lowercase()],
    };
    Some([vec![section], names].concat())
}

/// A variable's value: text as it is where the key takes any text, else a number, `true`, `false`,
/// `[list]` or `{table}` where it looks like one.
fn parse(path: &Path, value: &str) -> Value {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names[..] {
        ["upstream", "command" | "cwd" | "url"]
        | ["upstream", "env" | "headers", _]
        | ["server", "listen" | "identity_header" | "token"]
        | ["jobs", "tool_prefix"] => value.into(),
        _ => typed(value),
    }
}

fn typed(value: &str) -> Value {
    let Ok(value) = Value::from_str(value);
    value
}

/// What the command line sets.
///
/// # Errors
/// An `--env` that is not `NAME=VALUE`, a `--header` that is not `Name: value`, or an unset variable
/// in one of them.
pub(super) fn from_flags(
    flags: &Overrides,
    environment: &Environment,
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
        let (name, value) = child_variable(pair, environment)?;
        set(&["upstream", "env", name], value.into(), "--env");
    }
    for pair in &flags.headers {
        let (name, value) = header(pair, environment)?;
        set(&["upstream", "headers", name.as_str()], value.into(), "--header");
    }
    Ok(layer)
}

fn child_variable<'a>(
    pair: &'a str,
    environment: &Environment,
) -> Result<(&'a str, String), ConfigError> {
    let pair = pair.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| refused("--env", &["env"], "expected NAME=VALUE"))?;
    let value = expand(value, environment);
    Ok((name, value.map_err(|problem| refused("--env", &["env", name], &problem))?))
}

/// The name is taken apart here already, since what is no name may be a value in the wrong place.
fn header(pair: &str, environment: &Environment) -> Result<(HeaderName, String), ConfigError> {
    let parts = pair.split_once(':').and_then(|(name, value)| {
        Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
    });
    let no_pair = || refused("--header", &["headers"], "expected 'Name: value'");
    let (name, value) = parts.ok_or_else(no_pair)?;
    match expand(value, environment) {
        Ok(value) => Ok((name, value)),
        Err(problem) => Err(refused("--header", &["headers", name.as_str()], &problem)),
    }
}

/// A flag for a key of `[upstream]` that can't be read.
fn refused(flag: &'static str, path: &[&str], problem: &str) -> ConfigError {
    let path = ["upstream"].iter().chain(path).map(|name| name.to_string()).collect();
    ConfigError::Key { place: Place::Flag(flag), path, problem: problem.into() }
}
