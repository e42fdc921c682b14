//! Tools with `max_concurrent`: some calls run, the others wait in line, first come first served
//! (contract §3). The limit is the server's: sessions that share a server have one queue.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio::sync::Notify;
use tracing::debug;

use crate::jobs::live::Place;
use crate::rpc::id::Id;

/// The queues of one server, by tool.
#[derive(Default)]
pub(crate) struct Concurrency(Mutex<HashMap<Arc<str>, ToolQueue>>);

#[derive(Default)]
struct ToolQueue {
    running: usize,
    waiting: VecDeque<QueuedCall>,
}

/// A call that waits in line.
pub(crate) struct QueuedCall {
    /// where it is put when its turn has come
    pub ready_calls: Weak<ReadyCalls>,
    pub call: Id,
    pub place: Place,
}

/// The calls of one session whose turn has come.
#[derive(Default)]
pub(crate) struct ReadyCalls {
    calls: Mutex<VecDeque<(Arc<str>, Id)>>,
    added: Notify,
}

impl ReadyCalls {
    fn calls(&self) -> MutexGuard<'_, VecDeque<(Arc<str>, Id)>> {
        self.calls.lock().expect("no panic while the turns are held")
    }

    /// Adds a call whose turn has come.
    pub(crate) fn add(&self, tool: Arc<str>, call: Id) {
        self.calls().push_back((tool, call));
        self.added.notify_one();
    }

    /// The next call to be sent, with its tool.
    pub(crate) fn take(&self) -> Option<(Arc<str>, Id)> {
        self.calls().pop_front()
    }

    /// Waits until a call was added.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }
}

impl Concurrency {
    fn queues(&self) -> MutexGuard<'_, HashMap<Arc<str>, ToolQueue>> {
        self.0.lock().expect("no panic while the lines are held")
    }

    /// Takes one of `most` places, or the last one in line. `true`: the call may go to the server.
    pub(crate) fn enter(&self, tool: &Arc<str>, most: usize, queued_call: QueuedCall) -> bool {
        let mut queues = self.queues();
        let queue = queues.entry(tool.clone()).or_default();
        if queue.running < most && queue.waiting.is_empty() {
            queue.running += 1;
            return true;
        }
        queue.waiting.push_back(queued_call);
        queue.renumber();
        debug!(tool = &**tool, place = queue.waiting.len(), "the call waits in line");
        false
    }

    /// A call frees its place; the first in line gets it, and is returned.
    pub(crate) fn release(&self, tool: &Arc<str>) -> Option<QueuedCall> {
        let mut queues = self.queues();
        let queue = queues.get_mut(tool)?;
        let next = queue.waiting.pop_front();
        match &next {
            Some(queued_call) => queued_call.place.store(0, Ordering::Relaxed),
            None => queue.running -= 1,
        }
        queue.renumber();
        if queue.running == 0 {
            queues.remove(tool);
        }
        next
    }

    /// Takes out a call that waits in line.
    pub(crate) fn remove(&self, tool: &Arc<str>, place: &Place) {
        if let Some(queue) = self.queues().get_mut(tool) {
            queue.waiting.retain(|queued_call| !Arc::ptr_eq(&queued_call.place, place));
            queue.renumber();
        }
    }
}

impl ToolQueue {
    /// Tells each call in line which place it has now.
    fn renumber(&self) {
        for (place, queued_call) in self.waiting.iter().enumerate() {
            queued_call.place.store(place + 1, Ordering::Relaxed);
        }
    }
}
