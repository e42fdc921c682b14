//! Lists on their way to the client: they are edited (`catalog` for the tools, to which ours are
//! added), kept, and sent again while the server is busy (`listing`, `cache`). `pages` reads the
//! pages of tools that no client has asked for.

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
