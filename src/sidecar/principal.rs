//! Who is who (contract §10).

use http::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::config::ServerConfig;

/// A caller's identity: a keyed digest, so that a token is found nowhere in memory or logs.
pub(crate) type Principal = Option<std::sync::Arc<str>>;

/// Tells principals apart.
pub(crate) struct Principals {
    header: Option<HeaderName>,
    key: [u8; 32],
}

impl Principals {
    /// By the header that the configuration names.
    pub(crate) fn new(server: &ServerConfig) -> Self {
        // Random, since digests are compared within this process alone.
        let halves = [Uuid::new_v4(), Uuid::new_v4()];
        let mut key = [0; 32];
        key[..16].copy_from_slice(halves[0].as_bytes());
        key[16..].copy_from_slice(halves[1].as_bytes());
        Principals { header: server.identity().cloned(), key }
    }

    /// Who sends these headers; `None` for a caller without an identity.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Principal {
        let value = headers.get(self.header.as_ref()?)?;
        if value.is_empty() {
            return None;
        }
        let mut digest = Sha256::new();
        digest.update(self.key);
        digest.update(value.as_bytes());
        let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(hex.into())
    }
}
