//! The configuration (contract §2, §3): flags over environment over file over defaults, checked once
//! at the start, after which nobody looks at a key again.
//!
//! `file.rs` and `sources.rs` read the layers, `layers.rs` merges them into `raw.rs` (what was
//! typed), and this file, `upstream.rs`, `server.rs` and `policy.rs` make of that what the program
//! uses. Nothing in here reads the process's environment: it is handed in.

mod clients;
mod error;
mod expand;
mod file;
mod layers;
mod policy;
mod raw;
mod sections;
mod server;
mod sources;
mod unavailable;
mod upstream;
mod value;
mod web;

use std::path::PathBuf;
use std::time::Duration;

pub use error::{ConfigError, Path, Place};
pub use policy::{Budget, ClientPolicy, Duplicates, OnClientCancel, Policies, Source, ToolPolicy};
pub use server::{Server, Token};
pub use upstream::{Command, Remote, Transport, Upstream};

use layers::Layer;

/// What the command line says; it wins over everything (contract §2).
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config`: the config file, which must exist.
    pub config_file: Option<PathBuf>,
    /// `--answer-within`: `[defaults] answer_within`, as typed.
    pub answer_within: Option<String>,
    /// `--env`: `NAME=VALUE` pairs for the child; `${VAR}` in a value is expanded.
    pub env: Vec<String>,
    /// `--header`: `Name: value` pairs for the server; `${VAR}` in a value is expanded.
    pub headers: Vec<String>,
    /// `--listen`: `[server] listen`, as typed.
    pub listen: Option<String>,
    /// `--store`: `[jobs] store`, as typed.
    pub store: Option<String>,
    /// `--tool-prefix`: `[jobs] tool_prefix`, as typed.
    pub tool_prefix: Option<String>,
    /// The server's URL, taken as it is. Replaces what weaker layers say of the server.
    pub url: Option<String>,
    /// The server's program and its arguments, taken as they are; empty when there is a URL, or the
    /// config file names the server. Replaces `upstream.command` and `upstream.args` both.
    pub command: Vec<String>,
}

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    /// The server.
    pub upstream: Upstream,
    /// How long the server may take to answer `initialize`; more than 0.
    pub start_timeout: Duration,
    /// How clients reach us over HTTP.
    pub server: Server,
    /// What holds for tools and clients.
    pub policy: Policies,
    /// What holds for jobs.
    pub jobs: Jobs,
    /// The longest message that is taken, in bytes.
    pub max_message: usize,
    /// The config file that was read, if any.
    pub file: Option<PathBuf>,
}

/// `[jobs]`.
#[derive(Clone, Debug)]
pub struct Jobs {
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

/// Where jobs are kept (contract §11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Gone with the process.
    Memory,
}

const START_TIMEOUT: Duration = Duration::from_mins(5);
const MAX_MESSAGE: usize = 64 << 20;
const PAGE_BYTES: usize = 64 << 10;
const MAX_RUNNING: usize = 1000;
const MAX_STORED: u64 = 1 << 30;

impl Config {
    /// The server, where it is reached over HTTP.
    pub fn remote(&self) -> Option<&Remote> {
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

    /// Reads and checks the whole configuration. `environment` is the process's.
    ///
    /// # Errors
    /// Exactly one, the first that was found; see [`ConfigError`].
    pub fn load(
        overrides: &Overrides,
        environment: &[(String, String)],
    ) -> Result<Self, ConfigError> {
        let (file, from_file) = match file::load(overrides.config_file.as_deref(), environment)? {
            Some((file, layer)) => (Some(file), layer),
            None => (None, Layer::default()),
        };
        let from_environment = sources::from_environment(environment);
        let from_flags = sources::from_flags(overrides, environment)?;
        let mut layers = [from_file, from_environment, from_flags];
        let raw = layers::merge(&mut layers)?;
        let located = |problem| layers::locate(&layers, problem);
        upstream::check_forwarding(&raw.upstream, raw.server.token.is_some()).map_err(located)?;
        let jobs = Jobs::from(raw.jobs);
        let policy = Policies::new(&raw.defaults, raw.tools, raw.clients, jobs.page_bytes)
            .map_err(located)?;
        let start_timeout = raw.upstream.start_timeout.unwrap_or(START_TIMEOUT);
        let max_message = raw.server.max_message.map_or(MAX_MESSAGE, |size| size.in_memory());
        let (upstream, server) = (raw.upstream.try_into()?, raw.server.into());
        Ok(Self { upstream, start_timeout, server, policy, jobs, max_message, file })
    }
}

impl From<raw::Jobs> for Jobs {
    fn from(raw: raw::Jobs) -> Self {
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
