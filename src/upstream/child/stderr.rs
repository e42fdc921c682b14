//! A child's stderr: passed on line by line, its end kept for errors (contract §9).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::logging::Stderr;
use crate::rpc::line::Line;
use crate::rpc::lines::Lines;

/// So many of the last lines are shown in errors, and so many bytes of each.
const TAIL_LINES: usize = 20;
const TAIL_LINE: usize = 500;
/// The longest line that is passed on whole.
const LONGEST_LINE: usize = 8 << 10;

/// The last lines of a child's stderr.
#[derive(Default)]
pub(crate) struct StderrTail(Mutex<VecDeque<String>>);

impl StderrTail {
    fn add(&self, line: &[u8]) {
        let mut lines = self.0.lock().expect("no panic while the lines are held");
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line[..line.len().min(TAIL_LINE)]).into_owned());
    }

    /// The lines as one text; empty where there were none.
    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock().expect("no panic while the lines are held");
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// Passes a child's stderr on, and never lets it block the child: when nobody reads ours, lines are
/// dropped. The task is one of `tasks`; what is returned is fired at its end.
pub(crate) fn pass_on_all(
    tasks: &mut JoinSet<()>,
    mut from: ChildStderr,
    tail: Arc<StderrTail>,
    stderr: Stderr,
) -> Arc<Notify> {
    let done = Arc::new(Notify::new());
    let ended = done.clone();
    tasks.spawn(async move {
        let mut lines = Lines::new(LONGEST_LINE);
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

/// `stuck`: nobody took the last line in time, so this one is not waited for.
async fn pass_on(line: Line, tail: &StderrTail, stderr: &Stderr, stuck: &mut bool) {
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
