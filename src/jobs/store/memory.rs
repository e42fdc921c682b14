//! The store in memory: it ends with the process.
//!
//! One mutex guards the indexes; it is held for map operations only, never across an `.await`, and
//! no operation walks the whole table (create, finish and get stay flat with the number of jobs).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::jobs::caller::Caller;
use crate::jobs::record::{Record, Status};

use super::{Full, Limits, Store, StoreFuture, ready};

/// How long the tombstone of an expired job is kept (§5.1).
const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);
/// About how many bytes a job takes up besides its outcome.
const OVERHEAD: u64 = 1024;

/// The store.
pub(crate) struct MemoryStore {
    index: Mutex<Index>,
    /// wakes the sweeper when something is due earlier than before
    earlier_due: Notify,
    limits: Limits,
}

#[derive(Default)]
struct Index {
    /// ordered by id, so that a prefix is a range
    jobs: BTreeMap<Uuid, Entry>,
    /// each caller's jobs in the order of their creation
    by_caller: BTreeMap<(Arc<str>, u64), Uuid>,
    /// what each principal takes up
    usage: HashMap<Arc<str>, Usage>,
    /// when a result expires, or its tombstone is removed
    due: BTreeSet<(Instant, Uuid)>,
    /// results that were fetched, dropped when room is needed
    fetched: BTreeSet<(Instant, Uuid)>,
    /// the tombstones in `due`, dropped before fetched results
    tombstones: BTreeSet<(Instant, Uuid)>,
    /// the serial number of the job that was created last
    serial: u64,
    /// jobs that run
    running: usize,
    /// bytes that all jobs take up
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
    record: Arc<Record>,
    /// its place in `Index::by_caller`
    serial: u64,
    /// its place in `Index::due`
    due: Option<Instant>,
    /// its place in `Index::fetched`
    fetched: Option<Instant>,
}

impl MemoryStore {
    /// An empty store.
    pub(crate) fn new(limits: Limits) -> Self {
        MemoryStore { index: Mutex::default(), earlier_due: Notify::new(), limits }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().expect("no panic while the jobs are held")
    }

    /// Makes room for another job.
    ///
    /// # Errors
    /// There is none, for everybody or for this principal.
    fn check_room(&self, index: &mut Index, caller: &Caller) -> Result<(), Full> {
        let Limits { max_running, max_stored } = self.limits;
        if index.running >= max_running {
            return Err(Full::Running);
        }
        index.make_room(max_stored.saturating_sub(OVERHEAD));
        if index.stored + OVERHEAD > max_stored {
            return Err(Full::Stored);
        }
        self.check_share(index, caller.principal())
    }

    /// Where there are several principals, none may take up more than a quarter (§10).
    ///
    /// # Errors
    /// This one would.
    fn check_share(&self, index: &mut Index, principal: &Arc<str>) -> Result<(), Full> {
        let others = index.usage.len() - usize::from(index.usage.contains_key(principal));
        if others == 0 {
            return Ok(());
        }
        let share = (self.limits.max_stored / 4).saturating_sub(OVERHEAD);
        index.make_room_of(principal, share);
        match index.usage.get(principal) {
            Some(usage) if usage.running >= self.limits.max_running.div_ceil(4) => {
                Err(Full::Running)
            }
            Some(usage) if usage.stored > share => Err(Full::Stored),
            _ => Ok(()),
        }
    }

    /// Sets when a job is due, and wakes the sweeper if need be.
    fn set_due(&self, mut index: MutexGuard<Index>, id: Uuid, at: Instant) {
        let first = index.due.first().map(|(first, _)| *first);
        index.set_due(id, Some(at));
        drop(index);
        if first.is_none_or(|first| at < first) {
            self.earlier_due.notify_one();
        }
    }
}

impl Store for MemoryStore {
    fn create(&self, record: Arc<Record>) -> Result<StoreFuture<()>, Full> {
        let mut index = self.index();
        self.check_room(&mut index, &record.caller)?;
        index.insert(record);
        Ok(ready(()))
    }

    fn finish(&self, record: Arc<Record>) -> StoreFuture<()> {
        let (id, ttl) = (record.id, record.terms.result_ttl);
        let mut index = self.index();
        index.mark_ended(record);
        index.make_room(self.limits.max_stored);
        self.set_due(index, id, Instant::now() + ttl);
        ready(())
    }

    fn mark_fetched(&self, id: Uuid) -> StoreFuture<()> {
        let mut index = self.index();
        let now = Instant::now();
        if let Some(ttl) = index.set_fetched(id, now) {
            self.set_due(index, id, now + ttl);
        }
        ready(())
    }

    fn get(&self, id: Uuid) -> StoreFuture<Option<Arc<Record>>> {
        ready(self.index().jobs.get(&id).map(|entry| entry.record.clone()))
    }

    fn find(&self, caller: &Caller, low: Uuid, high: Uuid) -> StoreFuture<Option<Arc<Record>>> {
        let index = self.index();
        let records = index.jobs.range(low..=high).map(|(_, entry)| &entry.record);
        let mut own = records.filter(|record| record.caller.job_scope() == caller.job_scope());
        let found = own.next().cloned().filter(|_| own.next().is_none());
        ready(found)
    }

    fn list(&self, caller: &Caller, most: usize) -> StoreFuture<Vec<Arc<Record>>> {
        let Some(scope) = caller.job_scope() else { return ready(Vec::new()) };
        let index = self.index();
        let jobs = index.by_caller.range((scope.clone(), 0)..=(scope.clone(), u64::MAX));
        ready(jobs.rev().take(most).map(|(_, id)| index.jobs[id].record.clone()).collect())
    }

    fn sweep(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            loop {
                let next = self.index().expire_due();
                match next {
                    Some(at) => tokio::select! {
                        () = sleep_until(at) => {}
                        () = self.earlier_due.notified() => {}
                    },
                    None => self.earlier_due.notified().await,
                }
            }
        })
    }
}

impl Index {
    fn usage(&mut self, record: &Record) -> &mut Usage {
        self.usage.entry(record.caller.principal().clone()).or_default()
    }

    fn insert(&mut self, record: Arc<Record>) {
        self.serial += 1;
        let serial = self.serial;
        if let Some(scope) = record.caller.job_scope() {
            self.by_caller.insert((scope.clone(), serial), record.id);
        }
        self.running += 1;
        self.stored += OVERHEAD;
        let usage = self.usage(&record);
        usage.jobs += 1;
        usage.running += 1;
        usage.stored += OVERHEAD;
        self.jobs.insert(record.id, Entry { record, serial, due: None, fetched: None });
    }

    fn mark_ended(&mut self, record: Arc<Record>) {
        let Some(entry) = self.jobs.get_mut(&record.id) else { return };
        entry.record = record.clone();
        let size = record.outcome_size();
        self.running -= 1;
        self.stored += size;
        let usage = self.usage(&record);
        usage.running -= 1;
        usage.stored += size;
    }

    fn subtract_stored(&mut self, record: &Record, size: u64) {
        self.stored -= size;
        self.usage(record).stored -= size;
    }

    /// Removes a job.
    fn forget(&mut self, id: Uuid) {
        let Some(Entry { record, serial, .. }) = self.jobs.remove(&id) else { return };
        self.subtract_stored(&record, OVERHEAD);
        if let Some(scope) = record.caller.job_scope() {
            self.by_caller.remove(&(scope.clone(), serial));
        }
        let usage = self.usage(&record);
        usage.jobs -= 1;
        if usage.jobs == 0 {
            self.usage.remove(record.caller.principal());
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

    /// Sets the time of the first fetch; returns how long the result is kept from now on. `None`:
    /// it was fetched before, or has expired.
    fn set_fetched(&mut self, id: Uuid, at: Instant) -> Option<Duration> {
        let entry = self.jobs.get_mut(&id)?;
        if entry.record.status() == Status::Expired || entry.record.fetched.is_some() {
            return None;
        }
        Arc::make_mut(&mut entry.record).fetched = Some(Timestamp::now());
        entry.fetched = Some(at);
        self.fetched.insert((at, id));
        Some(entry.record.terms.fetched_ttl)
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

    /// Makes a tombstone of a result, and removes a tombstone.
    fn expire(&mut self, id: Uuid, now: Instant) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let (record, due) = (entry.record.clone(), entry.due);
        if let Some(at) = entry.fetched.take() {
            self.fetched.remove(&(at, id));
        }
        match record.expired() {
            Some(tombstone) => {
                entry.record = Arc::new(tombstone);
                self.subtract_stored(&record, record.outcome_size());
                self.set_due(id, Some(now + TOMBSTONE));
                self.tombstones.insert((now + TOMBSTONE, id));
            }
            None => {
                self.tombstones.remove(&(due.unwrap_or(now), id));
                self.set_due(id, None);
                self.forget(id);
            }
        }
    }

    /// Drops tombstones and then fetched results, the oldest first, until no more than `max_stored`
    /// bytes are taken up; unfetched results are never dropped (§11).
    fn make_room(&mut self, max_stored: u64) {
        while self.stored > max_stored
            && let Some(&(_, id)) = self.tombstones.first().or(self.fetched.first())
        {
            self.expire(id, Instant::now());
        }
    }

    /// [`Index::make_room`] for the jobs of one principal.
    fn make_room_of(&mut self, principal: &Arc<str>, max_stored: u64) {
        let over = |index: &Self| index.usage.get(principal).is_some_and(|u| u.stored > max_stored);
        if !over(self) {
            return;
        }
        let is_of_principal = |(_, id): &&(Instant, Uuid)| {
            self.jobs.get(id).is_some_and(|entry| entry.record.caller.principal() == principal)
        };
        let may_go = self.tombstones.iter().chain(&self.fetched).filter(is_of_principal);
        let may_go: Vec<Uuid> = may_go.map(|(_, id)| *id).collect();
        for id in may_go {
            if !over(self) {
                return;
            }
            self.expire(id, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::store::tests::suite;

    #[tokio::test]
    async fn it_does_what_every_store_has_to_do_s11() {
        suite(MemoryStore::new).await;
    }
}
