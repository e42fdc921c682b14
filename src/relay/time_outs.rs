//! The time-outs of clients, learned from calls that they gave up (contract §6).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::jobs::caller::Caller;
use crate::jobs::wording::seconds;
use crate::relay::state::client::Client;

/// How long what was learned holds.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// No budget is learned below this.
const LEAST: Duration = Duration::from_millis(500);
/// Times remembered for each client.
const TIMES: usize = 8;
/// Clients remembered; their names are their own choice, so there must be a bound.
const CLIENTS: usize = 256;

/// What is known of the time-outs of all clients.
#[derive(Default)]
pub(crate) struct TimeOuts {
    clients: Mutex<HashMap<Key, Learned>>,
    /// spares the fast path a look-up while nothing was learned
    any: AtomicBool,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    principal: Arc<str>,
    name: String,
    version: String,
}

struct Learned {
    limit: Duration,
    until: Instant,
    /// ages at which calls timed out
    time_outs: Vec<Duration>,
    /// ages at which a modern client closed the stream of a call
    disconnects: Vec<Duration>,
}

impl Learned {
    fn none(now: Instant) -> Self {
        Learned { limit: Duration::MAX, until: now, time_outs: Vec::new(), disconnects: Vec::new() }
    }
}

/// Adds a time, and forgets the oldest one where there are [`TIMES`].
fn push_bounded(times: &mut Vec<Duration>, age: Duration) {
    if times.len() == TIMES {
        times.remove(0);
    }
    times.push(age);
}

/// Whether two ages differ by 5 % at most.
fn is_near(age: Duration, time: Duration) -> bool {
    age.abs_diff(time) <= time / 20
}

impl Key {
    fn new(caller: &Caller, client: &Client) -> Self {
        let (name, version) = (client.name.clone(), client.version.clone());
        Key { principal: caller.principal().clone(), name, version }
    }
}

impl TimeOuts {
    /// The budget that this client must not exceed, if it ever timed out.
    pub(crate) fn limit(&self, caller: &Caller, client: &Client) -> Option<Duration> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let clients = self.clients.lock().expect("no panic while the time-outs are held");
        let learned = clients.get(&Key::new(caller, client))?;
        (learned.until > Instant::now()).then_some(learned.limit)
    }

    /// Whether this client timed out before at this age of a call, ±5 %.
    pub(crate) fn gave_up_before(&self, caller: &Caller, client: &Client, age: Duration) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let clients = self.clients.lock().expect("no panic while the time-outs are held");
        let Some(learned) = clients.get(&Key::new(caller, client)) else { return false };
        learned.time_outs.iter().any(|time| is_near(age, *time))
    }

    /// A modern client closed its stream at this age of a call. That is a time-out only if it has
    /// done so before at the same age.
    pub(crate) fn disconnected(&self, caller: &Caller, client: &Client, age: Duration) {
        let usual = {
            let mut clients = self.clients.lock().expect("no panic while the time-outs are held");
            let Some(learned) = learned_of(&mut clients, Key::new(caller, client)) else { return };
            let usual = learned.disconnects.iter().any(|time| is_near(age, *time));
            push_bounded(&mut learned.disconnects, age);
            usual
        };
        if usual {
            self.timed_out(caller, client, age);
        }
    }

    /// A call timed out at this age: from the next one on the budget is 80 % of it.
    pub(crate) fn timed_out(&self, caller: &Caller, client: &Client, age: Duration) {
        let mut clients = self.clients.lock().expect("no panic while the time-outs are held");
        let now = Instant::now();
        let limit = (age * 4 / 5).max(LEAST);
        let Some(learned) = learned_of(&mut clients, Key::new(caller, client)) else { return };
        if learned.until <= now || limit < learned.limit {
            learned.limit = limit;
            warn!(
                client = client.name,
                "the client gave up a call after {}; from now on it is answered within {}",
                seconds(age),
                seconds(limit)
            );
        }
        learned.until = now + KEPT;
        push_bounded(&mut learned.time_outs, age);
        self.any.store(true, Ordering::Relaxed);
    }
}

/// What was learned of a client, made where there is nothing yet; `None` where too many clients are
/// remembered.
fn learned_of(clients: &mut HashMap<Key, Learned>, key: Key) -> Option<&mut Learned> {
    let now = Instant::now();
    if clients.len() >= CLIENTS && !clients.contains_key(&key) {
        clients.retain(|_, learned| learned.until > now);
        if clients.len() >= CLIENTS {
            return None;
        }
    }
    Some(clients.entry(key).or_insert_with(|| Learned::none(now)))
}

/// Whether the reason of a `notifications/cancelled` speaks of a time-out. The words are those
/// that the SDKs use.
pub(crate) fn says_time_out(reason: &str) -> bool {
    const WORDS: [&str; 6] =
        ["timed out", "timeout", "time out", "time-out", "deadline exceeded", "-32001"];
    let reason = reason.to_lowercase();
    WORDS.iter().any(|word| reason.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_of_the_sdks_are_told_from_a_users_cancel_s6() {
        for reason in [
            "McpError: MCP error -32001: Request timed out",
            "SdkError: Request timed out",
            "request timeout",
            "TimeoutError: The operation was aborted due to timeout",
            "context deadline exceeded",
            "Timed out after 5s",
        ] {
            assert!(says_time_out(reason), "{reason}");
        }
        for reason in ["AbortError: This operation was aborted", "user pressed stop", ""] {
            assert!(!says_time_out(reason), "{reason}");
        }
    }
}
