//! The last answers to list requests: given again while a server is blocked by its own tool
//! (contract §1.1.5), and compared after it was started anew (§9).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use crate::rpc::lines::compact;

use super::key::ListKey;

/// How many bytes of answers are kept.
const MOST_BYTES: usize = 8 << 20;

/// The last answers to list requests.
#[derive(Default)]
pub(crate) struct ListCache {
    answers: HashMap<ListKey, CachedList>,
    bytes: usize,
}

struct CachedList {
    /// what the client got, the raw `result`
    result: Bytes,
    /// a digest of what the server had sent
    digest: u64,
}

impl ListCache {
    /// Keeps an answer. `result`: what the client gets; `original`: what the server had sent.
    pub(crate) fn put(&mut self, key: ListKey, result: &Bytes, original: &str) {
        self.remove(&key);
        if self.bytes + result.len() <= MOST_BYTES {
            self.bytes += result.len();
            self.answers
                .insert(key, CachedList { result: compact(result), digest: digest(original) });
        }
    }

    fn remove(&mut self, key: &ListKey) {
        if let Some(old) = self.answers.remove(key) {
            self.bytes -= old.result.len();
        }
    }

    /// The last answer to the same request.
    pub(crate) fn get(&self, key: &ListKey) -> Option<Bytes> {
        self.answers.get(key).map(|cached| cached.result.clone())
    }

    /// Whether a fresh answer of the server differs from the last one.
    pub(crate) fn differs(&self, key: &ListKey, fresh: &str) -> bool {
        self.answers.get(key).is_some_and(|cached| cached.digest != digest(fresh))
    }

    /// The requests whose answers are kept.
    pub(crate) fn keys(&self) -> Vec<ListKey> {
        self.answers.keys().cloned().collect()
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
