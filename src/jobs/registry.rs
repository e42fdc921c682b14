//! All jobs of this process, in memory. Every change of a job goes through here.
//!
//! One mutex guards the indexes; it is held for map operations only, never across an `.await`,
//! and no operation walks the whole table (create, finish and get stay flat with the number of
//! jobs).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::info;
use uuid::Uuid;

use super::caller::Caller;
use super::duplicates::Fingerprint;
use super::eta::PastRuns;
use super::job::{Job, Origin, Outcome, Status};

/// How long a tombstone tells what became of an expired job (§5.1).
const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);
/// What a job keeps in memory besides its outcome, about, in bytes.
const OVERHEAD: u64 = 1024;

/// The jobs and what is known of past ones.
pub struct Registry {
    index: Mutex<Index>,
    /// wakes the sweeper when an earlier time is due
    sooner: Notify,
    pub past_runs: PastRuns,
    max_running: usize,
    max_stored: u64,
}

#[derive(Default)]
struct Index {
    /// ordered by id, so that a prefix is a range
    jobs: BTreeMap<Uuid, Entry>,
    /// each caller's jobs in the order of their creation
    by_caller: BTreeMap<(Arc<str>, u64), Uuid>,
    /// what each principal takes up
    usage: HashMap<Arc<str>, Usage>,
    joinable: HashMap<Fingerprint, Uuid>,
    /// joinable jobs by tool, so that most calls need no fingerprint
    joinable_tools: HashMap<Arc<str>, usize>,
    /// when a result expires, or its tombstone goes
    due: BTreeSet<(Instant, Uuid)>,
    /// results that were fetched, which go when room is needed
    fetched: BTreeSet<(Instant, Uuid)>,
    /// the tombstones in `due`, which go even before those
    tombstones: BTreeSet<(Instant, Uuid)>,
    serial: u64,
    running: usize,
    stored: u64,
}

/// What one principal takes up.
#[derive(Default)]
struct Usage {
    jobs: usize,
    running: usize,
    stored: u64,
}

struct Entry {
    job: Arc<Job>,
    /// its place in `Index::due`
    due: Option<Instant>,
    /// its place in `Index::fetched`
    fetched: Option<Instant>,
}

/// Why a call can't become a job now; it then waits for its answer as without the proxy (§3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("max_running")]
    Running,
    #[error("max_stored")]
    Stored,
}

impl Registry {
    pub fn new(max_running: usize, max_stored: u64) -> Self {
        Registry {
            index: Mutex::default(),
            sooner: Notify::new(),
            past_runs: PastRuns::default(),
            max_running,
            max_stored,
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().expect("no panic while the jobs are held")
    }

    /// Makes a job of a running call.
    pub fn create(&self, origin: Origin) -> Result<Arc<Job>, Full> {
        let mut index = self.index();
        if index.running >= self.max_running {
            return Err(Full::Running);
        }
        index.make_room(self.max_stored.saturating_sub(OVERHEAD));
        if index.stored + OVERHEAD > self.max_stored {
            return Err(Full::Stored);
        }
        self.check_share(&mut index, &origin.caller)?;
        index.serial += 1;
        let job = Arc::new(Job::new(origin, index.serial));
        index.jobs.insert(job.id, Entry { job: job.clone(), due: None, fetched: None });
        index.began(&job);
        if let Some(own) = job.origin.caller.own() {
            index.by_caller.insert((own.clone(), job.serial), job.id);
        }
        index.make_joinable(&job);
        Ok(job)
    }

    /// Where there are several principals, none may take up more than a quarter (§10).
    fn check_share(&self, index: &mut Index, caller: &Caller) -> Result<(), Full> {
        let principal = caller.principal();
        let others = index.usage.len() - usize::from(index.usage.contains_key(principal));
        if others == 0 {
            return Ok(());
        }
        let share = (self.max_stored / 4).saturating_sub(OVERHEAD);
        index.make_room_of(principal, share);
        match index.usage.get(principal) {
            Some(usage) if usage.running >= self.max_running.div_ceil(4) => Err(Full::Running),
            Some(usage) if usage.stored > share => Err(Full::Stored),
            _ => Ok(()),
        }
    }

    /// Ends a job; the first end counts, a later one is dropped. The outcome is kept before
    /// anyone who waits is told.
    pub fn finish(&self, job: &Arc<Job>, outcome: Outcome) -> bool {
        let size = outcome.size();
        let mut index = self.index();
        if !job.set_end(outcome) {
            return false;
        }
        index.ended(job, size);
        if job.status() == Status::Cancelled {
            index.unjoin(job);
        }
        index.make_room(self.max_stored);
        self.set_due(index, job, Instant::now() + job.origin.policy.result_ttl);
        info!(
            job = job.short_id(),
            tool = &*job.origin.tool,
            "job {} after {:.1} s",
            job.status().as_str(),
            job.elapsed().as_secs_f64()
        );
        true
    }

    /// The result was read to its end by a caller who was still there (§5.1).
    pub fn fetched(&self, job: &Arc<Job>) {
        let mut index = self.index();
        if job.status() == Status::Expired || !job.set_fetched() {
            return;
        }
        index.unjoin(job);
        let now = Instant::now();
        index.set_fetched(job.id, now);
        self.set_due(index, job, now + job.origin.policy.fetched_ttl);
    }

    fn set_due(&self, mut index: MutexGuard<Index>, job: &Job, at: Instant) {
        let first = index.due.first().map(|(first, _)| *first);
        index.set_due(job.id, Some(at));
        drop(index);
        if first.is_none_or(|first| at < first) {
            self.sooner.notify_one();
        }
    }

    /// A caller's job by its full id, or one of their own by a prefix of at least 8 characters that
    /// only one of these has, in any case (§4.4).
    pub fn get(&self, caller: &Caller, id: &str) -> Option<Arc<Job>> {
        let (low, high) = id_range(id)?;
        let index = self.index();
        if low == high {
            let job = &index.jobs.get(&low)?.job;
            return caller.may_open_jobs_of(&job.origin.caller).then(|| job.clone());
        }
        let mut own = index.jobs.range(low..=high).map(|(_, entry)| &entry.job);
        let mut own =
            own.by_ref().filter(|job| caller.is_known() && job.origin.caller.own() == caller.own());
        let found = own.next()?.clone();
        own.next().is_none().then_some(found)
    }

    /// A caller's jobs, newest first (§5.1).
    pub fn list(&self, caller: &Caller, most: usize) -> Vec<Arc<Job>> {
        let Some(own) = caller.own() else { return Vec::new() };
        let index = self.index();
        let own = (own.clone(), 0)..=(own.clone(), u64::MAX);
        index
            .by_caller
            .range(own)
            .rev()
            .take(most)
            .map(|(_, id)| index.jobs[id].job.clone())
            .collect()
    }

    /// Whether a call of this tool may have an equal one among the jobs.
    pub fn may_join(&self, tool: &str) -> bool {
        let index = self.index();
        !index.joinable_tools.is_empty() && index.joinable_tools.contains_key(tool)
    }

    /// The job that an equal call joins: one that runs, or whose result is unfetched and younger
    /// than `join_window` (§7).
    pub fn join(&self, fingerprint: &Fingerprint) -> Option<Arc<Job>> {
        let mut index = self.index();
        let job = index.jobs.get(index.joinable.get(fingerprint)?)?.job.clone();
        let fresh = match job.end() {
            // A question is for the caller that the server asked.
            None => job.question().is_none(),
            Some(end) => end.at.elapsed() < job.origin.policy.join_window,
        };
        if !fresh {
            if job.is_done() {
                index.unjoin(&job);
            }
            return None;
        }
        Some(job)
    }

    /// The time that a job still needs, where it is known (§4.2).
    pub fn remaining(&self, job: &Job) -> Option<Duration> {
        let origin = &job.origin;
        self.past_runs.remaining(&origin.tool, job.elapsed(), origin.policy.expected)
    }

    /// Drops results and tombstones when their time has come; runs for ever.
    pub async fn sweep(&self) {
        loop {
            let next = self.index().expire_due();
            match next {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.sooner.notified() => {}
                },
                None => self.sooner.notified().await,
            }
        }
    }
}

impl Index {
    fn usage(&mut self, job: &Job) -> &mut Usage {
        self.usage.entry(job.origin.caller.principal().clone()).or_default()
    }

    fn began(&mut self, job: &Job) {
        self.running += 1;
        self.stored += OVERHEAD;
        let usage = self.usage(job);
        usage.jobs += 1;
        usage.running += 1;
        usage.stored += OVERHEAD;
    }

    fn ended(&mut self, job: &Job, size: u64) {
        self.running -= 1;
        self.stored += size;
        let usage = self.usage(job);
        usage.running -= 1;
        usage.stored += size;
    }

    fn dropped(&mut self, job: &Job, size: u64) {
        self.stored -= size;
        self.usage(job).stored -= size;
    }

    fn forget(&mut self, job: &Job) {
        self.dropped(job, OVERHEAD);
        self.jobs.remove(&job.id);
        if let Some(own) = job.origin.caller.own() {
            self.by_caller.remove(&(own.clone(), job.serial));
        }
        let usage = self.usage(job);
        usage.jobs -= 1;
        if usage.jobs == 0 {
            self.usage.remove(job.origin.caller.principal());
        }
    }

    fn make_joinable(&mut self, job: &Job) {
        let Some(fingerprint) = job.origin.fingerprint else { return };
        // Of two equal calls that both ran, the later one is joined.
        if self.joinable.insert(fingerprint, job.id).is_none() {
            *self.joinable_tools.entry(job.origin.tool.clone()).or_default() += 1;
        }
    }

    fn unjoin(&mut self, job: &Job) {
        let Some(fingerprint) = job.origin.fingerprint else { return };
        if self.joinable.get(&fingerprint) != Some(&job.id) {
            return;
        }
        self.joinable.remove(&fingerprint);
        if let Some(count) = self.joinable_tools.get_mut(&job.origin.tool) {
            *count -= 1;
            if *count == 0 {
                self.joinable_tools.remove(&job.origin.tool);
            }
        }
    }

    fn set_due(&mut self, id: Uuid, at: Option<Instant>) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        if let Some(old) = std::mem::replace(&mut entry.due, at) {
            self.due.remove(&(old, id));
        }
        if let Some(at) = at {
            self.due.insert((at, id));
        }
    }

    fn set_fetched(&mut self, id: Uuid, at: Instant) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        entry.fetched = Some(at);
        self.fetched.insert((at, id));
    }

    /// Expires or removes what is due; returns the next time.
    fn expire_due(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while let Some(&(at, id)) = self.due.first() {
            if at > now {
                return Some(at);
            }
            self.expire(id, now);
        }
        None
    }

    /// A result becomes a tombstone, a tombstone goes.
    fn expire(&mut self, id: Uuid, now: Instant) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let (job, due) = (entry.job.clone(), entry.due);
        if let Some(at) = entry.fetched.take() {
            self.fetched.remove(&(at, id));
        }
        match job.expire() {
            Some(bytes) => {
                self.dropped(&job, bytes);
                self.unjoin(&job);
                self.set_due(id, Some(now + TOMBSTONE));
                self.tombstones.insert((now + TOMBSTONE, id));
            }
            None => {
                self.tombstones.remove(&(due.unwrap_or(now), id));
                self.set_due(id, None);
                self.forget(&job);
            }
        }
    }

    /// Over the limit, tombstones and then fetched results go, the oldest first; unfetched ones
    /// never do (§11).
    fn make_room(&mut self, max_stored: u64) {
        while self.stored > max_stored
            && let Some(&(_, id)) = self.tombstones.first().or(self.fetched.first())
        {
            self.expire(id, Instant::now());
        }
    }

    /// The same for one principal.
    fn make_room_of(&mut self, principal: &Arc<str>, max_stored: u64) {
        let over = |index: &Self| index.usage.get(principal).is_some_and(|u| u.stored > max_stored);
        if !over(self) {
            return;
        }
        let own = |(_, id): &&(Instant, Uuid)| {
            self.jobs.get(id).is_some_and(|e| e.job.origin.caller.principal() == principal)
        };
        let may_go = self.tombstones.iter().chain(&self.fetched).filter(own);
        let may_go: Vec<Uuid> = may_go.map(|(_, id)| *id).collect();
        for id in may_go {
            if !over(self) {
                return;
            }
            self.expire(id, Instant::now());
        }
    }
}

/// The ids that a text of at least 8 characters may stand for.
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
