//! Which jobs of this process equal calls may join (contract §7).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;
use uuid::Uuid;

use super::duplicates::Fingerprint;
use super::record::Record;

/// The jobs of this process that equal calls may join. Their number has a bound, since each is one
/// that the store keeps with its result.
#[derive(Default)]
pub(crate) struct Joinable {
    jobs: HashMap<Uuid, Entry>,
    /// the same, equal ones side by side
    ranks: BTreeSet<Rank>,
    /// how many there are of each tool, so that most calls need no fingerprint
    tools: HashMap<Arc<str>, usize>,
    /// until when ended jobs can be joined
    due: BTreeSet<(Instant, Uuid)>,
    /// of the job that began last
    serial: u64,
}

struct Entry {
    rank: Rank,
    tool: Arc<str>,
    /// `None` while the job runs
    until: Option<Instant>,
}

/// Where a job stands among its equals: the last of them is joined first. One that runs comes before
/// one that has ended, and a later one before an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    fingerprint: Fingerprint,
    runs: bool,
    serial: u64,
    id: Uuid,
}

impl Joinable {
    /// Whether calls of this tool may join any job.
    pub(crate) fn may_join(&self, tool: &str) -> bool {
        !self.tools.is_empty() && self.tools.contains_key(tool)
    }

    /// The jobs that an equal call may join, the best first.
    pub(crate) fn equal(&mut self, fingerprint: &Fingerprint) -> impl Iterator<Item = Uuid> {
        self.drop_due();
        let fingerprint = *fingerprint;
        let first = Rank { fingerprint, runs: false, serial: 0, id: Uuid::nil() };
        let last = Rank { fingerprint, runs: true, serial: u64::MAX, id: Uuid::max() };
        self.ranks.range(first..=last).rev().map(|rank| rank.id)
    }

    /// A job has begun.
    pub(crate) fn insert(&mut self, record: &Record) {
        self.drop_due();
        let Some(fingerprint) = record.fingerprint else { return };
        self.serial += 1;
        let rank = Rank { fingerprint, runs: true, serial: self.serial, id: record.id };
        self.ranks.insert(rank);
        self.jobs.insert(record.id, Entry { rank, tool: record.tool.clone(), until: None });
        *self.tools.entry(record.tool.clone()).or_default() += 1;
    }

    /// A job has ended; from now on it can be joined for `join_window`, while there is a result.
    pub(crate) fn mark_ended(&mut self, record: &Record) {
        self.drop_due();
        let Some(entry) = self.jobs.get_mut(&record.id) else { return };
        self.ranks.remove(&entry.rank);
        entry.rank.runs = false;
        self.ranks.insert(entry.rank);
        let until = Instant::now() + record.terms.join_window.min(record.terms.result_ttl);
        entry.until = Some(until);
        self.due.insert((until, record.id));
    }

    /// From now on a job can't be joined.
    pub(crate) fn remove(&mut self, id: Uuid) {
        let Some(entry) = self.jobs.remove(&id) else { return };
        self.ranks.remove(&entry.rank);
        if let Some(until) = entry.until {
            self.due.remove(&(until, id));
        }
        if let Some(count) = self.tools.get_mut(&entry.tool) {
            *count -= 1;
            if *count == 0 {
                self.tools.remove(&entry.tool);
            }
        }
    }

    fn drop_due(&mut self) {
        let now = Instant::now();
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.remove(id);
        }
    }
}
