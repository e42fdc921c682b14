//! The store, which keeps the records of jobs (contract §11).
//!
//! A store answers with a future: in memory it is ready at once, with a disk or another machine
//! after a while. Calls are done in their order, whether or not somebody awaits the answers.

pub(crate) mod memory;
#[cfg(test)]
pub(crate) mod slow;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use uuid::Uuid;

use crate::config::{self, StoreKind};

use super::caller::Caller;
use super::record::Record;

/// The answer of a store.
pub(crate) type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Why a store can't do now what it was asked for.
#[derive(Debug, thiserror::Error)]
#[error("the job store: {0}")]
pub(crate) struct StoreError(pub String);

/// Why a call can't become a job now; it then waits for its answer as without the proxy (§3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error("max_running")]
    Running,
    #[error("max_stored")]
    Stored,
}

/// How much may be kept (contract §3).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// jobs that run at a time
    pub max_running: usize,
    /// bytes that all jobs may take up
    pub max_stored: u64,
}

/// A store of records. Every implementation passes the tests in the module `tests`.
pub(crate) trait Store: Send + Sync {
    /// Keeps a job that has just begun. Whether there is room is returned at once, since without
    /// room the call does not become a job; the future is ready once the job is kept.
    ///
    /// # Errors
    /// One of the [`Limits`] is reached, for everybody or for this principal (§10).
    fn create(&self, record: Arc<Record>) -> Result<StoreFuture<()>, Full>;

    /// Keeps the end of a job. Nobody may be told of the end before the future is ready (§11).
    fn finish(&self, record: Arc<Record>) -> StoreFuture<()>;

    /// A caller got the result to its end: from now on it is kept for `fetched_ttl`.
    fn mark_fetched(&self, id: Uuid) -> StoreFuture<()>;

    /// The job of this id, of any caller.
    fn get(&self, id: Uuid) -> StoreFuture<Option<Arc<Record>>>;

    /// The one job of the caller's own whose id lies in this range; `None` where there is no such
    /// job, or more than one.
    fn find(&self, caller: &Caller, low: Uuid, high: Uuid) -> StoreFuture<Option<Arc<Record>>>;

    /// The caller's own jobs, newest first, at most `most`.
    fn list(&self, caller: &Caller, most: usize) -> StoreFuture<Vec<Arc<Record>>>;

    /// Drops results and tombstones when they expire; runs for ever.
    fn sweep(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Opens the store that is configured.
pub(crate) fn open(jobs: &config::JobsConfig) -> Arc<dyn Store> {
    let limits = Limits { max_running: jobs.max_running, max_stored: jobs.max_stored };
    match jobs.store {
        StoreKind::Memory => Arc::new(memory::MemoryStore::new(limits)),
    }
}

/// An answer that is ready.
pub(crate) fn ready<T: Send + 'static>(value: T) -> StoreFuture<T> {
    Box::pin(std::future::ready(Ok(value)))
}

/// Takes an answer that is ready, so that a store in memory needs no task.
///
/// # Errors
/// The future itself, where it is not ready yet.
pub(crate) fn poll_now<T>(
    mut answer: StoreFuture<T>,
) -> Result<Result<T, StoreError>, StoreFuture<T>> {
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(answer),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! What every store has to do.

    use std::time::Duration;

    use super::*;
    use crate::jobs::record::tests::{ended, record};
    use crate::jobs::record::{Outcome, Status};

    const LIMITS: Limits = Limits { max_running: 8, max_stored: 64 << 10 };

    /// All tests of a store; `make` gives an empty one.
    pub(crate) async fn suite<S: Store>(make: impl Fn(Limits) -> S) {
        what_is_kept_comes_back_as_it_was(&make(LIMITS)).await;
        callers_find_and_list_their_own_jobs(&make(LIMITS)).await;
        a_result_expires_and_leaves_a_tombstone(&make(LIMITS)).await;
        limits_are_kept(&make(LIMITS)).await;
        fetched_results_make_room_and_unfetched_ones_never(&make(LIMITS)).await;
    }

    fn result(bytes: usize) -> Outcome {
        Outcome::Result(format!(r#"{{"content":"{}"}}"#, "x".repeat(bytes)).into())
    }

    async fn create(store: &impl Store, record: &Record) {
        store.create(Arc::new(record.clone())).expect("there is room").await.unwrap();
    }

    async fn what_is_kept_comes_back_as_it_was(store: &impl Store) {
        let running = record(&Caller::local(), "build");
        create(store, &running).await;
        assert_eq!(*store.get(running.id).await.unwrap().unwrap(), running);
        let done = ended(&running, result(10));
        store.finish(Arc::new(done.clone())).await.unwrap();
        assert_eq!(*store.get(running.id).await.unwrap().unwrap(), done);
        store.mark_fetched(running.id).await.unwrap();
        let fetched = store.get(running.id).await.unwrap().unwrap();
        assert!(fetched.fetched.is_some());
        assert_eq!(fetched.end, done.end, "reading does not consume (§5.1)");
        assert_eq!(store.get(Uuid::new_v4()).await.unwrap(), None);
    }

    async fn callers_find_and_list_their_own_jobs(store: &impl Store) {
        let (me, other) = (Caller::known("me"), Caller::known("other"));
        let jobs = [record(&me, "a"), record(&other, "b"), record(&me, "c")];
        for job in &jobs {
            create(store, job).await;
        }
        let listed = store.list(&me, 10).await.unwrap();
        let tools: Vec<_> = listed.iter().map(|job| &*job.tool).collect();
        assert_eq!(tools, ["c", "a"], "newest first");
        assert_eq!(store.list(&me, 1).await.unwrap().len(), 1);
        assert!(store.list(&Caller::anonymous(), 10).await.unwrap().is_empty());
        let (low, high) = (Uuid::nil(), Uuid::max());
        assert_eq!(store.find(&me, low, high).await.unwrap(), None, "there are two");
        let found = store.find(&other, low, high).await.unwrap();
        assert_eq!(found.map(|job| job.id), Some(jobs[1].id));
    }

    async fn a_result_expires_and_leaves_a_tombstone(store: &impl Store) {
        let mut job = record(&Caller::local(), "build");
        job.terms.result_ttl = Duration::ZERO;
        create(store, &job).await;
        store.finish(Arc::new(ended(&job, result(10)))).await.unwrap();
        let expired = async {
            loop {
                let job = store.get(job.id).await.unwrap().expect("a tombstone stays");
                if job.status() == Status::Expired {
                    return job;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = store.sweep() => unreachable!("it runs for ever"),
            tombstone = expired => {
                assert_eq!(tombstone.end.as_ref().map(|end| end.status), Some(Status::Completed));
            }
        }
    }

    async fn limits_are_kept(store: &impl Store) {
        let (me, other) = (Caller::known("me"), Caller::known("other"));
        for _ in 0..7 {
            create(store, &record(&me, "a")).await;
        }
        create(store, &record(&other, "b")).await;
        let refused = store.create(Arc::new(record(&other, "b")));
        assert_eq!(refused.err(), Some(Full::Running), "max_running");
        let running = store.list(&me, 10).await.unwrap();
        for job in &running[..4] {
            store.finish(Arc::new(ended(job, Outcome::Cancelled))).await.unwrap();
        }
        let refused = store.create(Arc::new(record(&me, "a")));
        assert_eq!(refused.err(), Some(Full::Running), "no more than a quarter (§10)");
        create(store, &record(&other, "b")).await;
    }

    async fn fetched_results_make_room_and_unfetched_ones_never(store: &impl Store) {
        let jobs = [record(&Caller::local(), "a"), record(&Caller::local(), "b")];
        for job in &jobs {
            create(store, job).await;
            store.finish(Arc::new(ended(job, result(30 << 10)))).await.unwrap();
        }
        let more = || store.create(Arc::new(record(&Caller::local(), "c")));
        while more().is_ok() {}
        assert_eq!(more().err(), Some(Full::Stored));
        let status = async |at: usize| store.get(jobs[at].id).await.unwrap().unwrap().status();
        assert_eq!((status(0).await, status(1).await), (Status::Completed, Status::Completed));
        store.mark_fetched(jobs[1].id).await.unwrap();
        assert!(more().is_ok(), "a fetched result makes room (§11)");
        assert_eq!((status(0).await, status(1).await), (Status::Completed, Status::Expired));
    }
}
