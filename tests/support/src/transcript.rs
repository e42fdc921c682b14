//! All that a peer wrote, in order, and waiting for more of it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::Notify;

use super::{DEADLINE, Line};

/// What was read from one pipe so far.
#[derive(Default)]
struct Seen {
    lines: Vec<Line>,
    ended: bool,
}

/// The lines of one pipe, filled by a task of its own.
#[derive(Clone, Default)]
pub struct Transcript(Arc<(Mutex<Seen>, Notify)>);

impl Transcript {
    /// Starts to read `pipe` to its end.
    pub fn of(pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let transcript = Self::default();
        let writer = transcript.clone();
        tokio::spawn(async move {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
                writer.change(|seen| seen.lines.push(Line::new(&line)));
                line.clear();
            }
            writer.change(|seen| seen.ended = true);
        });
        transcript
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.0.lock().expect("no holder panics")
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.0.1.notify_waiters();
    }

    /// A copy of the lines so far.
    pub fn lines(&self) -> Vec<Line> {
        self.seen().lines.clone()
    }

    /// How many lines there are so far: a place to look from later.
    pub fn len(&self) -> usize {
        self.seen().lines.len()
    }

    /// Waits for the first line, not before the line `start`, in which `find` finds something. `None`
    /// if the deadline or the end of the pipe comes first.
    pub async fn find<T>(&self, start: usize, find: impl Fn(&Line) -> Option<T>) -> Option<T> {
        let search = async {
            let mut next = start;
            loop {
                let changed = self.0.1.notified();
                let mut changed = std::pin::pin!(changed);
                changed.as_mut().enable();
                {
                    let seen = self.seen();
                    if let Some(found) = seen.lines.iter().skip(next).find_map(&find) {
                        return Some(found);
                    }
                    if seen.ended {
                        return None;
                    }
                    next = seen.lines.len().max(start);
                }
                changed.await;
            }
        };
        tokio::time::timeout(DEADLINE, search).await.ok().flatten()
    }

    /// Waits for the end of the pipe; false if the deadline comes first.
    pub async fn ended(&self) -> bool {
        self.find(0, |_| None::<()>).await;
        self.seen().ended
    }
}

impl fmt::Display for Transcript {
    /// The lines, cut to a length that can be read in a failure.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let seen = self.seen();
        for line in &seen.lines {
            let text: String = line.text.chars().take(2000).collect();
            writeln!(f, "  {text}")?;
        }
        f.write_str(if seen.ended { "  (end)\n" } else { "  (open)\n" })
    }
}
