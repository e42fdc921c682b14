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
    /// when ended jobs can be joined no more
    due: BTreeSet<(Instant, Fingerprint)>,
}

struct Entry {
    id: Uuid,
    tool: Arc<str>,
    /// `None` while the job runs
    until: Option<Instant>,
}

impl Joinable {
    /// Whether there is any job of this tool.
    pub(crate) fn may_join(&self, tool: &str) -> bool {
        !self.tools.is_empty() && self.tools.contains_key(tool)
    }

    /// The job that an equal call joins.
    pub(crate) fn find(&mut self, fingerprint: &Fingerprint) -> Option<Uuid> {
        self.drop_due();
        self.jobs.get(fingerprint).map(|entry| entry.id)
    }

    /// A job has begun. Of two equal calls that both ran, the later one is joined.
    pub(crate) fn insert(&mut self, record: &Record) {
        self.drop_due();
        let Some(fingerprint) = record.fingerprint else { return };
        self.remove_entry(&fingerprint);
        let entry = Entry { id: record.id, tool: record.tool.clone(), until: None };
        self.jobs.insert(fingerprint, entry);
        *self.tools.entry(record.tool.clone()).or_default() += 1;
    }

    /// A job has ended; from now on it can be joined for `join_window`.
    pub(crate) fn mark_ended(&mut self, record: &Record) {
        self.drop_due();
        let Some((fingerprint, entry)) = self.entry_of(record) else { return };
        let until = Instant::now() + record.terms.join_window;
        entry.until = Some(until);
        self.due.insert((until, fingerprint));
    }

    /// A job can be joined no more.
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
