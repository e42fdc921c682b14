//! The program as a user runs it by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::assert_says;
use super::programs::{fake_server, unhurry};

/// A run of the program: its arguments, and a home of its own.
pub struct Run {
    home: TempDir,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

/// What a run left.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The program with these arguments.
    pub fn new(arguments: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        Self { home, arguments, variables: vec![] }
    }

    /// `unhurry check` of the fake server with these flags.
    pub fn check(flags: &[&str]) -> Self {
        let server = fake_server().display().to_string();
        Self::new(&[&["check", "--", &server], flags].concat())
    }

    /// A file in the home.
    pub fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the home")).expect("a directory");
        fs::write(path, text).expect("a file in the home");
        self
    }

    /// The user's config file, which the program finds by itself.
    pub fn config(self, toml: &str) -> Self {
        self.file(".config/unhurry/config.toml", toml)
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A path in the home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Runs it to its end, which must be a good one.
    pub fn good(&self) -> Ran {
        let ran = self.go();
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
        ran
    }

    /// Runs it to its end, which must be exit code 69 with these words on stderr.
    pub fn unavailable(&self, words: &[&str]) -> Ran {
        let ran = self.go();
        assert_eq!(ran.code, 69, "{}{}", ran.stdout, ran.stderr);
        assert_says(&ran.stderr, words);
        ran
    }

    /// Runs it to its end, without input.
    pub fn go(&self) -> Ran {
        let mut command = Command::new(unhurry());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home: &Path = self.home.path();
        command.args(&self.arguments).env_clear().env("PATH", path).env("HOME", home);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let Output { status, stdout, stderr } =
            command.current_dir(home).output().expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("text in UTF-8");
        let code = status.code().expect("no signal ends it");
        Ran { code, stdout: text(stdout), stderr: text(stderr) }
    }
}

impl Ran {
    /// The lines of a report of `check` that warn.
    pub fn warnings(&self) -> Vec<&str> {
        self.stdout.lines().filter_map(|line| line.strip_prefix("warning: ")).collect()
    }

    /// The line of a report about a tool, its columns.
    pub fn tool(&self, name: &str) -> Vec<&str> {
        let mut lines = self.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|columns| columns.first() == Some(&name)).unwrap_or_default()
    }
}
