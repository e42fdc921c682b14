//! The last answers to list requests: given again while a server is blocked by its own tool
//! (contract §1.1.5), and compared after it was started anew (§9).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use crate::mcp::method::Method;
use crate::rpc::lines::keep;
use crate::rpc::object::Members;

/// Bytes of answers kept.
const KEPT: usize = 8 << 20;

/// The lists of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

impl ListKind {
    /// The list that a method asks for; `None` where it asks for something else.
    pub fn of(method: Method) -> Option<Self> {
        Some(match method {
            Method::ListTools => ListKind::Tools,
            Method::ListPrompts => ListKind::Prompts,
            Method::ListResources => ListKind::Resources,
            Method::ListResourceTemplates => ListKind::ResourceTemplates,
            _ => return None,
        })
    }

    /// The request for the list.
    pub fn method(self) -> Method {
        match self {
            ListKind::Tools => Method::ListTools,
            ListKind::Prompts => Method::ListPrompts,
            ListKind::Resources => Method::ListResources,
            ListKind::ResourceTemplates => Method::ListResourceTemplates,
        }
    }

    /// The notification that says that the list has changed.
    pub fn changed(self) -> Method {
        match self {
            ListKind::Tools => Method::ToolsChanged,
            ListKind::Prompts => Method::PromptsChanged,
            ListKind::Resources | ListKind::ResourceTemplates => Method::ResourcesChanged,
        }
    }
}

/// A list request: two are the same where kind and cursor are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListKey {
    pub kind: ListKind,
    /// raw JSON
    pub cursor: Option<Box<str>>,
}

impl ListKey {
    /// `None` for what is no list request, or one that asks for more than a page.
    pub fn of(method: Method, params: Option<&str>) -> Option<Self> {
        let kind = ListKind::of(method)?;
        let Some(params) = params else { return Some(ListKey { kind, cursor: None }) };
        let members = Members::parse(params)?;
        let known = |key: &str| matches!(key, "cursor" | "_meta");
        if !members.iter().all(|member| known(&member.name())) {
            return None;
        }
        let cursor = members.get("cursor").filter(|cursor| *cursor != "null").map(Into::into);
        Some(ListKey { kind, cursor })
    }

    pub fn is_first_page(&self) -> bool {
        self.cursor.is_none()
    }
}

/// The answers kept.
#[derive(Default)]
pub struct Lists {
    answers: HashMap<ListKey, Kept>,
    bytes: usize,
}

struct Kept {
    /// what the client got, the raw `result`
    result: Bytes,
    /// of what the server had sent
    digest: u64,
}

impl Lists {
    /// Keeps an answer: what the client gets, and what the server had sent.
    pub fn put(&mut self, key: ListKey, result: &Bytes, original: &str) {
        self.remove(&key);
        if self.bytes + result.len() <= KEPT {
            self.bytes += result.len();
            self.answers.insert(key, Kept { result: keep(result), digest: digest(original) });
        }
    }

    fn remove(&mut self, key: &ListKey) {
        if let Some(old) = self.answers.remove(key) {
            self.bytes -= old.result.len();
        }
    }

    /// The last answer to the same request.
    pub fn get(&self, key: &ListKey) -> Option<Bytes> {
        self.answers.get(key).map(|kept| kept.result.clone())
    }

    /// Whether a fresh answer of the server differs from the last one.
    pub fn differs(&self, key: &ListKey, fresh: &str) -> bool {
        self.answers.get(key).is_some_and(|kept| kept.digest != digest(fresh))
    }

    pub fn keys(&self) -> Vec<ListKey> {
        self.answers.keys().cloned().collect()
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
