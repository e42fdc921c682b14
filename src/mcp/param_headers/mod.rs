//! Arguments of a tool that its schema wants as HTTP headers too (2026-07-28): `x-mcp-header` in a
//! property's schema, `Mcp-Param-{name}` in the request, and how any text becomes a header's value.

mod schema;
mod text;

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::rpc::id::Id;
use crate::rpc::object::Members;
use crate::rpc::string::string;

pub(crate) use text::{decode, encode};

/// The keyword in the schema of a property that makes a header of the argument.
const KEYWORD: &str = "x-mcp-header";

/// The arguments of one tool that are headers too.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct DeclaredHeaders(Vec<Parameter>);

/// One argument that is a header too.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    header: HeaderName,
    /// where its value stands in the arguments: the names of the members, outermost first
    path: Path,
}

type Path = Vec<Box<str>>;

/// Why a tool must not be shown to a client over HTTP: its schema breaks the rules of the headers.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{KEYWORD}` {0}")]
pub(crate) struct InvalidHeaders(String);

impl DeclaredHeaders {
    /// Whether no argument is a header.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers that go with a call, for its raw `arguments`. An argument that is absent, `null`
    /// or no text, number or boolean has none.
    pub(crate) fn headers(&self, arguments: Option<&str>) -> Vec<(HeaderName, HeaderValue)> {
        let arguments = self.members(arguments);
        let header = |parameter: &Parameter| {
            let value = Scalar::parse(parameter.value(&arguments)?)?;
            Some((parameter.header.clone(), encode(&value.text())))
        };
        self.0.iter().filter_map(header).collect()
    }

    /// Whether the headers of a request say what its raw `arguments` say.
    ///
    /// # Errors
    /// A sentence on the first header that does not, for the client (code -32020). It holds no
    /// value.
    pub(crate) fn check(&self, arguments: Option<&str>, headers: &HeaderMap) -> Result<(), String> {
        let arguments = self.members(arguments);
        self.0.iter().try_for_each(|parameter| {
            let value = parameter.value(&arguments).and_then(Scalar::parse);
            check_header(headers, &parameter.header, value).map_err(|problem| {
                format!("the header {} {problem} {:?}", parameter.header, parameter.argument())
            })
        })
    }

    /// The members of the arguments; not parsed for a tool without headers, as almost all are.
    fn members<'a>(&self, arguments: Option<&'a str>) -> Members<'a> {
        let arguments = arguments.filter(|_| !self.is_empty());
        arguments.and_then(Members::parse).unwrap_or_default()
    }
}

impl Parameter {
    /// The raw value in the arguments.
    fn value<'a>(&self, arguments: &Members<'a>) -> Option<&'a str> {
        let (first, rest) = self.path.split_first()?;
        rest.iter().try_fold(arguments.get(first)?, |value, name| Members::parse(value)?.get(name))
    }

    /// Its name in the arguments.
    fn argument(&self) -> String {
        self.path.join(".")
    }
}

/// A value that a header can hold.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    /// raw JSON
    Number(&'a str),
    Boolean(&'a str),
}

impl<'a> Scalar<'a> {
    /// From raw JSON; `None` for `null`, objects and arrays.
    fn parse(raw: &'a str) -> Option<Self> {
        match raw.as_bytes().first()? {
            b'"' => string(raw).map(Scalar::Text),
            b't' | b'f' => Some(Scalar::Boolean(raw)),
            b'-' | b'0'..=b'9' => Some(Scalar::Number(raw)),
            _ => None,
        }
    }

    /// The text that the header has.
    fn text(&self) -> Cow<'_, str> {
        match self {
            Scalar::Text(text) => Cow::Borrowed(text),
            Scalar::Boolean(raw) => Cow::Borrowed(raw),
            // `1.0` and `1e0` are integers too, and their decimal form is `1`.
            Scalar::Number(raw) => match Id::parse(raw) {
                Some(Id::Number(number)) => Cow::Owned(number.to_string()),
                _ => Cow::Borrowed(raw),
            },
        }
    }

    /// Whether a header has this value; numbers in any form, as with ids.
    fn equals(&self, header: &str) -> bool {
        match self {
            Scalar::Number(raw) => Id::parse(raw) == Id::parse(header),
            _ => self.text() == header,
        }
    }
}

/// Checks one header: it must be there exactly where there is a value, and be equal to it.
///
/// # Errors
/// A part of a sentence; the name of the argument follows.
fn check_header(
    headers: &HeaderMap,
    name: &HeaderName,
    value: Option<Scalar>,
) -> Result<(), &'static str> {
    let mut headers = headers.get_all(name).iter();
    match (headers.next(), value) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err("is missing for the argument"),
        (Some(_), None) => Err("is there without a value of the argument"),
        // Readers that take the first one and readers that take the last one would differ.
        (Some(_), Some(_)) if headers.next().is_some() => {
            Err("is there more than once for the argument")
        }
        (Some(header), Some(value)) => match decode(header) {
            None => Err("is not legal text or base64 for the argument"),
            Some(header) if value.equals(&header) => Ok(()),
            Some(_) => Err("does not have the value of the argument"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema with these properties.
    pub(super) fn schema(properties: &str) -> String {
        format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
    }

    fn declared(properties: &str) -> DeclaredHeaders {
        DeclaredHeaders::parse(&schema(properties)).unwrap()
    }

    /// Text, integer, boolean and a nested text, with a property that is called like the keyword.
    fn all() -> DeclaredHeaders {
        declared(
            r#""region":{"type":"string","x-mcp-header":"Region"},
               "count":{"x-mcp-header":"Count","type":"integer"},
               "dry":{"type":"boolean","x-mcp-header":"Dry"},
               "to":{"type":"object","properties":{"na\u006de":{"type":"string","x-mcp-header":"To"}}},
               "x-mcp-header":{"type":"string","default":{"x-mcp-header":1}}"#,
        )
    }

    fn sent(arguments: &str) -> Vec<(String, String)> {
        let pair = |(name, value): (HeaderName, HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        all().headers(Some(arguments)).into_iter().map(pair).collect()
    }

    #[test]
    fn a_schema_without_the_keyword_declares_nothing() {
        let nothing = declared(r#""a":{"type":"string"}"#);
        assert!(nothing.is_empty() && nothing.headers(Some(r#"{"a":"b"}"#)).is_empty());
        assert_eq!(nothing.check(Some("[]"), &HeaderMap::new()), Ok(()));
        assert_eq!(DeclaredHeaders::parse("true"), Ok(DeclaredHeaders::default()));
    }

    #[test]
    fn what_is_declared_and_given_is_sent() {
        let arguments = r#"{"count":-7,"region":"us-west1","dry":true,"to":{"name":"x"},"z":1}"#;
        let expected = [
            ("mcp-param-region", "us-west1"),
            ("mcp-param-count", "-7"),
            ("mcp-param-dry", "true"),
            ("mcp-param-to", "x"),
        ];
        assert_eq!(sent(arguments), expected.map(|(n, v)| (n.into(), v.into())));
        assert_eq!(sent(r#"{"region":null,"to":"x","count":[1],"dry":{}}"#), []);
        assert!(all().headers(None).is_empty() && all().headers(Some("[1]")).is_empty());
    }

    #[test]
    fn integers_have_their_decimal_form() {
        for (raw, text) in [("4.2e1", "42"), ("1.0", "1"), ("9007199254740993", "9007199254740993")]
        {
            let expected = [("mcp-param-count".to_owned(), text.to_owned())];
            assert_eq!(sent(&format!(r#"{{"count":{raw}}}"#)), expected);
        }
    }

    /// What `check` says of one header and these arguments, after the name of the header.
    fn checked(arguments: &str, header: &[(&'static str, &'static str)]) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in header {
            headers.append(*name, HeaderValue::from_static(value));
        }
        all().check(Some(arguments), &headers)
    }

    #[test]
    fn headers_must_say_what_the_arguments_say() {
        let region = r#"{"region":"Hello"}"#;
        for value in ["Hello", "=?base64?SGVsbG8=?="] {
            assert_eq!(checked(region, &[("mcp-param-region", value)]), Ok(()));
        }
        let count = r#"{"count":42}"#;
        for value in ["42", "42.0", "4.2e1", "=?base64?NDI=?="] {
            assert_eq!(checked(count, &[("mcp-param-count", value)]), Ok(()));
        }
        assert_eq!(checked("{}", &[("mcp-param-unknown", "1")]), Ok(()));
        assert_eq!(checked(r#"{"region":null}"#, &[]), Ok(()));
        let refused = |arguments, headers: &[_]| checked(arguments, headers).unwrap_err();
        let name = "the header mcp-param-region";
        assert_eq!(refused(region, &[]), format!("{name} is missing for the argument \"region\""));
        for (headers, problem) in [
            (&[("mcp-param-region", "hello")][..], "does not have the value"),
            (&[("mcp-param-region", "=?base64?SGVsbG8?=")], "is not legal text or base64"),
            (&[("mcp-param-region", "Hello"), ("mcp-param-region", "Hello")], "is there more than"),
        ] {
            assert!(refused(region, headers).starts_with(&format!("{name} {problem}")));
        }
        let extra = refused(r#"{"region":null}"#, &[("mcp-param-region", "")]);
        assert_eq!(extra, format!("{name} is there without a value of the argument \"region\""));
        for (arguments, value) in [
            (r#"{"count":42}"#, "43"),
            (r#"{"count":42}"#, "x"),
            (r#"{"count":9007199254740993}"#, "9007199254740992"),
            (r#"{"count":"42"}"#, "42.0"),
        ] {
            assert!(checked(arguments, &[("mcp-param-count", value)]).is_err(), "{arguments}");
        }
        assert!(checked(r#"{"dry":true}"#, &[("mcp-param-dry", "True")]).is_err());
    }

    #[test]
    fn headers_of_our_own_pass_our_own_check() {
        let arguments = r#"{"region":" \u00e9 ","count":1e2,"dry":false,"to":{"name":""}}"#;
        let headers = all().headers(Some(arguments)).into_iter().collect();
        assert_eq!(all().check(Some(arguments), &headers), Ok(()));
    }
}
