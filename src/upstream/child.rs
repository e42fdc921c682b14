//! One life of a child process: its pipes, its last words, and its end.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::logging::Stderr;
use crate::rpc::lines::{Line, Lines, each_line};
use crate::rpc::outbox::Outbox;
use crate::rpc::parsed_line::ParsedLine;

use super::process::{Pipes, Process};
use super::{Events, From};

/// How long a server has to end after its stdin closed, and again after SIGTERM (§9).
const GRACE: Duration = Duration::from_millis(600);
/// How long an ended server's last output is read, and a silent one's exit is waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// The tail of stderr that errors show.
const TAIL_LINES: usize = 20;
const TAIL_LINE: usize = 500;
/// What stands between the cause of an end and the tail.
pub const TAIL: &str = "; its stderr ended with:\n";
/// The longest line of stderr that is passed on whole.
const STDERR_LINE: usize = 8 << 10;

/// The tail of a server's stderr.
#[derive(Default)]
pub struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    fn add(&self, line: &[u8]) {
        let mut lines = self.0.lock().expect("no panic while the tail is held");
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line[..line.len().min(TAIL_LINE)]).into_owned());
    }

    fn text(&self) -> String {
        let lines = self.0.lock().expect("no panic while the tail is held");
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// What the life of a child needs.
pub struct Life {
    pub process: Process,
    pub pipes: Pipes,
    /// to the server
    pub outbox: Arc<Outbox>,
    /// while it has no room, the server is not read
    pub events: Arc<dyn Events>,
    /// fired once, to end the server
    pub stop: Arc<Notify>,
    pub stderr: Stderr,
    /// `max_message`
    pub limit: usize,
}

impl Life {
    /// Runs until the server has ended and its group is gone; returns one sentence about how.
    pub async fn run(self) -> Arc<str> {
        let Life { mut process, pipes, outbox, events, stop, stderr, limit } = self;
        let tail = Arc::new(Tail::default());
        let mut helpers = JoinSet::new();
        let stderr_done = spawn_stderr(&mut helpers, pipes.stderr, tail.clone(), stderr);
        let to_server = outbox.clone();
        let mut writer = tokio::spawn(async move { to_server.run(pipes.stdin).await });
        let mut reader = tokio::spawn(async move {
            let on_line =
                |line| ParsedLine::parse(&line, |heard| events.message(heard, From::default()));
            each_line(pipes.stdout, limit, on_line, || events.room()).await;
        });

        let how = tokio::select! {
            status = process.wait() => exit_text(status.ok()),
            _ = &mut reader => {
                let status = timeout(LAST_WORDS, process.wait()).await;
                match status {
                    Ok(status) => exit_text(status.ok()),
                    Err(_) => "closed its stdout".to_owned(),
                }
            }
            Ok(Err(error)) = &mut writer => {
                match timeout(LAST_WORDS, process.wait()).await {
                    Ok(status) => exit_text(status.ok()),
                    Err(_) => format!("closed its stdin ({error})"),
                }
            }
            () = stop.notified() => {
                end(&mut process, &outbox).await;
                "was stopped".to_owned()
            }
        };
        if !reader.is_finished() {
            let _ = timeout(LAST_WORDS, &mut reader).await;
            reader.abort();
        }
        // What the server started and left behind goes with it.
        process.kill();
        outbox.close();
        writer.abort();
        let _ = timeout(LAST_WORDS / 3, stderr_done.notified()).await;
        last_words(&how, &tail.text())
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

/// Passes the server's stderr on, line by line, and never lets it block the server: when nobody
/// reads ours, lines are dropped.
fn spawn_stderr(
    helpers: &mut JoinSet<()>,
    mut from: ChildStderr,
    tail: Arc<Tail>,
    stderr: Stderr,
) -> Arc<Notify> {
    let done = Arc::new(Notify::new());
    let ended = done.clone();
    helpers.spawn(async move {
        let mut lines = Lines::new(STDERR_LINE);
        let mut stuck = false;
        while lines.fill(&mut from).await.is_ok_and(|n| n > 0) {
            while let Some(line) = lines.next_line() {
                pass_on(line, &tail, &stderr, &mut stuck).await;
            }
        }
        if let Some(line) = lines.last_line() {
            pass_on(line, &tail, &stderr, &mut stuck).await;
        }
        ended.notify_one();
    });
    done
}

async fn pass_on(line: Line, tail: &Tail, stderr: &Stderr, stuck: &mut bool) {
    let mut line = match line {
        Line::Whole(line) => line.to_vec(),
        Line::TooLong { head, length, .. } => {
            [&head, format!("… ({length} bytes)").as_bytes()].concat()
        }
    };
    tail.add(&line);
    line.push(b'\n');
    *stuck = if *stuck { !stderr.try_line(line) } else { !stderr.line(line).await };
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

fn last_words(how: &str, tail: &str) -> Arc<str> {
    match tail {
        "" => format!("the server {how}").into(),
        tail => format!("the server {how}{TAIL}{tail}").into(),
    }
}
