//! `${VAR}` and `${VAR:-default}` in string values (contract §3).

/// The environment as it was handed in: names and values.
pub(crate) type Variables = [(String, String)];

/// Why a text can't be expanded. Only the name of a variable stands in it, never a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExpandError {
    #[error("`${{` without its `}}`; a plain `${{` is written `$${{`")]
    Unclosed,
    #[error(
        "`${{…}}` takes the name of a variable, or `NAME:-default`; a plain `${{` is written `$${{`"
    )]
    NoName,
    #[error("the environment variable {0} is not set; set it, or write `${{{0}:-default}}`")]
    Unset(String),
}

/// The value of a variable; of several with one name the last.
pub(crate) fn variable<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// `text` with its variables replaced; `$${` becomes a plain `${`.
///
/// What was put in is not looked at again, so a variable cannot name another one.
///
/// # Errors
/// An unset variable, or a malformed `${`.
pub(crate) fn expand(text: &str, variables: &Variables) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = (&rest[..start], &rest[start + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
        } else {
            let end = after.find('}').ok_or(ExpandError::Unclosed)?;
            expanded.push_str(before);
            expanded.push_str(reference(&after[..end], variables)?);
            rest = &after[end + 1..];
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// What stands for `VAR` or `VAR:-default`. As in a shell, the default also replaces an empty value.
fn reference<'a>(inner: &'a str, variables: &'a Variables) -> Result<&'a str, ExpandError> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if !is_name(name) {
        return Err(ExpandError::NoName);
    }
    match (variable(variables, name), default) {
        (None | Some(""), Some(default)) => Ok(default),
        (Some(value), _) => Ok(value),
        (None, None) => Err(ExpandError::Unset(name.to_owned())),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
