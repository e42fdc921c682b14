//! The registry, through which every change of a job goes: to the live jobs, and to the store that
//! keeps all records.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{info, warn};
use uuid::Uuid;

use crate::config::ToolPolicy;

use super::caller::Caller;
use super::duplicates::Fingerprint;
use super::eta::PastRuns;
use super::joinable::Joinable;
use super::live::{Job, LiveJob, LiveJobs, Owner, Place};
use super::record::{Outcome, Record, Status, Terms};
use super::store::{Full, Store, StoreError, StoreFuture, poll_now, ready};

/// The jobs, and the durations of past ones.
pub(crate) struct Registry {
    live: Arc<LiveJobs>,
    store: Arc<dyn Store>,
    /// jobs that equal calls may join
    joinable: Mutex<Joinable>,
    pub past_runs: PastRuns,
    /// tasks that wait for the store
    tasks: Mutex<JoinSet<()>>,
}

/// What has to be known of a call that becomes a job.
pub(crate) struct NewJob {
    pub caller: Caller,
    pub tool: Arc<str>,
    /// the arguments, shortened to 120 bytes
    pub arguments: Box<str>,
    /// by what an equal call is found; `None` where the job may not be joined
    pub fingerprint: Option<Fingerprint>,
    /// when the request arrived
    pub started: Instant,
    pub policy: Arc<ToolPolicy>,
    /// whether the server marks the tool as safe to repeat, where it says so
    pub repeatable: Option<bool>,
    pub place: Option<Place>,
    pub owner: Weak<dyn Owner>,
}

/// A job that has just begun. The requester gets its handle once it is stored.
pub(crate) struct CreatedJob {
    pub job: Arc<LiveJob>,
    /// the answer of the store
    pub stored: StoreFuture<()>,
}

impl Registry {
    /// A registry without live jobs.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Registry {
            live: Arc::default(),
            store,
            joinable: Mutex::default(),
            past_runs: PastRuns::default(),
            tasks: Mutex::default(),
        }
    }

    fn joinable(&self) -> MutexGuard<'_, Joinable> {
        self.joinable.lock().expect("no panic while the joinable jobs are held")
    }

    /// Makes a job of a call.
    ///
    /// # Errors
    /// There is no room for it.
    pub(crate) fn create(&self, start: NewJob) -> Result<CreatedJob, Full> {
        let record = Arc::new(record_of(&start));
        let stored = self.store.create(record.clone())?;
        let NewJob { started, place, owner, .. } = start;
        let job = Arc::new(LiveJob::new(record, started, place, owner));
        self.live.insert(job.clone());
        self.joinable().insert(&job.record);
        Ok(CreatedJob { job, stored })
    }

    /// Ends a job; `false`: it had ended before, and this outcome is dropped. All who wait for the
    /// job are told once its end is stored.
    pub(crate) fn finish(self: &Arc<Self>, job: &Arc<LiveJob>, outcome: Outcome) -> bool {
        self.end(job, outcome, true)
    }

    /// Ends a job that has not reached the server, for this cause.
    pub(crate) fn never_began(self: &Arc<Self>, job: &Arc<LiveJob>, cause: String) -> bool {
        self.end(job, Outcome::Lost(cause.into()), false)
    }

    fn end(self: &Arc<Self>, job: &Arc<LiveJob>, outcome: Outcome, reached: bool) -> bool {
        let Some(record) = job.end(outcome, reached) else { return false };
        let record = Arc::new(record);
        // An equal call does no harm then, and is what the caller wants.
        if record.status() == Status::Cancelled || !reached {
            self.joinable().remove(record.id);
        } else {
            self.joinable().mark_ended(&record);
        }
        let stored = self.store.finish(record.clone());
        let (this, job) = (self.clone(), job.clone());
        self.when(stored, move |stored| this.end_stored(&job, record, stored));
        true
    }

    /// The store has answered that it keeps the end of a job, or that it can't.
    fn end_stored(&self, job: &LiveJob, record: Arc<Record>, stored: Result<(), StoreError>) {
        let took = record.end.as_ref().map_or(0.0, |end| end.took.as_secs_f64());
        info!(
            job = record.short_id(),
            tool = &*record.tool,
            "job {} after {took:.1} s",
            record.status().as_str(),
        );
        let id = record.id;
        job.mark_stored(record);
        match stored {
            Ok(()) => self.live.remove(&id),
            // Then the live job is kept, with its result, as long as the process runs.
            Err(error) => warn!("a result is kept in memory alone: {error}"),
        }
    }

    /// A caller got the result to its end (§5.1): `fetched_ttl` begins, and no call joins it.
    pub(crate) fn mark_fetched(&self, job: &Job) {
        self.joinable().remove(job.id());
        let noted = self.store.mark_fetched(job.id());
        self.when(noted, |noted| {
            if let Err(error) = noted {
                warn!("a result that was read is kept for longer: {error}");
            }
        });
    }

    /// Calls `then` with the answer of the store: at once where that is there, else in a task.
    pub(crate) fn when<T: Send + 'static>(
        &self,
        answer: StoreFuture<T>,
        then: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) {
        match poll_now(answer) {
            Ok(said) => then(said),
            Err(answer) => {
                let mut tasks = self.tasks.lock().expect("no panic while the tasks are held");
                while tasks.try_join_next().is_some() {}
                tasks.spawn(async move { then(answer.await) });
            }
        }
    }

    /// A job by its full id, or one of the caller's own by an unambiguous prefix of at least 8
    /// characters (§4.4).
    pub(crate) fn get(&self, caller: &Caller, id: &str) -> StoreFuture<Option<Job>> {
        let Some((low, high)) = id_range(id) else { return ready(None) };
        let is_whole = low == high;
        if is_whole && let Some(job) = self.live.get(&low) {
            let may = caller.may_open_jobs_of(&job.record.caller);
            return ready(may.then(|| Job::live(&job)));
        }
        let found = match is_whole {
            true => self.store.get(low),
            false if caller.is_known() => self.store.find(caller, low, high),
            false => return ready(None),
        };
        let (caller, live) = (caller.clone(), self.live.clone());
        mapped(found, move |found| {
            let record = found.filter(|record| caller.may_open_jobs_of(&record.caller))?;
            Some(live.job(record))
        })
    }

    /// A caller's jobs, newest first (§5.1).
    pub(crate) fn list(&self, caller: &Caller, most: usize) -> StoreFuture<Vec<Job>> {
        let live = self.live.clone();
        mapped(self.store.list(caller, most), move |records| {
            records.into_iter().map(|record| live.job(record)).collect()
        })
    }

    /// Whether a call of this tool may have an equal one among the jobs. It costs next to nothing,
    /// and asks no store.
    pub(crate) fn may_join(&self, tool: &str) -> bool {
        self.joinable().may_join(tool)
    }

    /// The job that an equal call joins: one that runs, or whose result is unfetched and younger
    /// than `join_window` (§7). `None`: it is known at once that there is none.
    pub(crate) fn join(&self, fingerprint: &Fingerprint) -> Option<StoreFuture<Option<Job>>> {
        self.joinable().equal(fingerprint).find_map(|id| match self.live.get(&id) {
            // A question is for the caller that the server asked.
            Some(job) if job.question().is_some() => None,
            Some(job) => Some(ready(Some(Job::live(&job)))),
            None => Some(mapped(self.store.get(id), |record| {
                record.filter(|record| record.status() != Status::Expired).map(Job::stored)
            })),
        })
    }

    /// The time that a job still needs, where it is known (§4.2).
    pub(crate) fn remaining(&self, job: &Job) -> Option<Duration> {
        self.past_runs.remaining(job.tool(), job.elapsed(), job.record.terms.expected)
    }

    /// Drops results and tombstones when they expire; runs for ever.
    pub(crate) async fn sweep(&self) {
        self.store.sweep().await;
    }
}

/// The record of a job that begins.
fn record_of(start: &NewJob) -> Record {
    Record {
        id: Uuid::new_v4(),
        caller: start.caller.clone(),
        tool: start.tool.clone(),
        arguments: start.arguments.clone(),
        fingerprint: start.fingerprint,
        started: Timestamp::now() - start.started.elapsed(),
        terms: Terms::from(&*start.policy),
        repeatable: start.repeatable,
        end: None,
        fetched: None,
    }
}

/// An answer of the store, made into another one.
fn mapped<T, U>(answer: StoreFuture<T>, f: impl FnOnce(T) -> U + Send + 'static) -> StoreFuture<U>
where
    T: Send + 'static,
    U: Send + 'static,
{
    Box::pin(async move { answer.await.map(f) })
}

/// The first and the last id that begin with this text; `None` where it is no prefix of at least 8
/// characters.
fn id_range(text: &str) -> Option<(Uuid, Uuid)> {
    const SHAPE: &str = "00000000-0000-0000-0000-000000000000";
    if text.len() < 8 || text.len() > SHAPE.len() || !text.is_ascii() {
        return None;
    }
    let low = Uuid::parse_str(&format!("{text}{}", &SHAPE[text.len()..])).ok()?;
    let rest = SHAPE[text.len()..].replace('0', "f");
    let high = Uuid::parse_str(&format!("{text}{rest}")).ok()?;
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::jobs::store::slow::SlowStore;

    struct Nobody;

    impl Owner for Nobody {
        fn cancel(&self, _: &LiveJob) {}
    }

    fn start() -> NewJob {
        NewJob {
            caller: Caller::local(),
            tool: "build".into(),
            arguments: "{}".into(),
            fingerprint: Some([7; 32]),
            started: Instant::now(),
            policy: Arc::default(),
            repeatable: None,
            place: None,
            owner: Weak::<Nobody>::new(),
        }
    }

    #[tokio::test]
    async fn nobody_is_told_of_an_end_before_it_is_stored_s11() {
        let (store, mut answers) = SlowStore::new();
        let registry = Arc::new(Registry::new(Arc::new(store)));
        let CreatedJob { job, stored } = registry.create(start()).unwrap();
        let stored = poll_now(stored).expect_err("it is not stored yet");
        answers.recv().await.unwrap().send(()).unwrap();
        stored.await.unwrap();

        let waiting = tokio::spawn({
            let job = job.clone();
            async move { job.end_or_question(false).await }
        });
        let result = Outcome::Result(Bytes::from("{}"));
        assert!(registry.finish(&job, result.clone()));
        assert!(!registry.finish(&job, Outcome::Cancelled), "the first end counts");
        assert!(!job.is_done() && !waiting.is_finished());
        let id = job.record.id.to_string();
        let seen = registry.get(&Caller::local(), &id).await.unwrap().unwrap();
        assert_eq!(seen.status(), Status::Working);

        answers.recv().await.unwrap().send(()).unwrap();
        waiting.await.unwrap();
        let seen = registry.get(&Caller::local(), &id).await.unwrap().unwrap();
        assert_eq!(seen.record.end.as_ref().and_then(|end| end.outcome.clone()), Some(result));
        assert!(registry.live.get(&job.record.id).is_none(), "it runs no more");
    }

    #[tokio::test]
    async fn a_result_that_the_store_refuses_is_not_lost_s11() {
        let (store, answers) = SlowStore::new();
        let registry = Arc::new(Registry::new(Arc::new(store)));
        let CreatedJob { job, .. } = registry.create(start()).unwrap();
        registry.finish(&job, Outcome::Result(Bytes::from("{}")));
        drop(answers);
        job.end_or_question(false).await;
        let id = job.record.id.to_string();
        let seen = registry.get(&Caller::local(), &id).await.unwrap().unwrap();
        assert_eq!(seen.status(), Status::Completed);
    }
}
