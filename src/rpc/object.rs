//! One level of a JSON object or array, its parts borrowed as raw text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::string::string;

/// A member of an object: key and value as raw JSON text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a> {
    /// with its quotes
    pub key: &'a str,
    /// raw JSON
    pub value: &'a str,
}

/// The members of one JSON object, in the order of the text. Up to six need no allocation.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(SmallVec<[Member<'a>; 6]>);

impl<'a> Members<'a> {
    /// `None` where `text` is not a JSON object.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The raw value of a member; the last one where the key stands twice.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.position(key).map(|at| self.0[at].value)
    }

    /// A member that is a string, unescaped.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(string)
    }

    /// A member that is an object, parsed one level deeper.
    pub(crate) fn object(&self, key: &str) -> Option<Members<'a>> {
        Members::parse(self.get(key)?)
    }

    /// The index of a member; the last one where the key stands twice.
    pub(crate) fn position(&self, key: &str) -> Option<usize> {
        self.0.iter().rposition(|member| member.is(key))
    }

    /// All members, in the order of the text.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Member<'a>> {
        self.0.iter()
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The member at an index.
    pub(crate) fn at(&self, index: usize) -> Member<'a> {
        self.0[index]
    }
}

impl<'a> Member<'a> {
    /// Whether the key, unescaped, is this one.
    fn is(&self, key: &str) -> bool {
        let inner = &self.key[1..self.key.len() - 1];
        // Almost no key is written with escapes, and one with escapes is longer than what it stands
        // for.
        inner == key || (inner.len() > key.len() && inner.contains('\\') && self.name() == key)
    }

    /// The key, unescaped; empty for a key that has a lone surrogate.
    pub(crate) fn name(&self) -> Cow<'a, str> {
        string(self.key).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = SmallVec::new();
                while let Some(key) = map.next_key::<&'de RawValue>()? {
                    let value = map.next_value::<&'de RawValue>()?;
                    members.push(Member { key: key.get(), value: value.get() });
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The elements of a JSON array as raw text; `None` where `text` is not an array.
pub(crate) fn elements(text: &str) -> Option<Vec<&str>> {
    if !text.starts_with('[') {
        return None;
    }
    let raw: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(raw.into_iter().map(RawValue::get).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_slices_of_the_text() {
        let text = r#"{"a" : 1.10 , "b":{"c":[]}, "\u0061":null}"#;
        let members = Members::parse(text).unwrap();
        assert_eq!(members.len(), 3);
        assert_eq!(members.get("a"), Some("null"));
        assert_eq!(members.object("b").unwrap().get("c"), Some("[]"));
        assert!(Members::parse("[1]").is_none());
    }

    #[test]
    fn elements_of_what_is_no_array_are_none() {
        assert_eq!(elements("[1, {} ,\"x\"]"), Some(vec!["1", "{}", "\"x\""]));
        assert_eq!(elements("{}"), None);
    }
}
