//! Requests of the server that the client has not answered.

use std::collections::{HashMap, VecDeque};

use crate::rpc::id::Id;

/// Requests of servers that are gone, which are remembered so that late answers are dropped.
const STALE: usize = 1024;

/// Requests of the server that the client has not answered, by the id that the client knows.
#[derive(Default)]
pub(crate) struct ServerRequests {
    /// with the server's own raw id where that is another
    open: HashMap<Id, Option<Box<str>>>,
    /// of a server that is gone: answers to them are dropped
    stale: VecDeque<Id>,
}

/// What becomes of an answer of the client.
pub(crate) enum AnswerDestination {
    /// it goes to the server as it is
    AsIs,
    /// it goes to the server with this raw id
    WithId(Box<str>),
    /// it is dropped: the server that asked is gone
    Dropped,
}

impl ServerRequests {
    /// Adds a request; `raw` is its id. Servers count from 0 anew after a restart, and the client
    /// may still answer a request of the last server that had the same id: then the client gets
    /// this one under a new id, which is returned.
    pub(crate) fn insert(&mut self, raw: &str, new_id: impl FnOnce() -> Id) -> Option<Id> {
        let id = Id::parse(raw)?;
        if !self.stale.contains(&id) {
            self.open.insert(id, None);
            return None;
        }
        let downstream_id = new_id();
        self.open.insert(downstream_id.clone(), Some(raw.into()));
        Some(downstream_id)
    }

    /// Takes out the request that an answer of the client belongs to, by the answer's id.
    pub(crate) fn take(&mut self, downstream_id: &Id) -> AnswerDestination {
        if let Some(upstream_id) = self.open.remove(downstream_id) {
            return upstream_id.map_or(AnswerDestination::AsIs, AnswerDestination::WithId);
        }
        match self.stale.iter().position(|stale| stale == downstream_id) {
            Some(at) => {
                self.stale.remove(at);
                AnswerDestination::Dropped
            }
            None => AnswerDestination::AsIs,
        }
    }

    /// Takes out a request that the server cancels; returns the id that the client knows, where it
    /// is another.
    pub(crate) fn cancelled(&mut self, upstream_id: &Id) -> Option<Id> {
        if self.open.remove(upstream_id).is_some() {
            return None;
        }
        let has_id = |raw: &Option<Box<str>>| {
            raw.as_deref().is_some_and(|raw| Id::parse(raw).as_ref() == Some(upstream_id))
        };
        let (downstream_id, _) = self.open.iter().find(|(_, raw)| has_id(raw))?;
        let downstream_id = downstream_id.clone();
        self.open.remove(&downstream_id);
        Some(downstream_id)
    }

    /// The server is gone: answers to its requests will be dropped.
    pub(crate) fn server_gone(&mut self) {
        self.stale.extend(self.open.drain().map(|(downstream_id, _)| downstream_id));
        let over = self.stale.len().saturating_sub(STALE);
        self.stale.drain(..over);
    }
}
