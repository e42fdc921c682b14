//! `[jobs]`: where jobs are kept, and how many.

use super::raw::JobsSection;
use super::value::StoreKind;

/// `[jobs]`.
#[derive(Clone, Debug)]
pub struct JobsConfig {
    /// Where jobs are kept (contract §11).
    pub store: StoreKind,
    /// What our tools' names begin with (contract §5.3).
    pub tool_prefix: String,
    /// A longer result is read in pages of this many bytes; at least 256.
    pub page_bytes: usize,
    /// Over so many running jobs, new calls wait for their answer as without the proxy.
    pub max_running: usize,
    /// The bytes that stored results may take together.
    pub max_stored: u64,
    /// Whether `instructions` gets a paragraph about handles (contract §1.1.3).
    pub announce: bool,
}

const PAGE_BYTES: usize = 64 << 10;
const MAX_RUNNING: usize = 1000;
const MAX_STORED: u64 = 1 << 30;

impl From<JobsSection> for JobsConfig {
    fn from(raw: JobsSection) -> Self {
        Self {
            store: raw.store.unwrap_or(StoreKind::Memory),
            tool_prefix: raw.tool_prefix.map(|prefix| prefix.0).unwrap_or_default(),
            page_bytes: raw.page_bytes.map_or(PAGE_BYTES, |size| size.in_memory()),
            max_running: raw.max_running.unwrap_or(MAX_RUNNING),
            max_stored: raw.max_stored.map_or(MAX_STORED, |size| size.0),
            announce: raw.announce.unwrap_or(true),
        }
    }
}
