//! JSON as the text it was written in: which bytes belong to which member.
//!
//! Nothing here goes through `serde_json::Value`, so it reads what a `Value` cannot hold: `1e400`,
//! lone surrogates, duplicate keys and any depth of nesting.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON object: its keys, and its values as raw text, in the order of the text.
#[derive(Default)]
pub struct Object<'a>(Vec<(Option<String>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// `None` if `text` is not one JSON object.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The raw text of a member; of a key that is there twice, the last.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let found = self.0.iter().rev().find(|(name, _)| name.as_deref() == Some(key))?;
        Some(found.1.get())
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push((string(key.get()), value));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The raw text of one member of an object.
pub fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    Object::parse(object)?.get(key)
}

/// The raw text of a member's member's … member.
pub fn path<'a>(object: &'a str, keys: &[&str]) -> Option<&'a str> {
    keys.iter().try_fold(object, |text, key| member(text, key))
}

/// The raw texts of the elements of an array.
pub fn elements(array: &str) -> Option<Vec<&str>> {
    let raw: Vec<&RawValue> = serde_json::from_str(array).ok()?;
    Some(raw.into_iter().map(RawValue::get).collect())
}

/// The messages in one line: the elements of a batch, or the line itself.
pub fn messages(line: &str) -> Vec<&str> {
    let line = line.trim_start_matches('\u{feff}').trim();
    if line.starts_with('[') { elements(line).unwrap_or_default() } else { vec![line] }
}

/// The value of a JSON string, if it has one in Rust (a lone surrogate has none).
pub fn string(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}

/// A message with the text of its id replaced, to compare all the rest byte by byte.
pub fn without_id(message: &str) -> String {
    let Some(id) = member(message, "id") else { return message.to_owned() };
    let start = id.as_ptr() as usize - message.as_ptr() as usize;
    format!("{}<id>{}", &message[..start], &message[start + id.len()..])
}
