//! What can be wrong with a configuration, and where it was written.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The one error that stops the start (contract §3). Its text is one line that names the place, the
/// key and what to do; it never holds a value, since values may be secrets.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The config file is missing or cannot be read.
    #[error("{}: cannot read the config file: {cause}", file.display())]
    Unreadable {
        /// Its path.
        file: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The config file is not TOML.
    #[error("{place}: not valid TOML: {problem}")]
    Syntax {
        /// Where.
        place: Place,
        /// What is wrong.
        problem: String,
    },
    /// A key is unknown, or its value is refused.
    #[error("{place}: {}: {problem}", dotted(path))]
    Key {
        /// Where the value was written.
        place: Place,
        /// The key.
        path: KeyPath,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// Neither the command line nor the config names a server.
    #[error(
        "no server to run: give its URL, or its command after `--`, as in \
         `unhurry -- npx -y some-server`, or set `upstream.url` or `upstream.command` in the \
         config file"
    )]
    NoServer,
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the config file, counted from 1.
    Line {
        /// Its path.
        file: PathBuf,
        /// The line.
        line: usize,
    },
    /// An environment variable, by name.
    Variable(String),
    /// A command line flag, by name.
    Flag(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { file, line } => write!(f, "{}:{line}", file.display()),
            Place::Variable(name) => write!(f, "environment variable {name}"),
            Place::Flag(name) => f.write_str(name),
        }
    }
}

/// The names from the root of the configuration down to a key; an index within a list is a name too.
pub type KeyPath = Vec<String>;

/// A refused key, before its place is looked up.
#[derive(Debug)]
pub(super) struct Problem {
    pub path: KeyPath,
    pub text: String,
}

/// `path` as it would be written in TOML: `tools."build_*".max_runtime`.
fn dotted(path: &[String]) -> String {
    path.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(".")
}

/// A name as a TOML key: in quotes where it has to be.
fn quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.into() } else { format!("{name:?}") }
}

/// `; did you mean …?` for the known word that `word` is probably a misspelling of, else nothing.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let word = word.to_lowercase();
    let near = |known: &&str| strsim::damerau_levenshtein(&word, known) <= known.len().div_ceil(4);
    known
        .into_iter()
        .filter(near)
        .min_by_key(|known| strsim::damerau_levenshtein(&word, known))
        .map(|known| format!("; did you mean `{known}`?"))
        .unwrap_or_default()
}
