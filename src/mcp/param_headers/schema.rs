//! Which arguments the schema of a tool declares as headers, and the rules for that.

use http::HeaderName;
use memchr::memmem;

use super::{DeclaredHeaders, InvalidHeaders, KEYWORD, Parameter};
use crate::mcp::header::PARAM_PREFIX;
use crate::rpc::object::{Members, elements};
use crate::rpc::string::string;

/// The types that a header can hold.
const TYPES: [&str; 3] = ["string", "integer", "boolean"];
/// Keywords that hold schemas by names that are no properties of the arguments.
const NAMED_SCHEMAS: [&str; 5] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"];
/// Keywords whose values hold no schemas.
const VALUES: [&str; 5] = ["const", "default", "dependentRequired", "enum", "examples"];
/// How deep schemas may be nested; many JSON readers refuse deeper ones too.
const DEPTH: usize = 64;

impl DeclaredHeaders {
    /// Reads the `inputSchema` of a tool, given as raw JSON.
    ///
    /// # Errors
    /// The first keyword that breaks a rule: for the log, together with the tool's name.
    pub(crate) fn parse(input_schema: &str) -> Result<DeclaredHeaders, InvalidHeaders> {
        let mut declared = DeclaredHeaders::default();
        declared.read_schema(input_schema, Some(&[]), DEPTH)?;
        Ok(declared)
    }

    /// Looks for the keyword in a schema, or in a list of them. `path` is where the value stands
    /// that the schema describes; there is none where the way there is more than names of
    /// properties, and the keyword is forbidden then.
    fn read_schema(
        &mut self,
        schema: &str,
        path: Option<&[Box<str>]>,
        depth: usize,
    ) -> Result<(), InvalidHeaders> {
        // Nobody writes these letters with escapes.
        if memmem::find(schema.as_bytes(), KEYWORD.as_bytes()).is_none() {
            return Ok(());
        }
        let depth = depth.checked_sub(1).ok_or_else(|| invalid("stands too deep"))?;
        if let Some(schemas) = elements(schema) {
            return schemas
                .into_iter()
                .try_for_each(|schema| self.read_schema(schema, None, depth));
        }
        let Some(members) = Members::parse(schema) else { return Ok(()) };
        members.iter().try_for_each(|member| match &*member.name() {
            KEYWORD => self.declare(&members, member.value, path),
            "properties" => self.read_named(member.value, path, depth),
            name if NAMED_SCHEMAS.contains(&name) => self.read_named(member.value, None, depth),
            name if VALUES.contains(&name) => Ok(()),
            _ => self.read_schema(member.value, None, depth),
        })
    }

    /// An object whose members are schemas.
    fn read_named(
        &mut self,
        schemas: &str,
        path: Option<&[Box<str>]>,
        depth: usize,
    ) -> Result<(), InvalidHeaders> {
        let Some(schemas) = Members::parse(schemas) else { return Ok(()) };
        schemas.iter().try_for_each(|schema| {
            let path = path.map(|path| [path, &[schema.name().into()]].concat());
            self.read_schema(schema.value, path.as_deref(), depth)
        })
    }

    /// Adds the header of a property. `name`: the raw value of the keyword in its `schema`.
    fn declare(
        &mut self,
        schema: &Members,
        name: &str,
        path: Option<&[Box<str>]>,
    ) -> Result<(), InvalidHeaders> {
        let path = path.filter(|path| !path.is_empty()).ok_or_else(|| {
            invalid("is allowed only on a property that is reached by `properties` alone")
        })?;
        let place = path.join(".");
        let name = string(name).filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| invalid(format!("of {place:?} needs a text that is not empty")))?;
        let header = HeaderName::from_bytes([PARAM_PREFIX, &name].concat().as_bytes())
            .map_err(|_| invalid(format!("of {place:?} has characters that no header may have")))?;
        if !schema.text("type").is_some_and(|kind| TYPES.contains(&&*kind)) {
            return Err(invalid(format!("of {place:?} needs the type string, integer or boolean")));
        }
        if self.0.iter().any(|other| other.header == header) {
            return Err(invalid(format!("of {place:?} has the name of another one")));
        }
        self.0.push(Parameter { header, path: path.into() });
        Ok(())
    }
}

fn invalid(problem: impl Into<String>) -> InvalidHeaders {
    InvalidHeaders(problem.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::param_headers::tests::schema;

    #[test]
    fn keywords_that_break_the_rules_are_refused() {
        let annotated =
            |name: &str, kind| format!(r#""a":{{"type":{kind},"x-mcp-header":{name}}}"#);
        for (name, kind) in [
            (r#""""#, r#""string""#),
            (r#""My Region""#, r#""string""#),
            (r#""Region:Primary""#, r#""string""#),
            (r#""Région""#, r#""string""#),
            (r#""Region\t1""#, r#""string""#),
            ("1", r#""string""#),
            ("null", r#""string""#),
            (r#""A""#, r#""number""#),
            (r#""A""#, r#""object""#),
            (r#""A""#, r#""null""#),
            (r#""A""#, r#"["string","null"]"#),
        ] {
            let text = schema(&annotated(name, kind));
            let problem = DeclaredHeaders::parse(&text).unwrap_err().to_string();
            assert!(problem.starts_with("`x-mcp-header` of \"a\" "), "{text}: {problem}");
        }
        let twice =
            r#""a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}"#;
        assert!(DeclaredHeaders::parse(&schema(twice)).is_err());
        assert!(DeclaredHeaders::parse(&schema(r#""a":{"x-mcp-header":"A"}"#)).is_err());
    }

    #[test]
    fn keywords_in_other_places_are_refused() {
        let inner = r#"{"type":"string","x-mcp-header":"A"}"#;
        let property = format!(r#"{{"properties":{{"b":{inner}}}}}"#);
        for schema in [
            inner.to_owned(),
            format!("[{inner}]"),
            format!(r#"{{"$defs":{{"x":{inner}}}}}"#),
            format!(r#"{{"anyOf":[{property}]}}"#),
            format!(r#"{{"then":{property}}}"#),
            format!(r#"{{"properties":{{"a":{{"items":{property}}}}}}}"#),
            format!(r#"{{"properties":{{"a":{{"patternProperties":{{"x":{inner}}}}}}}}}"#),
            format!(r#"{{"additionalProperties":{inner}}}"#),
        ] {
            assert!(DeclaredHeaders::parse(&schema).is_err(), "{schema}");
        }
        for schema in [
            format!(r#"{{"default":{inner},"enum":[{inner}],"examples":[{inner}]}}"#),
            r#"{"description":"see x-mcp-header","required":["x-mcp-header"]}"#.to_owned(),
            r#"{"$defs":{"x-mcp-header":{"type":"string"}}}"#.to_owned(),
        ] {
            assert_eq!(DeclaredHeaders::parse(&schema), Ok(DeclaredHeaders::default()), "{schema}");
        }
    }

    #[test]
    fn a_schema_without_bottom_ends() {
        let deep = format!("{}{KEYWORD:?}{}", r#"{"items":"#.repeat(10_000), "}".repeat(10_000));
        assert_eq!(DeclaredHeaders::parse(&deep), Err(invalid("stands too deep")));
    }
}
