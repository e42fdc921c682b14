//! Requests of the server that the client has not answered.

use std::collections::{HashMap, VecDeque};

use crate::rpc::id::Id;

/// Requests of servers that are gone, which are remembered so that late answers are dropped.
const STALE: usize = 1024;

/// What the client is asked, and was asked by a server that is gone.
#[derive(Default)]
pub(crate) struct Questions {
    /// by the id that the client knows, with the server's own raw id where that is another
    open: HashMap<Id, Option<Box<str>>>,
    /// of a server that is gone: answers to them are dropped
    stale: VecDeque<Id>,
}

/// Where an answer of the client goes.
pub(crate) enum Destination {
    /// to the server as it is
    Straight,
    /// to the server, under this raw id
    Under(Box<str>),
    /// to nobody
    Nowhere,
}

impl Questions {
    /// Notes a request. The client may still answer one of that id that a server before this one
    /// has sent, since servers count from 0 anew: then this one goes by `own`, which is returned.
    pub(crate) fn ask(&mut self, raw: &str, own: impl FnOnce() -> Id) -> Option<Id> {
        let id = Id::parse(raw)?;
        if !self.stale.contains(&id) {
            self.open.insert(id, None);
            return None;
        }
        let outside = own();
        self.open.insert(outside.clone(), Some(raw.into()));
        Some(outside)
    }

    /// Where the client's answer goes, by the id that it bears.
    pub(crate) fn answered(&mut self, outside: &Id) -> Destination {
        if let Some(inside) = self.open.remove(outside) {
            return inside.map_or(Destination::Straight, Destination::Under);
        }
        match self.stale.iter().position(|stale| stale == outside) {
            Some(at) => {
                self.stale.remove(at);
                Destination::Nowhere
            }
            None => Destination::Straight,
        }
    }

    /// The server takes a request back: the id that the client knows, where it is another.
    pub(crate) fn taken_back(&mut self, inside: &Id) -> Option<Id> {
        if self.open.remove(inside).is_some() {
            return None;
        }
        let is_it = |raw: &str| Id::parse(raw).as_ref() == Some(inside);
        let mut open = self.open.iter();
        let (outside, _) = open.find(|(_, raw)| raw.as_deref().is_some_and(is_it))?;
        let outside = outside.clone();
        self.open.remove(&outside);
        Some(outside)
    }

    /// The server is gone, and whatever it has asked with it.
    pub(crate) fn abandon(&mut self) {
        self.stale.extend(self.open.drain().map(|(outside, _)| outside));
        let over = self.stale.len().saturating_sub(STALE);
        self.stale.drain(..over);
    }
}
