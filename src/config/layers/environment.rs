//! Environment variables as a layer (contract §2).

use std::str::FromStr;

use figment::value::Value;

use crate::config::error::{KeyPath, Place};

use super::expand::Variables;
use super::layer::Layer;

/// The tables that `UNHURRY_<SECTION>__<KEY>` can mean; all other names are somebody else's.
const SECTIONS: &[&str] = &["upstream", "server", "defaults", "tools", "clients", "jobs"];

/// The variables of the form `UNHURRY_<SECTION>__<KEY>`.
pub(crate) fn from_variables(variables: &Variables) -> Layer {
    let mut layer = Layer::default();
    let mut variables: Vec<_> = variables.iter().collect();
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
fn path_of(variable: &str) -> Option<KeyPath> {
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
fn parse(path: &KeyPath, value: &str) -> Value {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names[..] {
        ["upstream", "command" | "cwd" | "url"]
        | ["upstream", "env" | "headers", _]
        | ["server", "listen" | "identity_header" | "token"]
        | ["jobs", "tool_prefix"] => value.into(),
        _ => typed(value),
    }
}

/// A number, `true`, `false`, `[list]` or `{table}` where `value` looks like one, else text.
pub(crate) fn typed(value: &str) -> Value {
    let Ok(value) = Value::from_str(value);
    value
}
