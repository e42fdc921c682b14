//! What is known of the server's lists.

mod cache;
mod catalog;
mod key;

pub(crate) use cache::ListCache;
pub(crate) use catalog::{Catalog, HeldPage, Next};
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
