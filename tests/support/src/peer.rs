//! A running program and its pipes: the bytes, not yet the protocol.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicU64;

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::Mutex;

use super::http::{FakeHttp, HttpPeer, Listening};
use super::journal::{self, Entry};
use super::setup::{MARK, Setup};
use super::transcript::Transcript;
use super::{DEADLINE, Line, eventually, process};

/// The way to a program.
pub type Sink = Box<dyn AsyncWrite + Send + Unpin>;
/// The way from a program.
pub type Source = Box<dyn AsyncRead + Send + Unpin>;

/// A program that was just started.
pub(super) struct Started {
    pub child: Child,
    pub ways: (Sink, Source),
    pub stderr: Transcript,
    /// What says where it listens; nothing over stdio.
    pub listening: Option<Listening>,
    /// The fake server, where it is no child of the proxy.
    pub upstream: Option<FakeHttp>,
    pub home: Arc<TempDir>,
    pub mark: String,
}

/// A client of the proxy, or of the fake server itself. Dropped, it kills all that it started.
///
/// All waiting ends with a panic that shows everything seen, at the latest after `DEADLINE`.
pub struct Peer {
    home: Arc<TempDir>,
    mark: String,
    pid: u32,
    child: Mutex<Child>,
    stdin: Mutex<Option<Sink>>,
    stdout: Transcript,
    stderr: Transcript,
    listening: Option<Listening>,
    upstream: Option<FakeHttp>,
    pub(super) next_id: AtomicU64,
    /// The `_meta` of every request of a modern client.
    pub(super) meta: StdMutex<Option<Value>>,
}

impl Peer {
    /// The proxy with `options`, in front of the fake server with `flags`.
    pub fn proxied(options: &[&str], flags: &[&str]) -> Self {
        Setup::proxied().options(options).flags(flags).spawn()
    }

    /// The fake server with `flags`, and nothing before it.
    pub fn direct(flags: &[&str]) -> Self {
        Setup::direct().flags(flags).spawn()
    }

    pub(super) fn new(started: Started) -> Self {
        let Started { child, ways: (to, from), stderr, listening, upstream, home, mark } = started;
        Self {
            home,
            mark,
            pid: child.id().expect("a child just started has a pid"),
            stdin: Mutex::new(Some(to)),
            stdout: Transcript::of(from),
            stderr,
            listening,
            upstream,
            child: Mutex::new(child),
            next_id: AtomicU64::new(1),
            meta: StdMutex::default(),
        }
    }

    /// The directory of this peer: home, config, state, journal.
    pub fn home(&self) -> Arc<TempDir> {
        Arc::clone(&self.home)
    }

    /// A path in the directory of this peer.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Makes the file that a `wait_file` waits for.
    pub fn create(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file in the home can be written");
    }

    /// The process that was started: the proxy, or the fake server of a direct peer.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The fake server behind the proxy, where it is one over HTTP.
    pub fn upstream(&self) -> &FakeHttp {
        self.upstream.as_ref().expect("the fake server is one over HTTP")
    }

    /// Whether the fake server is one over HTTP, behind the proxy.
    pub fn has_upstream(&self) -> bool {
        self.upstream.is_some()
    }

    /// Another client of what is served over HTTP.
    pub async fn http(&self) -> HttpPeer {
        let listening = self.listening.as_ref().expect("it is served over HTTP");
        let url = listening.url().await.unwrap_or_else(|| self.fail("it does not listen"));
        HttpPeer::at(&url)
    }

    /// Writes a line and its end.
    pub async fn send_raw(&self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    /// Writes bytes as they are.
    pub async fn send_bytes(&self, bytes: &[u8]) {
        let mut stdin = self.stdin.lock().await;
        let pipe = stdin.as_mut().expect("stdin is open");
        let sent = tokio::time::timeout(DEADLINE, pipe.write_all(bytes)).await;
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(&format!("cannot write: {error}")),
            Err(_) => self.fail("nobody reads stdin"),
        }
    }

    /// Closes stdin.
    pub async fn close_stdin(&self) {
        self.stdin.lock().await.take();
    }

    /// Sends a signal to the process that was started.
    pub fn signal(&self, signal: Signal) {
        process::signal(self.pid, signal);
    }

    /// Kills the process that was started, with SIGKILL.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Waits for the end of the process.
    pub async fn exit(&self) -> ExitStatus {
        let mut child = self.child.lock().await;
        match tokio::time::timeout(DEADLINE, child.wait()).await {
            Ok(status) => status.expect("a child can be waited for"),
            Err(_) => self.fail("the process does not end"),
        }
    }

    /// The running processes of this peer: the one started, and all that it started in turn.
    pub fn processes(&self) -> Vec<u32> {
        process::with_variable(MARK, &self.mark)
    }

    /// Waits until no process of this peer is left.
    pub async fn all_gone(&self) {
        let gone = eventually(|| async { self.processes().is_empty().then_some(()) }).await;
        if gone.is_none() {
            self.fail(&format!("processes are left: {:?}", self.processes()));
        }
    }

    /// All lines of stdout so far.
    pub fn lines(&self) -> Vec<Line> {
        self.stdout.lines()
    }

    /// A place in stdout: `lines()` from here on are still to come.
    pub fn mark(&self) -> usize {
        self.stdout.len()
    }

    /// All notifications so far.
    pub fn notifications(&self) -> Vec<Line> {
        self.lines().into_iter().filter(Line::is_notification).collect()
    }

    /// Waits for a line of stdout, one that came already included.
    pub async fn wait_line(&self, wanted: impl Fn(&Line) -> bool) -> Line {
        self.wait_line_from(0, wanted).await
    }

    /// Waits for a line of stdout after a mark.
    pub async fn wait_line_from(&self, mark: usize, wanted: impl Fn(&Line) -> bool) -> Line {
        let found = self.stdout.find(mark, |line| wanted(line).then(|| line.clone())).await;
        found.unwrap_or_else(|| self.fail("the wanted line does not come"))
    }

    /// Waits for a request or notification of this method.
    pub async fn wait_method(&self, method: &str) -> Line {
        let found = self.stdout.find(0, |line| line.has_method(method).then(|| line.clone()));
        found.await.unwrap_or_else(|| self.fail(&format!("no {method} comes")))
    }

    pub(super) async fn find<T>(
        &self,
        mark: usize,
        find: impl Fn(&Line) -> Option<T>,
    ) -> Option<T> {
        self.stdout.find(mark, find).await
    }

    /// Waits until stdout is closed.
    pub async fn stdout_ended(&self) {
        if !self.stdout.ended().await {
            self.fail("stdout stays open");
        }
    }

    /// Waits until stderr is closed, by the end of all that write to it.
    pub async fn stderr_ended(&self) {
        if !self.stderr.ended().await {
            self.fail("stderr stays open");
        }
    }

    /// Waits for a line of stderr.
    pub async fn wait_stderr(&self, wanted: impl Fn(&str) -> bool) -> String {
        let found = self.stderr.find(0, |line| wanted(&line.text).then(|| line.text.clone())).await;
        found.unwrap_or_else(|| self.fail("the wanted line of stderr does not come"))
    }

    /// All of stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lines().iter().map(|line| format!("{}\n", line.text)).collect()
    }

    /// The journal of the fake server so far.
    pub fn journal(&self) -> Vec<Entry> {
        journal::read(&self.path("journal"))
    }

    /// The calls of a tool that reached the fake server.
    pub fn calls_of(&self, tool: &str) -> Vec<Entry> {
        self.journal().into_iter().filter(|entry| entry.is_call_of(tool)).collect()
    }

    /// Waits for an entry in the journal.
    pub async fn journal_wait(&self, wanted: impl Fn(&Entry) -> bool) -> Entry {
        let found = journal::wait(&self.path("journal"), wanted).await;
        found.unwrap_or_else(|| self.fail("the wanted entry of the journal does not come"))
    }

    /// Waits until the fake server has been told of this method.
    pub async fn journal_method(&self, method: &str) -> Entry {
        self.journal_wait(|entry| entry.has_method(method)).await
    }

    /// Panics and shows all that was seen.
    pub fn fail(&self, why: &str) -> ! {
        let entries: String = self.journal().iter().map(|e| format!("  {}\n", e.json)).collect();
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        panic!("{why}\nstdout:\n{stdout}stderr:\n{stderr}journal of the server:\n{entries}")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        for pid in self.processes() {
            process::signal(pid, Signal::SIGKILL);
        }
    }
}
