//! No process remains, whatever way the proxy ends (contract §9).
//!
//! The reaper is this same program in a small role: it holds the reading end of a pipe. The proxy
//! writes the groups it starts and ends to it. When the pipe closes, by a clean end or by
//! `kill -9`, the reaper ends the groups that are left. On Windows the job object does all that.

use std::io;
use std::sync::Mutex;

/// The argument that makes this program a reaper.
pub(crate) const REAPER_ROLE: &str = "__reaper";

/// The proxy's hold on its reaper. Dropping it ends whatever is still noted.
#[derive(Default)]
pub(crate) struct Reaper {
    pipe: Mutex<Option<std::process::ChildStdin>>,
}

impl Reaper {
    /// Notes a group that must not outlive us.
    ///
    /// # Errors
    /// The reaper can't be started, or has ended.
    pub(crate) fn watch(&self, group: u32) -> io::Result<()> {
        self.tell(&format!("+{group}\n"))
    }

    /// The group has ended.
    pub(crate) fn forget(&self, group: u32) {
        let _ = self.tell(&format!("-{group}\n"));
    }

    #[cfg(unix)]
    fn tell(&self, line: &str) -> io::Result<()> {
        use std::io::Write;
        let mut pipe = self.pipe.lock().expect("no panic while the pipe is held");
        if pipe.is_none() {
            *pipe = Some(unix::start()?);
        }
        pipe.as_mut().expect("started above").write_all(line.as_bytes())
    }

    #[cfg(not(unix))]
    fn tell(&self, _line: &str) -> io::Result<()> {
        Ok(())
    }
}

/// All that a reaper does: reads until the pipe closes, then ends what is left.
pub(crate) fn run_reaper() {
    #[cfg(unix)]
    unix::run();
}

#[cfg(unix)]
mod unix {
    use std::collections::BTreeSet;
    use std::io::{self, BufRead};
    use std::os::unix::process::CommandExt;
    use std::process::{ChildStdin, Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    /// A server that lost its client gets this long to end by itself, and as long again after
    /// SIGTERM.
    const GRACE: Duration = Duration::from_millis(300);
    /// How often it is looked whether they have ended.
    const LOOK: Duration = Duration::from_millis(20);

    /// Starts the reaper: in a group of its own, so that a signal to ours spares it; without stdout
    /// or stderr, so that it holds no pipe of the client open.
    ///
    /// # Errors
    /// The system can't start it.
    pub(crate) fn start() -> io::Result<ChildStdin> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(super::REAPER_ROLE)
            .env_clear()
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(child.stdin.take().expect("piped above"))
    }

    /// See [`super::run_reaper`].
    pub(crate) fn run() {
        let mut groups = BTreeSet::new();
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let (sign, group) = line.split_at(1.min(line.len()));
            match (sign, group.parse::<i32>()) {
                ("+", Ok(group)) => groups.insert(group),
                ("-", Ok(group)) => groups.remove(&group),
                _ => continue,
            };
        }
        end(&mut groups, None);
        end(&mut groups, Some(Signal::SIGTERM));
        for group in groups {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }

    /// Signals the groups, then waits until they are gone or the grace is over.
    #[expect(
        clippy::disallowed_methods,
        reason = "the reaper is a process of its own, without a runtime"
    )]
    fn end(groups: &mut BTreeSet<i32>, signal: Option<Signal>) {
        for group in groups.iter() {
            let _ = killpg(Pid::from_raw(*group), signal);
        }
        let deadline = Instant::now() + GRACE;
        loop {
            groups.retain(|group| killpg(Pid::from_raw(*group), None).is_ok());
            if groups.is_empty() || Instant::now() >= deadline {
                return;
            }
            sleep(LOOK);
        }
    }
}
