//! The configuration (contract §2, §3): flags over environment over file over defaults, checked once
//! at the start, after which nobody looks at a key again.
//!
//! It is made in one direction: `layers` reads file, environment and flags and merges them into
//! `raw.rs`, what was typed, whose values have the types in `value`; `upstream.rs`, `server.rs`,
//! `jobs.rs` and `policy.rs` make of that what the program uses. Nothing in here reads the process's
//! environment: it is handed in.

mod clients;
mod error;
mod jobs;
mod layers;
mod policy;
mod raw;
mod sections;
mod server;
mod upstream;
mod value;

use std::path::PathBuf;
use std::time::Duration;

pub use error::{ConfigError, KeyPath, Place};
pub use jobs::JobsConfig;
pub use layers::Overrides;
pub use policy::{ClientPolicy, Policies, Source, ToolPolicy};
pub use server::ServerConfig;
pub use upstream::{CommandConfig, RemoteConfig, Upstream};
pub use value::{BearerToken, Budget, Duplicates, OnClientCancel, StoreKind, Transport};

use layers::Layers;

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    /// The server.
    pub upstream: Upstream,
    /// How long the server may take to answer `initialize`; more than 0.
    pub start_timeout: Duration,
    /// How clients reach us over HTTP.
    pub server: ServerConfig,
    /// What holds for tools and clients.
    pub policy: Policies,
    /// What holds for jobs.
    pub jobs: JobsConfig,
    /// The longest message that is taken, in bytes.
    pub max_message: usize,
    /// The config file that was read, if any.
    pub file: Option<PathBuf>,
}

const START_TIMEOUT: Duration = Duration::from_mins(5);
const MAX_MESSAGE: usize = 64 << 20;

impl Config {
    /// Reads and checks the whole configuration. `environment` is the process's.
    ///
    /// # Errors
    /// Exactly one, the first that was found; see [`ConfigError`].
    pub fn load(
        overrides: &Overrides,
        environment: &[(String, String)],
    ) -> Result<Self, ConfigError> {
        let (mut layers, file) = Layers::read(overrides, environment)?;
        let raw = layers.merge()?;
        let located = |problem| layers.locate(problem);
        upstream::check_forwarding(&raw.upstream, raw.server.token.is_some()).map_err(located)?;
        let jobs = JobsConfig::from(raw.jobs);
        let policy = Policies::new(&raw.defaults, raw.tools, raw.clients, jobs.page_bytes)
            .map_err(located)?;
        let start_timeout = raw.upstream.start_timeout.unwrap_or(START_TIMEOUT);
        let max_message = raw.server.max_message.map_or(MAX_MESSAGE, |size| size.in_memory());
        let (upstream, server) = (raw.upstream.try_into()?, raw.server.into());
        Ok(Self { upstream, start_timeout, server, policy, jobs, max_message, file })
    }

    /// The server, where it is reached over HTTP.
    pub fn remote(&self) -> Option<&RemoteConfig> {
        match &self.upstream {
            Upstream::Remote(remote) => Some(remote),
            Upstream::Command(_) => None,
        }
    }

    /// Whether clients show the server their own `Authorization` (contract §10).
    pub fn forwards_authorization(&self) -> bool {
        self.remote()
            .is_some_and(|remote| remote.forward_headers.contains(&http::header::AUTHORIZATION))
    }
}
