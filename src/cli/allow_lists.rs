//! Client config files with a list of allowed tools: `job_get` must be on it, or models can't
//! fetch what they started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::jobs::handle::JobToolNames;

/// A kind of config file that may hold such lists: path below the home directory or the working
/// directory, the table of servers, and the key of the list.
const FILES: &[(&str, &str, &str)] = &[
    (".gemini/settings.json", "mcpServers", "includeTools"),
    (".qwen/settings.json", "mcpServers", "includeTools"),
    (".codex/config.toml", "mcp_servers", "enabled_tools"),
    (".config/crush/crush.json", "mcp", "enabled_tools"),
    ("crush.json", "mcp", "enabled_tools"),
    (".crush.json", "mcp", "enabled_tools"),
    (".copilot/mcp-config.json", "mcpServers", "tools"),
];

/// One warning for each server behind `unhurry` whose list leaves one of our tools out.
pub(crate) fn warnings(
    environment: &[(OsString, OsString)],
    working_directory: &Path,
    names: &JobToolNames,
) -> Vec<String> {
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map(|(_, path)| PathBuf::from(path));
    let mut warnings = Vec::new();
    let mut folders: Vec<&Path> = home.as_deref().into_iter().chain([working_directory]).collect();
    folders.dedup();
    for folder in folders {
        for (path, servers, list) in FILES {
            let path = folder.join(path);
            let Some(config) = read(&path) else { continue };
            let Some(servers) = config.get(servers).and_then(Value::as_object) else { continue };
            for (server, settings) in servers.iter().filter(|(_, settings)| runs_unhurry(settings))
            {
                warnings.extend(hidden_tools(&path, server, list, settings, names));
            }
        }
    }
    warnings
}

#[expect(clippy::disallowed_methods, reason = "`check` has nothing to do but to read")]
fn read(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    match path.extension()?.to_str()? {
        "toml" => Some(from_toml(text.parse::<toml_edit::DocumentMut>().ok()?.as_item())),
        _ => serde_json::from_str(&text).ok(),
    }
}

/// Tables, arrays and strings: all that matters here.
fn from_toml(item: &toml_edit::Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(key, item)| (key.to_owned(), from_toml(item))).collect();
    }
    if let Some(array) = item.as_array() {
        return array.iter().map(|value| Value::from(value.as_str())).collect();
    }
    Value::from(item.as_str())
}

fn runs_unhurry(settings: &Value) -> bool {
    let command = settings.get("command").into_iter();
    let arguments = settings.get("args").and_then(Value::as_array).into_iter().flatten();
    let mut words = command.chain(arguments).filter_map(Value::as_str);
    words.any(|word| Path::new(word).file_stem().is_some_and(|stem| stem == "unhurry"))
}

/// The warning for one server, where its list leaves one of our tools out.
fn hidden_tools(
    path: &Path,
    server: &str,
    list: &str,
    settings: &Value,
    names: &JobToolNames,
) -> Option<String> {
    let allowed: Vec<_> =
        settings.get(list)?.as_array()?.iter().filter_map(Value::as_str).collect();
    let hidden: Vec<_> = [&names.get, &names.cancel]
        .into_iter()
        .filter(|name| !allowed.iter().any(|entry| *entry == "*" || entry == name))
        .map(String::as_str)
        .collect();
    (!hidden.is_empty()).then(|| {
        format!(
            "{}: `{list}` of server {server:?} hides {}: add {}",
            path.display(),
            hidden.join(" and "),
            if hidden.len() == 1 { "it" } else { "them" }
        )
    })
}
