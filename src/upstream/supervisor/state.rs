//! The states of a supervisor, and what waits while a server starts.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::rpc::id::Id;
use crate::upstream::message_sink::MessageSink;
use crate::upstream::outgoing::Outgoing;

/// The shortest and the longest pause of a crash loop.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Bytes that may wait for a server that is starting.
const QUEUED: usize = 8 << 20;

/// Where a server is in the circle of starting and ending.
pub(crate) enum SupervisorState {
    /// it ended
    Down {
        /// in a row
        failures: u32,
        not_before: Instant,
        cause: Arc<str>,
    },
    /// it wants its handshake
    Starting {
        life: RunningLife,
        /// sent once it is ready
        queue: StartQueue,
        failures: u32,
        /// it was up before, and requests of its last session may still be on their way
        renewed: bool,
    },
    /// it takes messages
    Up { life: RunningLife, failures: u32 },
    /// not started yet, or ended for good
    Stopped,
}

/// A life of the server that goes on.
pub(crate) struct RunningLife {
    /// takes the messages for the server
    pub sink: Arc<dyn MessageSink>,
    /// fired once, to end it
    pub stop: Arc<Notify>,
    /// when it began
    pub started: Instant,
    /// no other was before it
    pub first: bool,
    /// the task that it runs in, which `stop` of the supervisor joins
    pub task: JoinHandle<()>,
}

/// What waits for a server that is starting.
#[derive(Default)]
pub(crate) struct StartQueue {
    messages: Vec<Outgoing>,
    bytes: usize,
}

impl StartQueue {
    /// Adds a message.
    pub(crate) fn push(&mut self, message: Outgoing) {
        self.bytes += message.bytes.len();
        self.messages.push(message);
    }

    /// Whether readers that bring more have to pause.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > QUEUED
    }
}

impl SupervisorState {
    /// A server that ended. The first failure costs no pause; from the second on it grows from
    /// 100 ms to 10 s.
    pub(crate) fn down(failures: u32, cause: Arc<str>) -> Self {
        let pause = match failures {
            0 | 1 => Duration::ZERO,
            n => FIRST_PAUSE.saturating_mul(1 << (n - 2).min(10)).min(LONGEST_PAUSE),
        };
        SupervisorState::Down { failures, not_before: Instant::now() + pause, cause }
    }

    /// A server that was started for a message, which waits for its handshake.
    pub(crate) fn starting(life: RunningLife, failures: u32, message: Outgoing) -> Self {
        let mut queue = StartQueue::default();
        queue.push(message);
        SupervisorState::Starting { life, queue, failures, renewed: false }
    }

    /// From starting to up: what waits is sent.
    pub(crate) fn ready(&mut self) {
        *self = match std::mem::replace(self, SupervisorState::Stopped) {
            SupervisorState::Starting { life, queue, failures, .. } => {
                queue.messages.into_iter().for_each(|message| life.sink.push(message));
                SupervisorState::Up { life, failures }
            }
            other => other,
        };
    }

    /// From up to starting, for a new session within the same life; how many sessions in a row were
    /// of no use. `useful`: the last one was.
    pub(crate) fn begin_again(
        &mut self,
        unsent: impl Iterator<Item = Outgoing>,
        useful: bool,
    ) -> u32 {
        match std::mem::replace(self, SupervisorState::Stopped) {
            SupervisorState::Up { life, failures } => {
                let mut queue = StartQueue::default();
                unsent.for_each(|message| queue.push(message));
                let failures = if useful { 0 } else { failures + 1 };
                *self = SupervisorState::Starting { life, queue, failures, renewed: true };
                failures
            }
            other => {
                *self = other;
                0
            }
        }
    }

    /// At the end of a life: the requests that waited for a new session, while others of it may
    /// have reached the server.
    pub(crate) fn unsent(&self) -> Vec<Id> {
        let SupervisorState::Starting { queue, renewed: true, .. } = self else {
            return Vec::new();
        };
        queue.messages.iter().filter_map(|message| message.id.clone()).collect()
    }

    /// The life that goes on, if there is one.
    pub(crate) fn life(&self) -> Option<&RunningLife> {
        match self {
            SupervisorState::Starting { life, .. } | SupervisorState::Up { life, .. } => Some(life),
            SupervisorState::Down { .. } | SupervisorState::Stopped => None,
        }
    }
}
