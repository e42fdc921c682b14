//! The sidecar: what all its requests share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use http::{HeaderMap, HeaderName};

use crate::config::Config;
use crate::mcp::header::PARAM_PREFIX;
use crate::upstream::Headers;
use crate::upstream::Server;

use super::principal::Principals;
use super::sessions::Sessions;

/// The sidecar, as far as one request is concerned.
pub(crate) struct Sidecar {
    pub(super) config: Arc<Config>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) principals: Principals,
    pub(super) server: Server,
    /// bytes of bodies that are being read
    pub(super) body_bytes: AtomicUsize,
}

impl Sidecar {
    /// A sidecar in front of `server`, which the sessions use too.
    pub(crate) fn new(
        config: Arc<Config>,
        sessions: Arc<Sessions>,
        principals: Principals,
        server: Server,
    ) -> Self {
        Sidecar { config, sessions, principals, server, body_bytes: AtomicUsize::default() }
    }

    /// The client's headers that go to the server (§10); `with_params`: also those by which it is
    /// told what the body says (2026-07-28).
    pub(super) fn forwarded_headers(&self, headers: &HeaderMap, with_params: bool) -> Headers {
        let names = self.config.remote().map(|remote| &remote.forward_headers[..]);
        let is_wanted = |name: &HeaderName| {
            names.is_some_and(|names| names.contains(name))
                || (with_params && name.as_str().starts_with(PARAM_PREFIX))
        };
        if !headers.keys().any(is_wanted) {
            return None;
        }
        let wanted = headers.iter().filter(|(name, _)| is_wanted(name));
        let mut forwarded = HeaderMap::new();
        for (name, value) in wanted {
            forwarded.append(name.clone(), value.clone());
        }
        Some(Arc::new(forwarded))
    }
}
