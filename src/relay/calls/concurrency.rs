//! Tools with `max_concurrent`: some calls run, the others stand in line, first come first served
//! (contract §3). The limit is the server's: sessions that share a server stand in one line.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio::sync::Notify;
use tracing::debug;

use crate::jobs::live::Place;
use crate::rpc::id::Id;

/// The lines of one server, by tool.
#[derive(Default)]
pub(crate) struct Concurrency(Mutex<HashMap<Arc<str>, Line>>);

#[derive(Default)]
struct Line {
    running: usize,
    waiting: VecDeque<Ticket>,
}

/// A call in line.
pub(crate) struct Ticket {
    /// whom it is told that its turn has come
    pub turns: Weak<Turns>,
    pub call: Id,
    pub place: Place,
}

/// The calls of one session whose turn has come.
#[derive(Default)]
pub(crate) struct Turns {
    calls: Mutex<VecDeque<(Arc<str>, Id)>>,
    added: Notify,
}

impl Turns {
    fn calls(&self) -> MutexGuard<'_, VecDeque<(Arc<str>, Id)>> {
        self.calls.lock().expect("no panic while the turns are held")
    }

    /// It is this call's turn.
    pub(crate) fn add(&self, tool: Arc<str>, call: Id) {
        self.calls().push_back((tool, call));
        self.added.notify_one();
    }

    /// The next call to be sent, with its tool.
    pub(crate) fn take(&self) -> Option<(Arc<str>, Id)> {
        self.calls().pop_front()
    }

    /// Waits until one was added.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }
}

impl Concurrency {
    fn lines(&self) -> MutexGuard<'_, HashMap<Arc<str>, Line>> {
        self.0.lock().expect("no panic while the lines are held")
    }

    /// Takes one of `most` places, or the last one in line; whether the call may go.
    pub(crate) fn enter(&self, tool: &Arc<str>, most: usize, ticket: Ticket) -> bool {
        let mut lines = self.lines();
        let line = lines.entry(tool.clone()).or_default();
        if line.running < most && line.waiting.is_empty() {
            line.running += 1;
            return true;
        }
        line.waiting.push_back(ticket);
        line.number();
        debug!(tool = &**tool, place = line.waiting.len(), "the call waits in line");
        false
    }

    /// A call has left the server; the first in line gets its place, and is returned.
    pub(crate) fn leave(&self, tool: &Arc<str>) -> Option<Ticket> {
        let mut lines = self.lines();
        let line = lines.get_mut(tool)?;
        let next = line.waiting.pop_front();
        match &next {
            Some(ticket) => ticket.place.store(0, Ordering::Relaxed),
            None => line.running -= 1,
        }
        line.number();
        if line.running == 0 {
            lines.remove(tool);
        }
        next
    }

    /// A call leaves the line without having run.
    pub(crate) fn quit(&self, tool: &Arc<str>, place: &Place) {
        if let Some(line) = self.lines().get_mut(tool) {
            line.waiting.retain(|ticket| !Arc::ptr_eq(&ticket.place, place));
            line.number();
        }
    }
}

impl Line {
    fn number(&self) {
        for (place, ticket) in self.waiting.iter().enumerate() {
            ticket.place.store(place + 1, Ordering::Relaxed);
        }
    }
}
