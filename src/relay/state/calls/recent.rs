//! Ids that are remembered for a while.

use std::collections::{HashSet, VecDeque};

use crate::rpc::id::Id;

/// The last 1024 ids of some kind.
#[derive(Default)]
pub(crate) struct RecentIds {
    ids: HashSet<Id>,
    order: VecDeque<Id>,
}

impl RecentIds {
    const MOST: usize = 1024;

    /// Adds an id; the oldest one is forgotten where there are too many.
    pub(crate) fn insert(&mut self, id: Id) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id);
        }
        if self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    /// Whether the id is one of them.
    pub(crate) fn contains(&self, id: &Id) -> bool {
        !self.ids.is_empty() && self.ids.contains(id)
    }
}
