//! How long a tool usually takes, from past runs of this process (contract §4.2).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Runs remembered for each tool.
const RUNS: usize = 32;
/// The least number of runs that an estimate needs.
const ENOUGH: usize = 3;
/// Tools remembered; names come from the client, so there must be a bound.
const TOOLS: usize = 1024;

/// The durations of past runs, by tool.
#[derive(Default)]
pub(crate) struct PastRuns(Mutex<HashMap<Arc<str>, VecDeque<Duration>>>);

impl PastRuns {
    /// Adds a run that ended with a result of the server.
    pub(crate) fn record(&self, tool: &Arc<str>, took: Duration) {
        let mut tools = self.0.lock().expect("no panic while past runs are held");
        let room = tools.len() < TOOLS;
        match tools.get_mut(tool) {
            Some(runs) => {
                if runs.len() == RUNS {
                    runs.pop_front();
                }
                runs.push_back(took);
            }
            None if room => drop(tools.insert(tool.clone(), [took].into())),
            None => {}
        }
    }

    /// The time that a run of this tool still needs, by the median of those past runs that took
    /// longer than `elapsed`. `None` where too few are known, or all of them were shorter.
    /// `expected`: the usual duration, taken as long as too few runs are known.
    pub(crate) fn remaining(
        &self,
        tool: &str,
        elapsed: Duration,
        expected: Option<Duration>,
    ) -> Option<Duration> {
        let tools = self.0.lock().expect("no panic while past runs are held");
        let known = tools.get(tool).filter(|runs| runs.len() >= ENOUGH);
        let total = match known {
            Some(runs) => {
                let mut longer: Vec<_> =
                    runs.iter().copied().filter(|run| *run > elapsed).collect();
                longer.sort_unstable();
                longer.get(longer.len() / 2).copied()?
            }
            None => expected?,
        };
        total.checked_sub(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn three_runs_or_an_expectation_are_needed_s4_2() {
        let runs = PastRuns::default();
        let tool: Arc<str> = "build".into();
        runs.record(&tool, S(100));
        runs.record(&tool, S(120));
        assert_eq!(runs.remaining("build", S(25), None), None);
        assert_eq!(runs.remaining("build", S(25), Some(S(60))), Some(S(35)));
        assert_eq!(runs.remaining("build", S(61), Some(S(60))), None);
        runs.record(&tool, S(140));
        assert_eq!(runs.remaining("build", S(25), Some(S(60))), Some(S(95)));
        assert_eq!(runs.remaining("build", S(200), None), None);
    }
}
