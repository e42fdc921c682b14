//! A child process and everything it starts, as one thing that can be ended.
//!
//! The seam between systems: a process group on Unix, a job object on Windows.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::config;
use crate::pipes::widen;
use crate::upstream::details::PATH;

/// The environment that a child starts with.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// A running child with its group.
pub(crate) struct Process {
    child: Box<dyn ChildWrapper>,
    /// of the child, and of its group
    pub id: u32,
}

/// The three ends of a child's pipes.
pub(crate) struct Pipes {
    /// what the child reads
    pub stdin: ChildStdin,
    /// what it writes
    pub stdout: ChildStdout,
    /// what it logs
    pub stderr: ChildStderr,
}

/// A command that can't be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the server: {program:?}: {source}{PATH}{path})")]
pub(crate) struct SpawnError {
    program: String,
    path: String,
    source: io::Error,
}

/// Whether the command's program is there.
///
/// # Errors
/// The one that a start would end with.
pub(crate) fn find(
    command: &config::CommandConfig,
    inherited: &Environment,
) -> Result<(), SpawnError> {
    let path = path_of(command, inherited);
    let directory = command.cwd.clone().or_else(|| std::env::current_dir().ok());
    let found = which::which_in(&command.program, Some(&path), directory.unwrap_or_default());
    found.map(drop).map_err(|error| SpawnError {
        program: command.program.clone(),
        path,
        source: io::Error::new(io::ErrorKind::NotFound, error),
    })
}

impl Process {
    /// Starts the server's command in a group of its own. `inherited` is our environment; names
    /// that begin with `UNHURRY_` are not handed on (contract §2).
    ///
    /// # Errors
    /// The system can't start it.
    pub(crate) fn spawn(
        command: &config::CommandConfig,
        inherited: &Environment,
    ) -> Result<(Process, Pipes), SpawnError> {
        let own = inherited.iter().filter(|(name, _)| !is_ours(name));
        let mut builder = Command::new(&command.program);
        builder.args(&command.args).env_clear();
        builder.envs(own.map(|(name, value)| (name, value)));
        builder.envs(command.env.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &command.cwd {
            builder.current_dir(directory);
        }
        builder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        grouped(builder).map_err(|source| SpawnError {
            program: command.program.clone(),
            path: path_of(command, inherited),
            source,
        })
    }

    /// Waits for the exit of the child itself.
    ///
    /// # Errors
    /// The system can't tell.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks the group to end (SIGTERM); on Windows it is ended.
    pub(crate) fn terminate(&mut self) {
        #[cfg(unix)]
        let _ = self.child.signal(nix::sys::signal::Signal::SIGTERM as i32);
        #[cfg(not(unix))]
        let _ = self.child.start_kill();
    }

    /// Ends the group.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.start_kill();
    }
}

fn grouped(builder: Command) -> io::Result<(Process, Pipes)> {
    let mut wrap = CommandWrap::from(builder);
    #[cfg(unix)]
    wrap.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    wrap.wrap(process_wrap::tokio::KillOnDrop).wrap(process_wrap::tokio::JobObject);
    let mut child = wrap.spawn()?;
    let pipes = Pipes {
        stdin: child.stdin().take().expect("piped above"),
        stdout: child.stdout().take().expect("piped above"),
        stderr: child.stderr().take().expect("piped above"),
    };
    widen(&pipes.stdin);
    widen(&pipes.stdout);
    let id = child.id().expect("not waited for yet");
    Ok((Process { child, id }, pipes))
}

fn is_ours(name: &OsString) -> bool {
    name.to_string_lossy().starts_with("UNHURRY_")
}

fn path_of(command: &config::CommandConfig, inherited: &Environment) -> String {
    let configured = command.env.iter().rev().find(|(name, _)| name == "PATH");
    let inherited = || inherited.iter().find(|(name, _)| name == "PATH");
    match configured {
        Some((_, path)) => path.clone(),
        None => inherited().map(|(_, p)| p.to_string_lossy().into_owned()).unwrap_or_default(),
    }
}
