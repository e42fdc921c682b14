//! Logs and the server's own stderr, written to ours by a thread of their own.
//!
//! Nobody has to read our stderr, so a write to it may block for ever. The relay must not: lines
//! go through a bounded queue, and what finds it full for too long is dropped.

use std::io::{self, Write};
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::mpsc as channel;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Lines that may wait.
const QUEUED: usize = 1024;
/// How long a line of the server waits for a reader of our stderr before lines are dropped.
const PATIENCE: Duration = Duration::from_millis(100);

/// The way to stderr.
#[derive(Clone)]
pub struct Stderr(channel::Sender<Entry>);

enum Entry {
    Line(Vec<u8>),
    Flush(mpsc::SyncSender<()>),
}

impl Stderr {
    /// Starts the writing thread; it ends with the last handle.
    pub fn start() -> Self {
        let (sender, mut receiver) = channel::channel(QUEUED);
        std::thread::spawn(move || {
            while let Some(entry) = receiver.blocking_recv() {
                match entry {
                    Entry::Line(line) => drop(io::stderr().write_all(&line)),
                    Entry::Flush(done) => drop(done.try_send(())),
                }
            }
        });
        Stderr(sender)
    }

    /// A way that leads nowhere.
    pub fn nowhere() -> Self {
        Stderr(channel::channel(1).0)
    }

    /// Passes on one line, waiting a little for room. `false`: it was dropped.
    pub async fn line(&self, line: Vec<u8>) -> bool {
        let room = match self.0.try_reserve() {
            Ok(room) => room,
            Err(_) => match tokio::time::timeout(PATIENCE, self.0.reserve()).await {
                Ok(Ok(room)) => room,
                _ => return false,
            },
        };
        room.send(Entry::Line(line));
        true
    }

    /// Like [`Stderr::line`], for lines that are dropped at once where there is no room.
    pub fn try_line(&self, line: Vec<u8>) -> bool {
        self.0.try_send(Entry::Line(line)).is_ok()
    }

    /// Waits until what was queued has been written, at most 200 ms.
    pub fn flush(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        if self.0.try_send(Entry::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(Duration::from_millis(200));
        }
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_line(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Stderr;
    fn make_writer(&'a self) -> Stderr {
        self.clone()
    }
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Sends tracing to stderr: lines of this crate from `level` on.
pub(crate) fn init(stderr: &Stderr, level: tracing::Level, format: Format) {
    let filter = Targets::new().with_target("unhurry", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_ansi(false)
        .with_writer(stderr.clone());
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().boxed(),
    };
    // A second initialisation, as in tests, changes nothing.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
