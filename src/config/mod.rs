//! The configuration (CONTRACT §2, §3): flags over environment over file over defaults, checked once
//! at the start, after which nobody looks at a key again.
//!
//! `file.rs` and `sources.rs` read the layers, `layers.rs` merges them into `raw.rs` (what was
//! typed), and this file and `policy.rs` make of that what the program uses. Nothing in here reads
//! the process's environment: it is handed in.

mod clients;
mod error;
mod expand;
mod file;
mod layers;
mod policy;
mod raw;
mod sections;
mod sources;
mod unavailable;
mod value;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use error::{ConfigError, Path, Place};
pub use policy::{Budget, ClientPolicy, Duplicates, OnClientCancel, Policies, Source, ToolPolicy};

use layers::Layer;

/// What the command line says; it wins over everything (CONTRACT §2).
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config`: the config file, which must exist.
    pub config_file: Option<PathBuf>,
    /// `--answer-within`: `[defaults] answer_within`, as typed.
    pub answer_within: Option<String>,
    /// `--env`: `NAME=VALUE` pairs for the child; `${VAR}` in a value is expanded.
    pub env: Vec<String>,
    /// `--store`: `[jobs] store`, as typed.
    pub store: Option<String>,
    /// `--tool-prefix`: `[jobs] tool_prefix`, as typed.
    pub tool_prefix: Option<String>,
    /// The server's program and its arguments, taken as they are; empty when the config file names
    /// them. Replaces `upstream.command` and `upstream.args` both.
    pub command: Vec<String>,
}

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    /// The server to run.
    pub upstream: Command,
    /// What holds for tools and clients.
    pub policy: Policies,
    /// What holds for jobs.
    pub jobs: Jobs,
    /// The longest message that is taken, in bytes.
    pub max_message: usize,
    /// The config file that was read, if any.
    pub file: Option<PathBuf>,
}

/// How the server is started.
#[derive(Clone)]
pub struct Command {
    /// The program, looked up on the `PATH` where it has no slash.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that are added to our own environment, or replace some of it.
    pub env: Vec<(String, String)>,
    /// Its directory; ours where there is none.
    pub cwd: Option<PathBuf>,
    /// How long it may take to answer `initialize`; more than 0.
    pub start_timeout: Duration,
}

/// Arguments and variables hold secrets, so only the program is shown.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("program", &self.program).finish_non_exhaustive()
    }
}

/// `[jobs]`.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Where jobs are kept (CONTRACT §11).
    pub store: StoreKind,
    /// What our tools' names begin with (CONTRACT §5.3).
    pub tool_prefix: String,
    /// A longer result is read in pages of this many bytes; at least 256.
    pub page_bytes: usize,
    /// Over so many running jobs, new calls wait for their answer as without the proxy.
    pub max_running: usize,
    /// The bytes that stored results may take together.
    pub max_stored: u64,
    /// Whether `instructions` gets a paragraph about handles (CONTRACT §1.1.3).
    pub announce: bool,
}

/// Where jobs are kept (CONTRACT §11).
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
        let layers = [from_file, from_environment, from_flags];
        let raw = layers::merge(&layers)?;
        let jobs = Jobs::from(raw.jobs);
        let policy = Policies::new(&raw.defaults, raw.tools, raw.clients, jobs.page_bytes)
            .map_err(|problem| layers::locate(&layers, problem))?;
        let max_message = raw.server.max_message.map_or(MAX_MESSAGE, |size| size.in_memory());
        Ok(Self { upstream: raw.upstream.try_into()?, policy, jobs, max_message, file })
    }
}

impl TryFrom<raw::Upstream> for Command {
    type Error = ConfigError;

    fn try_from(raw: raw::Upstream) -> Result<Self, ConfigError> {
        let program = raw.command.filter(|program| !program.is_empty());
        Ok(Self {
            program: program.ok_or(ConfigError::NoCommand)?,
            args: raw.args,
            env: raw.env.into_iter().collect(),
            cwd: raw.cwd,
            start_timeout: raw.start_timeout.unwrap_or(START_TIMEOUT),
        })
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
