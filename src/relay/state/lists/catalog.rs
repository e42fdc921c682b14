//! The tools of the server, as `tools/list` names them, and the names of ours (contract §1.1.2,
//! §5.3).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::jobs::handle::{JobTool, JobToolNames};
use crate::mcp::param_headers::DeclaredHeaders;
use crate::relay::state::requester::Requester;
use crate::rpc::id::Id;
use crate::rpc::object::{Members, elements};

use super::key::ListKey;

/// Pages of one list that are read, and tools that are remembered, at the most.
const PAGES: usize = 200;
const TOOLS: usize = 10_000;

/// What is known of the server's tools.
pub(crate) struct Catalog {
    prefix: String,
    /// each tool by name
    tools: HashMap<String, Tool>,
    /// the real names of our tools; `Some` for the rest of the session once the server's are known
    names: Option<Arc<JobToolNames>>,
    /// `Some` while we read the pages ourselves
    reading: Option<Reading>,
    /// the list was asked for, by the client or by us
    asked: bool,
    /// how often we began to read the pages
    readings: u64,
}

/// What is known of a tool.
struct Tool {
    /// it is marked as safe to repeat
    repeatable: bool,
    /// the arguments that are headers too; `None` where its schema breaks the rules for them
    declared: Option<DeclaredHeaders>,
}

impl Tool {
    fn parse(tool: &Members) -> Self {
        let schema = tool.get("inputSchema").unwrap_or_default();
        Tool { repeatable: is_repeatable(tool), declared: DeclaredHeaders::parse(schema).ok() }
    }
}

/// The pages that are being read, and what waits for them.
#[derive(Default)]
pub(crate) struct Reading {
    pages: usize,
    /// first pages for the client
    pub held_pages: Vec<HeldPage>,
    /// calls that need the tools to be known
    pub held_calls: Vec<(Requester, Bytes)>,
}

/// A first page that the client asked for, held until the names of all tools are known.
#[derive(Debug)]
pub(crate) struct HeldPage {
    pub key: ListKey,
    pub requester: Requester,
    pub line: Bytes,
}

/// What to do after a page was read.
pub(crate) enum Next {
    /// read the page at this cursor, raw JSON
    Read(String),
    /// nothing more is read; this was held and can go on
    Done(Reading),
}

impl Catalog {
    /// A catalog without tools. `prefix`: what the names of our tools begin with.
    pub(crate) fn new(prefix: &str) -> Self {
        Catalog {
            prefix: prefix.to_owned(),
            tools: HashMap::new(),
            names: None,
            reading: None,
            asked: false,
            readings: 0,
        }
    }

    /// Whether the server has any tool.
    pub(crate) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// The names of our tools; as long as not all of the server's are known, they may still change.
    pub(crate) fn names(&self) -> Arc<JobToolNames> {
        self.names.clone().unwrap_or_else(|| Arc::new(self.names_without_clash()))
    }

    /// Names of our tools that no known tool of the server has.
    fn names_without_clash(&self) -> JobToolNames {
        JobToolNames::avoiding(&self.prefix, |name| self.tools.contains_key(name))
    }

    /// The server's tools are known: from now on the names of ours stay as they are.
    pub(crate) fn fix_names(&mut self) {
        if self.names.is_none() {
            self.names = Some(Arc::new(self.names_without_clash()));
        }
    }

    /// Which of our tools has this name, if any.
    pub(crate) fn job_tool_named(&self, name: &str) -> Option<JobTool> {
        if let Some(names) = &self.names {
            return names.tool_named(name);
        }
        // Almost no call is one of our tools, so this comes before anything that costs more.
        if !name.ends_with("job_get") && !name.ends_with("job_cancel") {
            return None;
        }
        self.names_without_clash().tool_named(name)
    }

    /// Whether the server marks a tool as safe to repeat; `None` where the tool is not known.
    pub(crate) fn repeatable(&self, tool: &str) -> Option<bool> {
        self.tools.get(tool).map(|tool| tool.repeatable)
    }

    /// The arguments of a tool that are HTTP headers too.
    pub(crate) fn declared(&self, tool: &str) -> Option<&DeclaredHeaders> {
        self.tools.get(tool)?.declared.as_ref()
    }

    /// Whether the schema of a tool breaks the rules for headers.
    pub(crate) fn breaks_header_rules(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|tool| tool.declared.is_none())
    }

    /// Whether the tools have to be asked for: they are not known, and nobody has asked for them.
    /// After `true` it counts as asked.
    pub(crate) fn must_ask(&mut self) -> bool {
        self.names.is_none() && !std::mem::replace(&mut self.asked, true)
    }

    /// The client asked for the list itself.
    pub(crate) fn mark_asked(&mut self) {
        self.asked = true;
    }

    /// Holds a call until the tools are known.
    pub(crate) fn hold_call(&mut self, requester: Requester, line: Bytes) {
        self.reading_mut().held_calls.push((requester, line));
    }

    /// We begin to read the pages ourselves.
    pub(crate) fn start_reading(&mut self) {
        self.reading_mut();
    }

    /// The reading of the pages, which begins now where there is none.
    fn reading_mut(&mut self) -> &mut Reading {
        if self.reading.is_none() {
            self.readings += 1;
        }
        self.reading.get_or_insert_default()
    }

    /// The number of this reading, which tells its deadline from that of an earlier one.
    pub(crate) fn reading_number(&self) -> u64 {
        self.readings
    }

    /// Adds the tools of a page, from its raw `result`; returns the raw cursor of the next page.
    pub(crate) fn add_page<'a>(&mut self, result: &'a str) -> Option<&'a str> {
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

    /// The first page for the client came in. Where `cursor` (raw JSON) names more pages, these
    /// must be read before it can be sent; returns the cursor from which to read, where nobody
    /// reads yet.
    ///
    /// # Errors
    /// The page itself, where it can be sent now.
    pub(crate) fn hold_page(
        &mut self,
        cursor: Option<&str>,
        held: Box<HeldPage>,
    ) -> Result<Option<String>, Box<HeldPage>> {
        if self.names.is_some() {
            return Err(held);
        }
        let Some(cursor) = cursor else {
            self.fix_names();
            return Err(held);
        };
        // The pages are read once for all who wait for them.
        let already_reading = self.reading.is_some();
        self.reading_mut().held_pages.push(*held);
        Ok((!already_reading).then(|| cursor.to_owned()))
    }

    /// Whether we are reading the pages ourselves.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether an answer or a call is held.
    pub(crate) fn is_holding(&self) -> bool {
        let holds =
            |reading: &Reading| !reading.held_pages.is_empty() || !reading.held_calls.is_empty();
        self.reading.as_ref().is_some_and(holds)
    }

    /// The client cancels a request; `true`: it, or its answer, was held here.
    pub(crate) fn cancel(&mut self, id: &Id) -> bool {
        let Some(reading) = &mut self.reading else { return false };
        let before = reading.held_pages.len() + reading.held_calls.len();
        reading.held_pages.retain(|held| held.requester.key != *id);
        reading.held_calls.retain(|(requester, _)| requester.key != *id);
        reading.held_pages.len() + reading.held_calls.len() < before
    }

    /// A page that we asked for came in; `result` is `None` where the server refused it or it takes
    /// too long.
    pub(crate) fn page_read(&mut self, result: Option<&str>) -> Next {
        let cursor = result.and_then(|result| self.add_page(result)).map(str::to_owned);
        let pages = self.reading.as_mut().map_or(PAGES, |reading| {
            reading.pages += 1;
            reading.pages
        });
        match cursor {
            Some(cursor) if pages < PAGES => Next::Read(cursor),
            _ => {
                self.fix_names();
                Next::Done(self.reading.take().unwrap_or_default())
            }
        }
    }

    /// The server is gone: returns what was held.
    pub(crate) fn server_gone(&mut self) -> Reading {
        self.asked = self.names.is_some();
        self.reading.take().unwrap_or_default()
    }
}

fn is_repeatable(tool: &Members) -> bool {
    let Some(hints) = tool.object("annotations") else { return false };
    ["readOnlyHint", "idempotentHint"].iter().any(|hint| hints.get(hint) == Some("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c81_names_give_way_to_the_servers_and_stay() {
        let mut catalog = Catalog::new("x_");
        catalog.add_page(r#"{"tools":[{"name":"x_job_get"},{"name":"unhurry_x_job_get"}]}"#);
        catalog.fix_names();
        assert_eq!(catalog.names().get, "unhurry_unhurry_x_job_get");
        assert_eq!(catalog.names().cancel, "x_job_cancel");
        catalog.add_page(r#"{"tools":[{"name":"x_job_cancel"}]}"#);
        assert_eq!(catalog.names().cancel, "x_job_cancel");
    }
}
