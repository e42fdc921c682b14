//! A store for tests that takes its time.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::jobs::caller::Caller;
use crate::jobs::record::Record;

use super::memory::MemoryStore;
use super::{Full, Limits, Store, StoreError, StoreFuture};

/// A store that keeps everything at once, and says so only when the test lets it.
pub(crate) struct SlowStore {
    memory: MemoryStore,
    answers: UnboundedSender<oneshot::Sender<()>>,
}

impl SlowStore {
    /// The store, and what lets it say that it has kept something, in the order of the calls.
    pub(crate) fn new() -> (Self, UnboundedReceiver<oneshot::Sender<()>>) {
        let limits = Limits { max_running: 10, max_stored: 1 << 20 };
        let (sender, receiver) = unbounded_channel();
        (SlowStore { memory: MemoryStore::new(limits), answers: sender }, receiver)
    }

    fn later(&self, answer: StoreFuture<()>) -> StoreFuture<()> {
        let (release, released) = oneshot::channel();
        let _ = self.answers.send(release);
        Box::pin(async move {
            released.await.map_err(|_| StoreError("the test has ended".into()))?;
            answer.await
        })
    }
}

impl Store for SlowStore {
    fn create(&self, record: Arc<Record>) -> Result<StoreFuture<()>, Full> {
        self.memory.create(record).map(|answer| self.later(answer))
    }

    fn finish(&self, record: Arc<Record>) -> StoreFuture<()> {
        self.later(self.memory.finish(record))
    }

    fn mark_fetched(&self, id: Uuid) -> StoreFuture<()> {
        self.memory.mark_fetched(id)
    }

    fn get(&self, id: Uuid) -> StoreFuture<Option<Arc<Record>>> {
        self.memory.get(id)
    }

    fn find(&self, caller: &Caller, low: Uuid, high: Uuid) -> StoreFuture<Option<Arc<Record>>> {
        self.memory.find(caller, low, high)
    }

    fn list(&self, caller: &Caller, most: usize) -> StoreFuture<Vec<Arc<Record>>> {
        self.memory.list(caller, most)
    }

    fn sweep(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.memory.sweep()
    }
}
