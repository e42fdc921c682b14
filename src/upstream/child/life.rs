//! One life of a child process: its pipes, and its end.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::ChildStdout;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::logging::Stderr;
use crate::rpc::lines::each_line;
use crate::rpc::outbox::Outbox;
use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::details;
use crate::upstream::observer::{MessageOrigin, ServerObserver};

use super::process::{Pipes, Process};
use super::stderr::{StderrTail, pass_on_all};

/// How long a server has to end after its stdin closed, and again after SIGTERM (§9).
const GRACE: Duration = Duration::from_millis(600);
/// How long the output of a server that ended is read, and the exit of one that closed a pipe is
/// waited for.
const REMAINDER: Duration = Duration::from_millis(300);

/// What the life of a child needs.
pub(crate) struct ChildLife {
    /// the child with its group
    pub process: Process,
    /// its stdin, stdout and stderr
    pub pipes: Pipes,
    /// what is written to its stdin
    pub outbox: Arc<Outbox>,
    /// told what comes; while it has no room, the server is not read
    pub observer: Arc<dyn ServerObserver>,
    /// fired once, to end the server
    pub stop: Arc<Notify>,
    /// where its stderr goes
    pub stderr: Stderr,
    /// `max_message`
    pub limit: usize,
}

impl ChildLife {
    /// Runs until the server has ended and its group is gone; returns one sentence about how.
    pub(crate) async fn run(self) -> Arc<str> {
        let ChildLife { mut process, pipes, outbox, observer, stop, stderr, limit } = self;
        let tail = Arc::new(StderrTail::default());
        let mut tasks = JoinSet::new();
        let stderr_done = pass_on_all(&mut tasks, pipes.stderr, tail.clone(), stderr);
        let to_server = outbox.clone();
        let mut writer = tokio::spawn(async move { to_server.run(pipes.stdin).await });
        let mut reader = tokio::spawn(read(pipes.stdout, limit, observer));

        let how = tokio::select! {
            status = process.wait() => exit_text(status.ok()),
            _ = &mut reader => closed(&mut process, "closed its stdout".to_owned()).await,
            Ok(Err(error)) = &mut writer => {
                closed(&mut process, format!("closed its stdin ({error})")).await
            }
            () = stop.notified() => {
                end(&mut process, &outbox).await;
                "was stopped".to_owned()
            }
        };
        if !reader.is_finished() {
            let _ = timeout(REMAINDER, &mut reader).await;
            reader.abort();
        }
        // What the server started and left behind goes with it.
        process.kill();
        outbox.close();
        writer.abort();
        let _ = timeout(REMAINDER / 3, stderr_done.notified()).await;
        sentence(&how, &tail.text())
    }
}

async fn read(stdout: ChildStdout, limit: usize, observer: Arc<dyn ServerObserver>) {
    let on_line = |line| {
        ParsedLine::parse(&line, |line| observer.message(line, MessageOrigin::default()));
    };
    each_line(stdout, limit, on_line, || observer.room()).await;
}

/// A server that closed a pipe mostly exits next; its exit says more than what it `did`.
async fn closed(process: &mut Process, did: String) -> String {
    match timeout(REMAINDER, process.wait()).await {
        Ok(status) => exit_text(status.ok()),
        Err(_) => did,
    }
}

/// Stdin closes, then SIGTERM, then SIGKILL.
async fn end(process: &mut Process, outbox: &Outbox) {
    outbox.close();
    if timeout(GRACE, process.wait()).await.is_ok() {
        return;
    }
    process.terminate();
    if timeout(GRACE, process.wait()).await.is_ok() {
        return;
    }
    process.kill();
    let _ = timeout(GRACE, process.wait()).await;
}

fn exit_text(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "ended".to_owned() };
    if let Some(code) = status.code() {
        return format!("exited with code {code}");
    }
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("was killed by signal {signal}");
    }
    "ended".to_owned()
}

/// How the server ended, with the end of its stderr.
fn sentence(how: &str, stderr: &str) -> Arc<str> {
    match stderr {
        "" => format!("the server {how}").into(),
        lines => format!("the server {how}{}{lines}", details::STDERR).into(),
    }
}
