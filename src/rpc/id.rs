//! Request ids and progress tokens.

use super::string::{quoted, string};

/// A request id or progress token as a key: equal where the JSON values are equal, so that a server
/// which answers `"\u0031"` with `"1"`, or `1.0` with `1`, is still understood. `"1"` and `1`
/// differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Id {
    /// a whole number that fits
    Number(i64),
    /// a string, unescaped
    Text(Box<str>),
    /// any other number, or a string with a lone surrogate: its raw text
    Raw(Box<str>),
}

impl Id {
    /// Reads raw JSON text; `None` for what can be no id (`null`, objects, arrays, booleans).
    pub(crate) fn parse(raw: &str) -> Option<Id> {
        match raw.as_bytes().first()? {
            b'"' => Some(match string(raw) {
                Some(text) => Id::Text(text.into()),
                None => Id::Raw(raw.into()),
            }),
            b'-' | b'0'..=b'9' => Some(Id::number(raw)),
            _ => None,
        }
    }

    fn number(raw: &str) -> Id {
        if let Ok(n) = raw.parse::<i64>() {
            return Id::Number(n);
        }
        // 2^53: beyond it a float no longer tells neighbours apart.
        match raw.parse::<f64>() {
            Ok(x) if x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 => Id::Number(x as i64),
            _ => Id::Raw(raw.into()),
        }
    }

    /// Whether this raw JSON text stands for the same id.
    pub(crate) fn matches_raw(&self, raw: &str) -> bool {
        Id::parse(raw).as_ref() == Some(self)
    }

    /// The id as raw JSON text.
    pub(crate) fn to_json(&self) -> String {
        match self {
            Id::Number(n) => n.to_string(),
            Id::Text(text) => quoted(text),
            Id::Raw(raw) => raw.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_equal_where_a_reader_says_so() {
        assert_eq!(Id::parse("1.0"), Id::parse("1"));
        assert_eq!(Id::parse(r#""\u0031""#), Id::parse(r#""1""#));
        assert_ne!(Id::parse(r#""1""#), Id::parse("1"));
        assert_eq!(Id::parse("null"), None);
        assert_ne!(Id::parse("9007199254740993"), Id::parse("9007199254740992"));
        assert_eq!(Id::parse("1e400").unwrap().to_json(), "1e400");
    }
}
