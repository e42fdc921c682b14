//! Which jobs of this process equal calls may join (contract §7).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;
use uuid::Uuid;

use super::duplicates::Fingerprint;
use super::record::Record;

/// The jobs of this process that equal calls may join.
#[derive(Default)]
pub(crate) struct Joinable {
    jobs: HashMap<Fingerprint, Entry>,
    /// how many there are of each tool, so that most calls need no fingerprint
    tools: HashMap<Arc<str>, usize>,
    /// until when ended jobs can be joined
    due: BTreeSet<(Instant, Fingerprint)>,
}

struct Entry {
    id: Uuid,
    tool: Arc<str>,
    /// `None` while the job runs
    until: Option<Instant>,
}

impl Joinable {
    /// Whether calls of this tool may join any job.
    pub(crate) fn may_join(&self, tool: &str) -> bool {
        !self.tools.is_empty() && self.tools.contains_key(tool)
    }

    /// The job that a call with this fingerprint joins.
    pub(crate) fn find(&mut self, fingerprint: &Fingerprint) -> Option<Uuid> {
        self.drop_due();
        self.jobs.get(fingerprint).map(|entry| entry.id)
    }

    /// Adds a job that has begun, in place of an earlier one with the same fingerprint.
    pub(crate) fn insert(&mut self, record: &Record) {
        self.drop_due();
        let Some(fingerprint) = record.fingerprint else { return };
        self.remove_entry(&fingerprint);
        let entry = Entry { id: record.id, tool: record.tool.clone(), until: None };
        self.jobs.insert(fingerprint, entry);
        *self.tools.entry(record.tool.clone()).or_default() += 1;
    }

    /// A job has ended: it can still be joined for `join_window`.
    pub(crate) fn mark_ended(&mut self, record: &Record) {
        self.drop_due();
        let Some((fingerprint, entry)) = self.entry_of(record) else { return };
        let until = Instant::now() + record.terms.join_window;
        entry.until = Some(until);
        self.due.insert((until, fingerprint));
    }

    /// From now on a job can't be joined.
    pub(crate) fn remove(&mut self, record: &Record) {
        if let Some((fingerprint, _)) = self.entry_of(record) {
            self.remove_entry(&fingerprint);
        }
    }

    fn entry_of(&mut self, record: &Record) -> Option<(Fingerprint, &mut Entry)> {
        let fingerprint = record.fingerprint?;
        let entry = self.jobs.get_mut(&fingerprint).filter(|entry| entry.id == record.id)?;
        Some((fingerprint, entry))
    }

    fn drop_due(&mut self) {
        let now = Instant::now();
        while let Some(&(at, fingerprint)) = self.due.first()
            && at <= now
        {
            self.remove_entry(&fingerprint);
        }
    }

    fn remove_entry(&mut self, fingerprint: &Fingerprint) {
        let Some(entry) = self.jobs.remove(fingerprint) else { return };
        if let Some(until) = entry.until {
            self.due.remove(&(until, *fingerprint));
        }
        if let Some(count) = self.tools.get_mut(&entry.tool) {
            *count -= 1;
            if *count == 0 {
                self.tools.remove(&entry.tool);
            }
        }
    }
}
