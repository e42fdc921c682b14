//! `${VAR}` and `${VAR:-default}` in string values (contract §3).

/// The environment as it was handed in: names and values.
pub(super) type Environment = [(String, String)];

/// The value of a variable; of several with one name the last.
pub(super) fn variable<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// `text` with its variables replaced; `$${` becomes a plain `${`.
///
/// What was put in is not looked at again, so a variable cannot name another one.
///
/// # Errors
/// A sentence about an unset variable or a malformed `${`. It never holds a variable's value.
pub(super) fn expand(text: &str, environment: &Environment) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = (&rest[..start], &rest[start + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
        } else {
            let end = after.find('}').ok_or(UNCLOSED)?;
            expanded.push_str(before);
            expanded.push_str(reference(&after[..end], environment)?);
            rest = &after[end + 1..];
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

const UNCLOSED: &str = "`${` without its `}`; a plain `${` is written `$${`";

/// What stands for `VAR` or `VAR:-default`. As in a shell, the default also replaces an empty value.
fn reference<'a>(inner: &'a str, environment: &'a Environment) -> Result<&'a str, String> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if !is_name(name) {
        return Err("`${…}` takes the name of a variable, or `NAME:-default`; \
                    a plain `${` is written `$${`"
            .into());
    }
    match (variable(environment, name), default) {
        (None | Some(""), Some(default)) => Ok(default),
        (Some(value), _) => Ok(value),
        (None, None) => Err(format!(
            "the environment variable {name} is not set; set it, or write `${{{name}:-default}}`"
        )),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
