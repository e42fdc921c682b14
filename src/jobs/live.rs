//! Live jobs: jobs that run in this process, with the session that runs the call of each, and what
//! wakes those who wait for it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::rpc::id::Id;
use crate::rpc::object::Members;

use super::record::{End, Outcome, Record, Status};

/// A call's place in the line of its tool, from 1; 0 where the server has it (§4.2).
pub(crate) type Place = Arc<AtomicUsize>;

/// What runs the call of a job: a session of the relay.
pub(crate) trait Owner: Send + Sync {
    /// Cancels the call at the server.
    fn cancel(&self, job: &LiveJob);
}

/// A job whose call this process runs. It is ended by [`super::registry::Registry::finish`] alone.
pub(crate) struct LiveJob {
    /// the record from when the job began
    pub record: Arc<Record>,
    started: Instant,
    place: Option<Place>,
    owner: Weak<dyn Owner>,
    /// how many answers about it have got a number (`seq`)
    answers: AtomicU64,
    state: Mutex<LiveState>,
    changed: Notify,
}

#[derive(Default)]
struct LiveState {
    /// the last progress, raw JSON
    progress: Option<Box<str>>,
    /// the server's `input_required` result, raw JSON, until it is answered
    question: Option<Bytes>,
    /// the id by which the server knows the call
    upstream_id: Option<Id>,
    last_poll: Option<Instant>,
    ending: Ending,
}

/// How far the end of a job has come. Nobody is told of an end before it is stored (contract §11).
#[derive(Default)]
enum Ending {
    #[default]
    Running,
    /// it has ended, and the store has not answered yet
    Ended,
    /// it has ended, and the record of that is stored
    Stored(Arc<Record>),
}

impl LiveJob {
    /// `started`: when the request arrived, the same moment as in the record.
    pub(crate) fn new(
        record: Arc<Record>,
        started: Instant,
        place: Option<Place>,
        owner: Weak<dyn Owner>,
    ) -> Self {
        LiveJob {
            record,
            started,
            place,
            owner,
            answers: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().expect("no panic while a job is held")
    }

    /// The session that runs its call; `None` where that has ended.
    pub(crate) fn owner(&self) -> Option<Arc<dyn Owner>> {
        self.owner.upgrade()
    }

    /// The number of the next answer about this job; it grows with every one (§4.2).
    pub(crate) fn next_seq(&self) -> u64 {
        self.answers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// From the arrival of the request to now.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The last progress that the server sent: raw JSON of `{progress, total?, message?}`.
    pub(crate) fn progress(&self) -> Option<Box<str>> {
        self.state().progress.clone()
    }

    /// Sets the last progress of the server; dropped once the job has ended.
    pub(crate) fn set_progress(&self, progress: Box<str>) {
        let mut state = self.state();
        if matches!(state.ending, Ending::Running) {
            state.progress = Some(progress);
        }
    }

    /// The place in the line of its tool, from 1; 0 where the server has the call (§4.2).
    pub(crate) fn place(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.load(Ordering::Relaxed))
    }

    /// When the next poll of a running job may be answered: a second after the last one (§5.1).
    pub(crate) fn next_poll_at(&self) -> Option<Instant> {
        self.state().last_poll.map(|last| last + Duration::from_secs(1))
    }

    /// Notes that a poll was answered.
    pub(crate) fn mark_polled(&self) {
        self.state().last_poll = Some(Instant::now());
    }

    /// What the server asks for: its `input_required` result, raw JSON.
    pub(crate) fn question(&self) -> Option<Bytes> {
        self.state().question.clone()
    }

    /// The server asks for input, or, with `None`, gets its answer.
    pub(crate) fn set_question(&self, question: Option<Bytes>) {
        self.state().question = question;
        self.changed.notify_waiters();
    }

    /// The id by which the server knows the call now.
    pub(crate) fn upstream_id(&self) -> Option<Id> {
        self.state().upstream_id.clone()
    }

    /// The server knows the call by this id from now on.
    pub(crate) fn set_upstream_id(&self, id: Id) {
        self.state().upstream_id = Some(id);
    }

    /// Whether its end is known and stored.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state().ending, Ending::Stored(_))
    }

    /// Whether its end is stored, or its server asks for input.
    pub(crate) fn is_done_or_asks(&self) -> bool {
        let state = self.state();
        matches!(state.ending, Ending::Stored(_)) || state.question.is_some()
    }

    /// Waits for the end of the job, or, with `questions`, until its server asks for input.
    pub(crate) async fn end_or_question(&self, questions: bool) {
        loop {
            let changed = self.changed.notified();
            if self.is_done() || (questions && self.is_done_or_asks()) {
                return;
            }
            changed.await;
        }
    }

    /// Ends it, once, and returns the record of the end, which has to be stored. Whoever comes later
    /// gets `None`, and their outcome is dropped. `reached`: the server may have begun with it.
    pub(super) fn end(&self, outcome: Outcome, reached: bool) -> Option<Record> {
        let mut state = self.state();
        if !matches!(state.ending, Ending::Running) {
            return None;
        }
        state.ending = Ending::Ended;
        state.question = None;
        let end = End {
            at: Timestamp::now(),
            took: self.started.elapsed(),
            status: outcome.status(),
            reached,
            progress: state.progress.clone(),
            outcome: Some(outcome),
        };
        Some(Record { end: Some(end), ..Record::clone(&self.record) })
    }

    /// The record of its end is stored: wakes all who wait for it.
    pub(super) fn mark_stored(&self, record: Arc<Record>) {
        self.state().ending = Ending::Stored(record);
        self.changed.notify_waiters();
    }
}

/// The jobs of this process by id. Those of different ids never wait for one another.
#[derive(Default)]
pub(crate) struct LiveJobs(DashMap<Uuid, Arc<LiveJob>>);

impl LiveJobs {
    /// Adds a job.
    pub(super) fn insert(&self, job: Arc<LiveJob>) {
        self.0.insert(job.record.id, job);
    }

    /// The job of this id.
    pub(super) fn get(&self, id: &Uuid) -> Option<Arc<LiveJob>> {
        self.0.get(id).map(|job| job.clone())
    }

    /// Removes a job.
    pub(super) fn remove(&self, id: &Uuid) {
        self.0.remove(id);
    }

    /// The job of a record from the store: the live one where this process runs it.
    pub(super) fn job(&self, record: Arc<Record>) -> Job {
        match self.get(&record.id) {
            Some(live) => Job::live(&live),
            None => Job::stored(record),
        }
    }
}

/// A job at one moment, for an answer about it.
#[derive(Clone)]
pub(crate) struct Job {
    pub record: Arc<Record>,
    /// `None`: this process does not run it
    live: Option<Arc<LiveJob>>,
}

impl Job {
    /// A live job as it is now.
    pub(crate) fn live(job: &Arc<LiveJob>) -> Self {
        match &job.state().ending {
            Ending::Stored(record) => Job::stored(record.clone()),
            Ending::Running | Ending::Ended => {
                Job { record: job.record.clone(), live: Some(job.clone()) }
            }
        }
    }

    /// A job that this process does not run.
    pub(crate) fn stored(record: Arc<Record>) -> Self {
        Job { record, live: None }
    }

    /// The same job as it is now.
    pub(crate) fn now(&self) -> Self {
        self.live.as_ref().map_or_else(|| self.clone(), Job::live)
    }

    /// The live job, where this process runs it and it has not ended.
    pub(crate) fn running(&self) -> Option<&Arc<LiveJob>> {
        self.live.as_ref()
    }

    /// Its id.
    pub(crate) fn id(&self) -> Uuid {
        self.record.id
    }

    /// The name of its tool.
    pub(crate) fn tool(&self) -> &Arc<str> {
        &self.record.tool
    }

    /// Its status.
    pub(crate) fn status(&self) -> Status {
        match &self.live {
            Some(live) if live.question().is_some() => Status::InputRequired,
            _ => self.record.status(),
        }
    }

    /// Whether it has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.record.end.is_some()
    }

    /// From the arrival of the request to now, or to the end.
    pub(crate) fn elapsed(&self) -> Duration {
        match (&self.record.end, &self.live) {
            (Some(end), _) => end.took,
            (None, Some(live)) => live.elapsed(),
            (None, None) => self.age(),
        }
    }

    /// From the arrival of the request to now.
    pub(crate) fn age(&self) -> Duration {
        match &self.live {
            Some(live) => live.elapsed(),
            None => elapsed_since(self.record.started),
        }
    }

    /// The last progress that the server sent: raw JSON of `{progress, total?, message?}`.
    pub(crate) fn progress(&self) -> Option<Box<str>> {
        match (&self.record.end, &self.live) {
            (Some(end), _) => end.progress.clone(),
            (None, live) => live.as_ref().and_then(|live| live.progress()),
        }
    }

    /// The `message` of the last progress.
    pub(crate) fn progress_text(&self) -> Option<String> {
        let progress = self.progress()?;
        Members::parse(&progress)?.text("message").map(Into::into)
    }

    /// The place in the line of its tool, from 1; 0 where the server has or had the call.
    pub(crate) fn place(&self) -> usize {
        self.live.as_ref().map_or(0, |live| live.place())
    }

    /// What the server asks for: its `input_required` result, raw JSON.
    pub(crate) fn question(&self) -> Option<Bytes> {
        self.live.as_ref()?.question()
    }

    /// The number of the next answer about this job; it grows with every one (§4.2).
    pub(crate) fn next_seq(&self) -> u64 {
        self.live.as_ref().map_or(1, |live| live.next_seq())
    }
}

/// The wall-clock time since then; 0 where the clock was set back.
fn elapsed_since(then: Timestamp) -> Duration {
    Duration::try_from(Timestamp::now().duration_since(then)).unwrap_or_default()
}
