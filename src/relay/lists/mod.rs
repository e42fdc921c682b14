//! Lists on their way to the client: they are edited (`tools_page` adds our tools), kept, and sent
//! again while the server is busy (`listing`, `cache`). `catalog` holds what is known of the
//! server's tools; `pages` reads those pages of them that no client has asked for.

mod cache;
mod catalog;
mod key;
mod listing;
mod pages;
mod tools_page;

use cache::ListCache;
use catalog::Catalog;

pub(crate) use catalog::HeldPage;
pub(crate) use key::{ListKey, ListKind};

/// What is known of the server's lists.
pub(crate) struct ListState {
    pub catalog: Catalog,
    /// the last answers
    pub cache: ListCache,
    /// lists that the client was told have changed, in this life of the server
    pub changed: Vec<ListKind>,
}

impl ListState {
    /// `prefix`: what the names of our tools begin with.
    pub(crate) fn new(prefix: &str) -> Self {
        let (cache, changed) = (ListCache::default(), Vec::new());
        ListState { catalog: Catalog::new(prefix), cache, changed }
    }
}
