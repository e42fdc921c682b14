//! Lists on their way to the client: the tools, to which ours are added (`catalog`), and the others;
//! edited, kept and given again (`listing`, `kept`). `pages` reads the pages of tools that nobody
//! has asked for.

mod catalog;
mod kept;
mod key;
mod listing;
mod pages;

use catalog::Catalog;
use kept::KeptLists;

pub(crate) use catalog::Held;
pub(crate) use key::{ListKey, ListKind};

/// What is known of the server's lists.
pub(crate) struct ListState {
    pub catalog: Catalog,
    /// the last answers
    pub kept: KeptLists,
    /// lists of which the client was told that they changed, in this life of the server
    pub changed: Vec<ListKind>,
}

impl ListState {
    /// `prefix`: what the names of our tools begin with.
    pub(crate) fn new(prefix: &str) -> Self {
        let (kept, changed) = (KeptLists::default(), Vec::new());
        ListState { catalog: Catalog::new(prefix), kept, changed }
    }
}
