//! Headers that a configuration may name, and tables of them.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use crate::mcp;

use super::error::ValueError;
use super::text::{FromText, Text};

/// Headers that belong to one hop: whoever speaks HTTP or MCP there makes them itself.
static OF_THE_HOP: [HeaderName; 18] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    mcp::header::LAST_EVENT_ID,
    mcp::header::METHOD,
    mcp::header::NAME,
    mcp::header::PROTOCOL_VERSION,
    mcp::header::SESSION_ID,
];

impl FromText for HeaderName {
    const FORM: &'static str = "the name of a header, like \"X-User\"";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        let name = HeaderName::from_bytes(text.as_bytes());
        let name = name.map_err(|_| ValueError::form(Self::FORM))?;
        if OF_THE_HOP.contains(&name) || name.as_str().starts_with(mcp::header::PARAM_PREFIX) {
            return Err(ValueError::HeaderOfTheHop);
        }
        Ok(name)
    }
}

impl FromText for HeaderValue {
    const FORM: &'static str = "a header's value: one line of ASCII text";
    const UNIT: Option<&'static str> = Some("");

    fn from_text(text: &str) -> Result<Self, ValueError> {
        // Spaces around it are not part of a value (RFC 9110, 5.5). Other bytes than ASCII have no
        // meaning there that both sides agree on.
        let text = Some(text.trim_matches([' ', '\t'])).filter(|text| text.is_ascii());
        let value = text.and_then(|text| HeaderValue::from_str(text).ok());
        let mut value = value.ok_or_else(|| ValueError::form(Self::FORM))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// A table of headers.
#[derive(Debug, Default)]
pub(crate) struct Headers(pub HeaderMap);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Headers, A::Error> {
                let mut headers = HeaderMap::new();
                while let Some(name) = table.next_key::<String>()? {
                    let entry = Entry { name: &name, before: &headers };
                    let (name, value) = table.next_value_seed(entry)?;
                    headers.insert(name, value);
                }
                Ok(Headers(headers))
            }
        }
        from.deserialize_map(Table)
    }
}

/// One line of the table. Its name is looked at together with its value, so that an error has the
/// path of both.
struct Entry<'a> {
    name: &'a str,
    before: &'a HeaderMap,
}

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = (HeaderName, HeaderValue);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        let name = HeaderName::from_text(self.name).map_err(D::Error::custom)?;
        if self.before.contains_key(&name) {
            return Err(D::Error::custom(ValueError::HeaderTwice));
        }
        let Text(value) = Text::deserialize(from)?;
        Ok((name, value))
    }
}
