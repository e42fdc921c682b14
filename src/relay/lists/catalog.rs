//! `tools/list`: which tools the server has, and how ours are added (contract §1.1.2, §5.3).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tracing::warn;

use crate::jobs::handle::{JobTool, Names};
use crate::jobs::tools::definitions;
use crate::mcp::meta::OUTPUT_SCHEMA;
use crate::mcp::param_headers::Declared;
use crate::rpc::id::Id;
use crate::rpc::object::{Members, elements};
use crate::rpc::splice::Edits;
use crate::rpc::string::quoted;

use crate::relay::requester::Requester;

use super::key::ListKey;

/// Pages of one list that are read, and tools that are remembered, at the most.
const PAGES: usize = 200;
const TOOLS: usize = 10_000;

/// What is known of the server's tools.
pub(crate) struct Catalog {
    prefix: String,
    /// each tool by name
    tools: HashMap<String, Tool>,
    /// the real names of our tools; they stay for the session
    names: Option<Arc<Names>>,
    /// pages that we read ourselves; `Some` while that goes on
    reading: Option<Reading>,
    asked: bool,
    /// how many times we began to read the pages
    walks: u64,
}

/// What is known of a tool.
struct Tool {
    /// it is marked as safe to repeat
    repeatable: bool,
    /// the arguments that are headers too; `None` where its schema breaks the rules for them
    declared: Option<Declared>,
}

impl Tool {
    fn parse(tool: &Members) -> Self {
        let schema = tool.get("inputSchema").unwrap_or_default();
        Tool { repeatable: is_repeatable(tool), declared: Declared::parse(schema).ok() }
    }
}

/// The pages that are being read, and what waits for them.
#[derive(Default)]
pub(crate) struct Reading {
    pages: usize,
    /// answers to the client
    pub held: Vec<Held>,
    /// calls of a tool that may be ours or the server's
    pub calls: Vec<(Requester, Bytes)>,
}

/// A first page that the client asked for and that can't go out yet.
#[derive(Debug)]
pub(crate) struct Held {
    pub key: ListKey,
    pub requester: Requester,
    pub line: Bytes,
}

/// What to do after a page was read.
pub(crate) enum Next {
    /// read the page at this cursor, raw JSON
    Read(String),
    /// all is known; what was held can go on
    Done(Reading),
}

impl Catalog {
    pub(crate) fn new(prefix: &str) -> Self {
        Catalog {
            prefix: prefix.to_owned(),
            tools: HashMap::new(),
            names: None,
            reading: None,
            asked: false,
            walks: 0,
        }
    }

    /// The names of our tools; until the server's are known, those that no clash has changed.
    pub(crate) fn names(&self) -> Arc<Names> {
        self.names.clone().unwrap_or_else(|| Arc::new(self.free_names()))
    }

    fn free_names(&self) -> Names {
        Names::beside(&self.prefix, |name| self.tools.contains_key(name))
    }

    fn settle(&mut self) {
        if self.names.is_none() {
            self.names = Some(Arc::new(self.free_names()));
        }
    }

    /// Which of our tools goes by this name, if any.
    pub(crate) fn ours(&self, name: &str) -> Option<JobTool> {
        if let Some(names) = &self.names {
            return names.which(name);
        }
        // Most names are none of ours; the check must cost a call next to nothing.
        if !name.ends_with("job_get") && !name.ends_with("job_cancel") {
            return None;
        }
        self.free_names().which(name)
    }

    /// Whether the server marks a tool as safe to repeat; `None` where the tool is not known.
    pub(crate) fn repeatable(&self, tool: &str) -> Option<bool> {
        self.tools.get(tool).map(|tool| tool.repeatable)
    }

    /// The arguments of a tool that are HTTP headers too.
    pub(crate) fn declared(&self, tool: &str) -> Option<&Declared> {
        self.tools.get(tool)?.declared.as_ref()
    }

    fn breaks_header_rules(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|tool| tool.declared.is_none())
    }

    /// `true` once: the tools are not known and nobody has asked for them yet.
    pub(crate) fn must_ask(&mut self) -> bool {
        self.names.is_none() && !std::mem::replace(&mut self.asked, true)
    }

    /// The client asked for the list itself.
    pub(crate) fn was_asked(&mut self) {
        self.asked = true;
    }

    /// Keeps a call until it is clear whose tool it means.
    pub(crate) fn hold_call(&mut self, requester: Requester, line: Bytes) {
        self.begin().calls.push((requester, line));
    }

    /// Starts to read the pages ourselves.
    pub(crate) fn read_from_start(&mut self) {
        self.begin();
    }

    fn begin(&mut self) -> &mut Reading {
        if self.reading.is_none() {
            self.walks += 1;
        }
        self.reading.get_or_insert_default()
    }

    /// Which walk through the pages this is.
    pub(crate) fn walk(&self) -> u64 {
        self.walks
    }

    /// Notes the tools of a page, from its raw `result`; returns the raw cursor of the next page.
    pub(crate) fn note<'a>(&mut self, result: &'a str) -> Option<&'a str> {
        let members = Members::parse(result)?;
        for tool in members.get("tools").and_then(elements).unwrap_or_default() {
            let Some(tool) = Members::parse(tool) else { continue };
            let Some(name) = tool.text("name") else { continue };
            if self.tools.len() < TOOLS {
                self.tools.insert(name.into_owned(), Tool::parse(&tool));
            }
        }
        members.get("nextCursor").filter(|cursor| cursor.starts_with('"'))
    }

    /// The client's first page came in, and `cursor` (raw JSON) names more pages, which must be
    /// read before it can be answered. `Err`: it can go out now.
    pub(crate) fn hold(
        &mut self,
        cursor: Option<&str>,
        held: Box<Held>,
    ) -> Result<Option<String>, Box<Held>> {
        if self.names.is_some() {
            return Err(held);
        }
        let Some(cursor) = cursor else {
            self.settle();
            return Err(held);
        };
        // One walk through the pages serves all who wait for it.
        let walking = self.reading.is_some();
        self.begin().held.push(*held);
        Ok((!walking).then(|| cursor.to_owned()))
    }

    /// Whether we read the pages ourselves now.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether a client waits for what is held.
    pub(crate) fn is_holding(&self) -> bool {
        let holds = |reading: &Reading| !reading.held.is_empty() || !reading.calls.is_empty();
        self.reading.as_ref().is_some_and(holds)
    }

    /// The client takes back a request whose answer is held.
    pub(crate) fn cancel(&mut self, id: &Id) -> bool {
        let Some(reading) = &mut self.reading else { return false };
        let before = reading.held.len() + reading.calls.len();
        reading.held.retain(|held| held.requester.key != *id);
        reading.calls.retain(|(requester, _)| requester.key != *id);
        reading.held.len() + reading.calls.len() < before
    }

    /// A page that we asked for came in; `result` is `None` where the server refused it.
    pub(crate) fn page_read(&mut self, result: Option<&str>) -> Next {
        let cursor = result.and_then(|result| self.note(result)).map(str::to_owned);
        let pages = self.reading.as_mut().map_or(PAGES, |reading| {
            reading.pages += 1;
            reading.pages
        });
        match cursor {
            Some(cursor) if pages < PAGES => Next::Read(cursor),
            _ => {
                self.settle();
                Next::Done(self.reading.take().unwrap_or_default())
            }
        }
    }

    /// The server is gone: what was held.
    pub(crate) fn abandon(&mut self) -> Reading {
        self.asked = self.names.is_some();
        self.reading.take().unwrap_or_default()
    }

    /// §1.1.2: the edits of one page; `text` is the whole message, `result` a slice of it.
    /// `deferrable` says of a tool whether its calls may become jobs; `strict`, that a tool whose
    /// schema breaks the rules for headers must not be shown (§1.1.6).
    pub(crate) fn edit_page(
        &self,
        text: &str,
        result: &str,
        (first, strict): (bool, bool),
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
            // It came after ours got that name, and no list may have one name twice.
            let clashes = self.ours(&name).is_some();
            if clashes || (strict && self.breaks_header_rules(&name)) {
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
        if first && !self.tools.is_empty() && list.starts_with('[') {
            edits.append_elements(text, list, &definitions(&self.names()), leading);
        }
        edits
    }
}

fn is_repeatable(tool: &Members) -> bool {
    let Some(hints) = tool.object("annotations") else { return false };
    ["readOnlyHint", "idempotentHint"].iter().any(|hint| hints.get(hint) == Some("true"))
}

/// §4.5: a handle must not meet a schema; it is kept under `_meta`.
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
        catalog.note(list);
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
        catalog.settle();
        for (own, all) in [
            (r#"{"name":"a"},"#, vec!["a", "job_get", "job_cancel"]),
            ("", vec!["job_get", "job_cancel"]),
        ] {
            let list =
                format!(r#"{{"tools":[{own}{{"name":"job_get"}},{{"name":"job_cancel"}}]}}"#);
            catalog.note(&list);
            let edited = catalog.edit_page(&list, &list, (true, false), |_| true).apply(&list);
            let names: serde_json::Value = serde_json::from_str(&edited).unwrap();
            let names = names["tools"].as_array().unwrap().iter().map(|t| &t["name"]);
            assert_eq!(names.collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn c81_names_give_way_to_the_servers_and_stay() {
        let mut catalog = Catalog::new("x_");
        catalog.note(r#"{"tools":[{"name":"x_job_get"},{"name":"unhurry_x_job_get"}]}"#);
        catalog.settle();
        assert_eq!(catalog.names().get, "unhurry_unhurry_x_job_get");
        assert_eq!(catalog.names().cancel, "x_job_cancel");
        catalog.note(r#"{"tools":[{"name":"x_job_cancel"}]}"#);
        assert_eq!(catalog.names().cancel, "x_job_cancel");
    }
}
