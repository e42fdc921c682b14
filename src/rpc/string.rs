//! JSON strings as raw text.

use std::borrow::Cow;

/// The text that a raw JSON string stands for; `None` where it is no string, or one with a lone
/// surrogate.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
}

/// A text as raw JSON string, with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always valid JSON")
}
