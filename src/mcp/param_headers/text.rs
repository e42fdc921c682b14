//! Any text as the value of a header of MCP, `Mcp-Name` or `Mcp-Param-*`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// What stands around a value in base64.
const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// A text as the value of `Mcp-Name` or `Mcp-Param-*`: as it is, or in base64 where it would not
/// arrive like that.
pub(crate) fn encode(text: &str) -> HeaderValue {
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    // Spaces at the ends are not part of a value, and would be lost.
    let whole = text.trim_matches(' ') == text;
    let like_encoded = text.starts_with(OPENING) && text.ends_with(CLOSING);
    let value = if visible && whole && !like_encoded {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::try_from([OPENING, &STANDARD.encode(text), CLOSING].concat())
    };
    value.expect("visible ASCII is legal in a header")
}

/// The text that the value of `Mcp-Name` or `Mcp-Param-*` stands for; `None` for bytes that are no
/// visible ASCII, and for base64 that is broken or no UTF-8.
pub(crate) fn decode(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let text = value.to_str().ok()?;
    match text.strip_prefix(OPENING).and_then(|text| text.strip_suffix(CLOSING)) {
        None => Some(Cow::Borrowed(text)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_only_where_they_have_to_be() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("a b", "a b"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?base64?open", "=?base64?open"),
        ] {
            assert_eq!(encode(text), value);
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn broken_values_are_not_decoded() {
        for value in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?="] {
            assert_eq!(decode(&HeaderValue::from_static(value)), None, "{value}");
        }
        assert_eq!(decode(&HeaderValue::from_bytes("é".as_bytes()).unwrap()), None);
        let capital = HeaderValue::from_static("=?BASE64?SGVsbG8=?=");
        assert_eq!(decode(&capital).as_deref(), Some("=?BASE64?SGVsbG8=?="));
    }
}
