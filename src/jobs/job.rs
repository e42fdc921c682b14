//! One job: an upstream call whose answer its client did not wait for.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::config::ToolPolicy;
use crate::rpc::id::Id;
use crate::rpc::object::Members;

use super::caller::Caller;
use super::duplicates::Fingerprint;

/// How a call ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// the server's result, raw JSON
    Result(Bytes),
    /// the server's JSON-RPC error object, raw JSON
    Error(Bytes),
    /// no answer came, and why (contract §7)
    Lost(Arc<str>),
    /// `job_cancel`
    Cancelled,
}

impl Outcome {
    /// The same in memory of its own: a job must hold no read buffer that is larger than what it
    /// keeps of it.
    pub fn copied(self) -> Self {
        match self {
            Outcome::Result(raw) => Outcome::Result(Bytes::copy_from_slice(&raw)),
            Outcome::Error(raw) => Outcome::Error(Bytes::copy_from_slice(&raw)),
            Outcome::Lost(_) | Outcome::Cancelled => self,
        }
    }
}

/// The words of MCP tasks, and `expired` (contract §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Working,
    /// the server has asked for input (§8.4)
    InputRequired,
    Completed,
    Failed,
    Cancelled,
    Expired,
}

impl Status {
    /// Whether the job has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, Status::Working | Status::InputRequired)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Working => "working",
            Status::InputRequired => "input_required",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Expired => "expired",
        }
    }
}

impl Outcome {
    /// The status of a job that ended so; a result with `isError: true` is a failure (§4.2).
    pub fn status(&self) -> Status {
        match self {
            Outcome::Result(result) if is_error(result) => Status::Failed,
            Outcome::Result(_) => Status::Completed,
            Outcome::Error(_) | Outcome::Lost(_) => Status::Failed,
            Outcome::Cancelled => Status::Cancelled,
        }
    }

    /// Bytes that the outcome keeps in memory.
    pub fn size(&self) -> u64 {
        match self {
            Outcome::Result(bytes) | Outcome::Error(bytes) => bytes.len() as u64,
            Outcome::Lost(cause) => cause.len() as u64,
            Outcome::Cancelled => 0,
        }
    }
}

fn is_error(result: &[u8]) -> bool {
    std::str::from_utf8(result)
        .ok()
        .and_then(Members::parse)
        .is_some_and(|members| members.get("isError") == Some("true"))
}

/// Who runs the upstream call of a job; a session of the relay.
pub trait Owner: Send + Sync {
    /// Tells the server, by the means of its era, that the job is not wanted any more.
    fn cancel(&self, job: &Job);
}

/// What is fixed when a call becomes a job.
pub struct Origin {
    pub caller: Caller,
    pub tool: Arc<str>,
    /// the arguments, shortened to 120 bytes
    pub arguments: Box<str>,
    /// what an equal call is known by; `None` where it may not be joined
    pub fingerprint: Option<Fingerprint>,
    /// when the request arrived
    pub started: Instant,
    pub policy: Arc<ToolPolicy>,
    /// whether the server marks the tool as safe to repeat, where it says so
    pub repeatable: Option<bool>,
    /// the call's place in the line of its tool, from 1; 0 where the server has it (§4.2)
    pub place: Option<Arc<AtomicUsize>>,
    pub owner: Weak<dyn Owner>,
}

/// A job. Its end, and whether it was fetched, go through [`super::registry::Registry`].
pub struct Job {
    pub id: Uuid,
    pub origin: Origin,
    pub(super) serial: u64,
    state: Mutex<State>,
    changed: Notify,
    seq: AtomicU64,
}

#[derive(Default)]
struct State {
    progress: Option<Box<str>>,
    /// the server's `input_required` result, raw JSON, until it is answered
    question: Option<Bytes>,
    upstream_id: Option<Id>,
    end: Option<End>,
    fetched: bool,
    last_poll: Option<Instant>,
}

/// The end of a job.
#[derive(Clone)]
pub struct End {
    pub at: Instant,
    pub wall_clock: Timestamp,
    /// how it ended, also after it expired
    pub status: Status,
    /// `None` once it has expired
    pub outcome: Option<Outcome>,
}

impl Job {
    pub(super) fn new(origin: Origin, serial: u64) -> Self {
        Job {
            id: Uuid::new_v4(),
            origin,
            serial,
            state: Mutex::default(),
            changed: Notify::new(),
            seq: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while a job is held")
    }

    /// The first 8 characters of the id: all that logs may show (§10).
    pub fn short_id(&self) -> String {
        let mut id = self.id.to_string();
        id.truncate(8);
        id
    }

    /// The number of the next answer about this job; it grows with every one (§4.2).
    pub fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How the job stands now.
    pub fn status(&self) -> Status {
        let state = self.state();
        match &state.end {
            None if state.question.is_some() => Status::InputRequired,
            None => Status::Working,
            Some(End { outcome: None, .. }) => Status::Expired,
            Some(end) => end.status,
        }
    }

    pub fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    pub fn is_done(&self) -> bool {
        self.state().end.is_some()
    }

    /// From the arrival of the request to now, or to the end.
    pub fn elapsed(&self) -> Duration {
        let end = self.state().end.as_ref().map_or_else(Instant::now, |end| end.at);
        end.duration_since(self.origin.started)
    }

    /// The last progress that the server sent: raw JSON of `{progress, total?, message?}`.
    pub fn progress(&self) -> Option<Box<str>> {
        self.state().progress.clone()
    }

    pub fn set_progress(&self, progress: Box<str>) {
        let mut state = self.state();
        if state.end.is_none() {
            state.progress = Some(progress);
        }
    }

    /// The place in the line of its tool, from 1; 0 where the server has the call (§4.2).
    pub fn place(&self) -> usize {
        self.origin.place.as_ref().map_or(0, |place| place.load(Ordering::Relaxed))
    }

    /// When the next poll of an unfinished job may be answered: two polls are spread to one
    /// second (§5.1).
    pub fn next_poll_at(&self) -> Option<Instant> {
        self.state().last_poll.map(|last| last + Duration::from_secs(1))
    }

    /// Notes that a poll was answered.
    pub fn polled(&self) {
        self.state().last_poll = Some(Instant::now());
    }

    /// What the server asks for: its `input_required` result, raw JSON.
    pub fn question(&self) -> Option<Bytes> {
        self.state().question.clone()
    }

    /// The server asks for input, or, with `None`, gets its answer.
    pub fn set_question(&self, question: Option<Bytes>) {
        self.state().question = question;
        self.changed.notify_waiters();
    }

    /// The id by which the owner's server knows the call now.
    pub fn upstream_id(&self) -> Option<Id> {
        self.state().upstream_id.clone()
    }

    pub fn set_upstream_id(&self, id: Id) {
        self.state().upstream_id = Some(id);
    }

    /// Whether there is more to tell than that it still runs.
    pub fn has_news(&self) -> bool {
        self.status() != Status::Working
    }

    /// Waits for the end of the job, or, with `questions`, for one of its server.
    pub async fn news(&self, questions: bool) {
        loop {
            let changed = self.changed.notified();
            if self.is_done() || (questions && self.has_news()) {
                return;
            }
            changed.await;
        }
    }

    /// Sets the end, once; whoever comes later gets `false`, and their outcome is dropped.
    pub(super) fn set_end(&self, outcome: Outcome) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        state.question = None;
        state.end = Some(End {
            at: Instant::now(),
            wall_clock: Timestamp::now(),
            status: outcome.status(),
            outcome: Some(outcome),
        });
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Notes the first fetch; `false` if it was fetched before.
    pub(super) fn set_fetched(&self) -> bool {
        !std::mem::replace(&mut self.state().fetched, true)
    }

    /// Drops the outcome and leaves a tombstone. Returns the bytes set free; `None` if there was
    /// nothing to drop.
    pub(super) fn expire(&self) -> Option<u64> {
        let outcome = self.state().end.as_mut()?.outcome.take()?;
        Some(outcome.size())
    }
}
