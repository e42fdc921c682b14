//! The fake server over HTTP, as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;

use super::HttpPeer;
use super::pump::url_in;
use crate::journal::{self, Entry};
use crate::programs::fake_server;

/// What the fake server speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// Streamable HTTP, both eras.
    Http,
    /// HTTP+SSE, of 2024-11-05.
    Sse,
}

/// The fake server at a URL. Dropped, it is killed.
pub struct FakeHttp {
    home: Arc<TempDir>,
    transport: Transport,
    flags: Vec<String>,
    url: String,
    child: Mutex<Child>,
}

impl FakeHttp {
    /// Starts it with these flags over Streamable HTTP.
    pub fn start(flags: &[&str]) -> Self {
        Self::over(Transport::Http, flags)
    }

    /// Starts it with these flags in a home of its own.
    pub fn over(transport: Transport, flags: &[&str]) -> Self {
        let home = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        Self::start_in(home, transport, flags)
    }

    /// Starts it in the home of a peer, whose journal it writes.
    pub fn start_in(home: Arc<TempDir>, transport: Transport, flags: Vec<String>) -> Self {
        let (child, url) = launch(&home, transport, &flags, "127.0.0.1:0");
        Self { home, transport, flags, url, child: Mutex::new(child) }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// A client of it.
    pub fn client(&self) -> HttpPeer {
        HttpPeer::at(&self.url)
    }

    /// A path in its home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Makes the file that a `wait_file` waits for.
    pub fn create(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file in the home can be written");
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.lock().expect("no holder panics").id()
    }

    /// Kills it and waits for its end.
    pub fn kill(&self) {
        end(&mut self.child.lock().expect("no holder panics"));
    }

    /// Kills it, if it still runs, and starts it anew at the same address.
    pub fn restart(&self) {
        self.kill();
        let address = HttpPeer::at(&self.url).authority().to_owned();
        let (child, _) = launch(&self.home, self.transport, &self.flags, &address);
        *self.child.lock().expect("no holder panics") = child;
    }

    /// Lets something go wrong (`Fault` of the fake server says what there is).
    pub async fn fault(&self, fault: Value) {
        self.control("fault", &fault.to_string()).await;
    }

    /// Lets it forget all sessions.
    pub async fn forget_sessions(&self) {
        self.control("forget", "").await;
    }

    /// Breaks the connection of every stream.
    pub async fn cut_streams(&self) {
        self.control("cut", "").await;
    }

    async fn control(&self, what: &str, body: &str) {
        let path = format!("/control/{what}");
        let response = self.client().try_send("POST", &path, &[], body).await;
        let mut response = response.expect("the fake server answers");
        let text = response.text().await;
        assert_eq!(response.status, 200, "{text}");
    }

    /// Its journal so far.
    pub fn journal(&self) -> Vec<Entry> {
        journal::read(&self.path("journal"))
    }

    /// Waits for an entry in the journal.
    pub async fn journal_wait(&self, wanted: impl Fn(&Entry) -> bool) -> Entry {
        let found = journal::wait(&self.path("journal"), wanted).await;
        found.unwrap_or_else(|| panic!("the wanted entry does not come: {:?}", self.journal()))
    }

    /// The calls of a tool that reached it.
    pub fn calls_of(&self, tool: &str) -> Vec<Entry> {
        self.journal().into_iter().filter(|entry| entry.is_call_of(tool)).collect()
    }
}

impl Drop for FakeHttp {
    fn drop(&mut self) {
        self.kill();
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    child.wait().expect("a child can be waited for");
}

/// Starts the process, and reads from its stdout where it listens.
fn launch(
    home: &TempDir,
    transport: Transport,
    flags: &[String],
    address: &str,
) -> (Child, String) {
    let mut command = Command::new(fake_server());
    command.arg(if transport == Transport::Http { "--http" } else { "--sse" }).arg(address);
    command.arg("--journal").arg(home.path().join("journal")).args(flags);
    command.current_dir(home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the fake server starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut line).expect("stdout is text");
    let url = url_in(&line).unwrap_or_else(|| panic!("it does not listen: {line:?}"));
    (child, url)
}

/// A file for `--tools`: `mirrored`, whose arguments go into headers too, `plain`, and tools whose
/// `x-mcp-header` breaks a rule; their names begin with `bad_`.
pub fn header_tools() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/header_tools.json")
}
