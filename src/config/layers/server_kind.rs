//! The server is a command or a URL: which layer has the last word on that.

use crate::config::error::Problem;

use super::layer::Layer;

/// The keys that mean something for one kind of server only, the one that names it first.
const OF_COMMAND: &[&str] = &["command", "args", "env", "cwd"];
const OF_URL: &[&str] = &["url", "transport", "headers", "forward_headers"];

/// Lets the strongest layer that names the server decide which kind it is: what weaker ones say of
/// the other kind is taken out, and so is what they say of another URL than the one that holds,
/// since credentials are for one server.
///
/// # Errors
/// A layer that names both kinds of server, or says something of the kind that it is not.
pub(crate) fn keep_one(layers: &mut [Layer]) -> Result<(), Problem> {
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
