//! Lists on their way to the client: the tools, to which ours are added (`catalog`), and the others;
//! edited, kept and given again (`listing`, `kept`). `pages` reads the pages of tools that nobody
//! has asked for.

mod cache;
mod catalog;
mod key;
mod listing;
mod pages;

use cache::ListCache;
use catalog::Catalog;

pub(crate) use catalog::HeldPage;
pub(crate) use key::{ListKey, ListKind};

/// What is known of the server's lists.
pub(crate) struct ListState {
    pub catalog: Catalog,
    /// the last answers
    pub cache: ListCache,
    /// lists of which the client was told that they changed, in this life of the server
    pub changed: Vec<ListKind>,
}

impl ListState {
    /// `prefix`: what the names of our tools begin with.
    pub(crate) fn new(prefix: &str) -> Self {
        let (cache, changed) = (ListCache::default(), Vec::new());
        ListState { catalog: Catalog::new(prefix), cache, changed }
    }
}
