//! A page of `tools/list` on its way to the client (contract §1.1.2).

use tracing::warn;

use crate::jobs::tools::definitions;
use crate::mcp::meta::OUTPUT_SCHEMA;
use crate::relay::state::lists::Catalog;
use crate::rpc::object::{Members, elements};
use crate::rpc::splice::Edits;
use crate::rpc::string::quoted;

impl Catalog {
    /// §1.1.2: the edits of one page; `text` is the whole message, `result` a slice of it. `first`:
    /// it is the first page, which gets our tools. `hide_invalid`: tools whose schema breaks the
    /// rules for headers are left out (§1.1.6). `deferrable`: whether the calls of a tool may
    /// become jobs.
    pub(crate) fn edit_page(
        &self,
        text: &str,
        result: &str,
        (first, hide_invalid): (bool, bool),
        deferrable: impl Fn(&str) -> bool,
    ) -> Edits {
        let mut edits = Edits::new();
        let Some(list) = Members::parse(result).and_then(|members| members.get("tools")) else {
            return edits;
        };
        let tools = elements(list).unwrap_or_default();
        let mut leading = true;
        for (index, tool) in tools.iter().enumerate() {
            let members = Members::parse(tool).unwrap_or_default();
            let name = members.text("name").unwrap_or_default();
            // The server got this tool after ours got the name, and no list may have a name twice.
            let clashes = self.job_tool_named(&name).is_some();
            if clashes || (hide_invalid && self.breaks_header_rules(&name)) {
                let why = if clashes {
                    "has the name of one of ours"
                } else {
                    "has an invalid x-mcp-header"
                };
                warn!(tool = &*name, "hid a tool of the server that {why}");
                edits.remove_element(text, &tools, index, leading);
                continue;
            }
            leading = false;
            if deferrable(&name) {
                hide_output_schema(&mut edits, text, &members);
            }
        }
        if first && self.has_tools() && list.starts_with('[') {
            edits.append_elements(text, list, &definitions(&self.names()), leading);
        }
        edits
    }
}

/// §4.5: clients would reject a handle that does not match the schema, so it is moved to `_meta`.
fn hide_output_schema(edits: &mut Edits, text: &str, tool: &Members) {
    let Some(at) = tool.position("outputSchema") else { return };
    let schema = tool.at(at).value;
    let alone = || format!("{{{}:{schema}}}", quoted(OUTPUT_SCHEMA));
    match tool.get("_meta") {
        Some(meta) => {
            edits.remove_member(text, tool, at, at == 0);
            match Members::parse(meta) {
                Some(_) => edits.set_member(text, meta, OUTPUT_SCHEMA, schema),
                // Nothing but an object can hold it.
                None => edits.replace(text, meta, alone()),
            }
        }
        None => {
            edits.replace(text, tool.at(at).key, "\"_meta\"");
            edits.replace(text, schema, alone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(list: &str) -> String {
        let mut catalog = Catalog::new("");
        catalog.add_page(list);
        catalog.edit_page(list, list, (false, false), |name| name != "never").apply(list)
    }

    #[test]
    fn the_output_schema_moves_and_nothing_else_changes_s4_5() {
        let list = r#"{"tools":[{"name":"a", "outputSchema" : {"x":1.0} ,"z":1e2},{"name":"never","outputSchema":{}}]}"#;
        assert_eq!(
            edited(list),
            r#"{"tools":[{"name":"a", "_meta" : {"unhurry/outputSchema":{"x":1.0}} ,"z":1e2},{"name":"never","outputSchema":{}}]}"#
        );
        let list = r#"{"tools":[{"name":"a","_meta":{"k":1},"outputSchema":{}}]}"#;
        assert_eq!(
            edited(list),
            r#"{"tools":[{"name":"a","_meta":{"k":1,"unhurry/outputSchema":{}}}]}"#
        );
    }

    #[test]
    fn k36_the_output_schema_is_kept_where_meta_is_no_object_s4_5() {
        let expected = r#"{"tools":[{"_meta":{"unhurry/outputSchema":{"x":1.0}},"name":"a"}]}"#;
        let list = r#"{"tools":[{"outputSchema":{"x":1.0},"_meta":null,"name":"a"}]}"#;
        assert_eq!(edited(list), expected);
        let list = r#"{"tools":[{"_meta":null,"outputSchema":{"x":1.0},"name":"a"}]}"#;
        assert_eq!(edited(list), expected);
    }

    #[test]
    fn s5_3_a_name_that_comes_too_late_is_hidden() {
        let mut catalog = Catalog::new("");
        catalog.fix_names();
        for (own, all) in [
            (r#"{"name":"a"},"#, vec!["a", "job_get", "job_cancel"]),
            ("", vec!["job_get", "job_cancel"]),
        ] {
            let list =
                format!(r#"{{"tools":[{own}{{"name":"job_get"}},{{"name":"job_cancel"}}]}}"#);
            catalog.add_page(&list);
            let edited = catalog.edit_page(&list, &list, (true, false), |_| true).apply(&list);
            let names: serde_json::Value = serde_json::from_str(&edited).unwrap();
            let names = names["tools"].as_array().unwrap().iter().map(|t| &t["name"]);
            assert_eq!(names.collect::<Vec<_>>(), all);
        }
    }
}
