//! The lists of MCP, and requests for them.

use crate::mcp::method::Method;
use crate::mcp::params::Params;

/// The lists of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

impl ListKind {
    /// The list that a method asks for; `None` where it asks for something else.
    pub(crate) fn of(method: Method) -> Option<Self> {
        Some(match method {
            Method::ListTools => ListKind::Tools,
            Method::ListPrompts => ListKind::Prompts,
            Method::ListResources => ListKind::Resources,
            Method::ListResourceTemplates => ListKind::ResourceTemplates,
            _ => return None,
        })
    }

    /// The request for the list.
    pub(crate) fn method(self) -> Method {
        match self {
            ListKind::Tools => Method::ListTools,
            ListKind::Prompts => Method::ListPrompts,
            ListKind::Resources => Method::ListResources,
            ListKind::ResourceTemplates => Method::ListResourceTemplates,
        }
    }

    /// The notification that says that the list has changed.
    pub(crate) fn changed(self) -> Method {
        match self {
            ListKind::Tools => Method::ToolsChanged,
            ListKind::Prompts => Method::PromptsChanged,
            ListKind::Resources | ListKind::ResourceTemplates => Method::ResourcesChanged,
        }
    }
}

/// A list request: two are the same where kind and cursor are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListKey {
    pub kind: ListKind,
    /// raw JSON
    pub cursor: Option<Box<str>>,
}

impl ListKey {
    /// `None` for what is no list request, or one that asks for more than a page.
    pub(crate) fn of(method: Method, params: &Params) -> Option<Self> {
        let kind = ListKind::of(method)?;
        if !params.has_only(&["cursor", "_meta"]) {
            return None;
        }
        let cursor = params.get("cursor").filter(|cursor| *cursor != "null").map(Into::into);
        Some(ListKey { kind, cursor })
    }

    pub(crate) fn is_first_page(&self) -> bool {
        self.cursor.is_none()
    }
}
