//! The keys of contract §3 that this version refuses. A feature that arrives takes its lines out of
//! [`UNAVAILABLE`] and puts its keys into `raw.rs`.

use figment::Figment;

use crate::config::error::{KeyPath, Problem};

const STATUS: &str = "metrics and the status page come with a later release";
const STORES: &str = "stores that outlive the process come with a later release";
const TASKS: &str = "native tasks come with a later release";

/// Keys, or keys with one of their values, and why they are refused. `*` is any name.
const UNAVAILABLE: &[(&str, &str)] = &[
    ("server.admin_listen", STATUS),
    ("defaults.tasks", TASKS),
    ("tools.*.tasks", TASKS),
    ("jobs.store = sqlite", STORES),
    ("jobs.store = redis", STORES),
    ("jobs.path", STORES),
    ("jobs.redis_url", STORES),
];

/// The first of `keys` that is refused.
pub(crate) fn first<'a>(
    keys: impl IntoIterator<Item = &'a KeyPath>,
    merged: &Figment,
) -> Option<Problem> {
    keys.into_iter().find_map(|path| {
        let (_, reason) = UNAVAILABLE.iter().find(|(entry, _)| applies(entry, path, merged))?;
        let text = format!("not available in this version: {reason}");
        Some(Problem { path: path.clone(), text })
    })
}

fn applies(entry: &str, path: &KeyPath, merged: &Figment) -> bool {
    match entry.split_once(" = ") {
        None => begins(path, entry),
        Some((key, value)) => {
            begins(path, key) && merged.find_value(key).is_ok_and(|is| is.as_str() == Some(value))
        }
    }
}

/// Whether `path` is the key, or something within it.
fn begins(path: &KeyPath, key: &str) -> bool {
    let names: Vec<&str> = key.split('.').collect();
    path.len() >= names.len()
        && names.iter().zip(path).all(|(name, part)| *name == "*" || name == part)
}
