//! Keeps the server there: three states, and the rules for starting it anew (contract §9).
//!
//! ```text
//!   Down ──(a message for the server)──► Starting ──(handshake done)──► Up
//!    ▲                                       │                           │
//!    └───────────────(it ended)──────────────┴───────────────────────────┘
//! ```
//! The first start goes straight to Up, since the client brings the handshake itself.

mod renewal;
mod state;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

use super::details::without_details;
use super::life::{LifeEnd, LifeKeeper, LifeTerms};
use super::observer::{Loss, ServerEnd, ServerObserver};
use super::outgoing::Outgoing;
use super::server::{Server, StartError};

use state::{RunningLife, SupervisorState};

/// A server that lived so long was no failure.
const SETTLED: Duration = Duration::from_secs(10);

/// What became of a message for the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// it is on its way
    Sent,
    /// it waits for a server that is starting
    Waiting,
    /// the server was started for it, and wants its handshake
    Started,
}

/// Why the server can't take a message now: one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// it ends again and again
    #[error(
        "{cause}. It ended {failures} times in a row and is started again in {:.1} s at the \
         earliest",
        .wait.as_secs_f64()
    )]
    CrashLoop {
        /// of the last end
        cause: Arc<str>,
        /// in a row
        failures: u32,
        /// until it is started again
        wait: Duration,
    },
    /// it can't be started
    #[error(transparent)]
    Start(#[from] StartError),
    /// nothing is sent any more
    #[error("the proxy is ending")]
    Stopped,
}

/// One server, started as often as needed.
pub(crate) struct Supervisor {
    server: Server,
    /// `max_message`
    limit: usize,
    observer: Weak<dyn ServerObserver>,
    state: Mutex<SupervisorState>,
    /// the present life answered something
    has_answered: AtomicBool,
    /// some life said something
    has_spoken: AtomicBool,
    /// fired at every change of state
    changed: Notify,
    /// why the present life is ended by us
    given_up: Mutex<Option<Arc<str>>>,
}

impl Supervisor {
    /// Nothing is started yet. `limit`: the longest message that is taken, in bytes.
    pub(crate) fn new(
        server: Server,
        limit: usize,
        observer: Weak<dyn ServerObserver>,
    ) -> Arc<Self> {
        Arc::new(Supervisor {
            server,
            limit,
            observer,
            state: Mutex::new(SupervisorState::Stopped),
            has_answered: AtomicBool::new(false),
            has_spoken: AtomicBool::new(false),
            changed: Notify::new(),
            given_up: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, SupervisorState> {
        self.state.lock().expect("no panic while the state is held")
    }

    /// The first start.
    ///
    /// # Errors
    /// The server can't be started.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), StartError> {
        let life = self.begin_life(true)?;
        *self.state() = SupervisorState::Up { life, failures: 0 };
        Ok(())
    }

    /// Sends a message that the server must get; starts it if it is down.
    ///
    /// # Errors
    /// The server can't take it now; see [`Unavailable`].
    pub(crate) fn send(self: &Arc<Self>, message: Outgoing) -> Result<Delivery, Unavailable> {
        let mut state = self.state();
        match &mut *state {
            SupervisorState::Up { life, .. } => {
                life.sink.push(message);
                Ok(Delivery::Sent)
            }
            SupervisorState::Starting { queue, .. } => {
                queue.push(message);
                Ok(Delivery::Waiting)
            }
            SupervisorState::Down { failures, not_before, cause } => {
                let wait = not_before.saturating_duration_since(Instant::now());
                let failures = *failures;
                if !wait.is_zero() {
                    return Err(Unavailable::CrashLoop { cause: cause.clone(), failures, wait });
                }
                self.start_again(&mut state, failures, message)
            }
            SupervisorState::Stopped => Err(Unavailable::Stopped),
        }
    }

    /// Starts the server for a message, which waits for its handshake.
    fn start_again(
        self: &Arc<Self>,
        state: &mut SupervisorState,
        failures: u32,
        message: Outgoing,
    ) -> Result<Delivery, Unavailable> {
        match self.begin_life(false) {
            Ok(life) => {
                *state = SupervisorState::starting(life, failures, message);
                Ok(Delivery::Started)
            }
            Err(error) => {
                *state = SupervisorState::down(failures + 1, error.to_string().into());
                Err(error.into())
            }
        }
    }

    /// Sends a message for which no server is started: what only a running one can use.
    pub(crate) fn send_if_up(&self, message: Outgoing) {
        match &mut *self.state() {
            SupervisorState::Up { life, .. } => life.sink.push(message),
            SupervisorState::Starting { queue, .. } => queue.push(message),
            SupervisorState::Down { .. } | SupervisorState::Stopped => {}
        }
    }

    /// Sends a part of the handshake to a server that is starting, ahead of what waits.
    pub(crate) fn send_first(&self, message: Outgoing) {
        if let Some(life) = self.state().life() {
            life.sink.push(message);
        }
    }

    /// The handshake is done: what waits is sent.
    pub(crate) fn ready(&self) {
        self.state().ready();
        self.changed.notify_waiters();
    }

    /// Ends the present life; it counts as a failure, of this cause.
    pub(crate) fn give_up(&self, cause: &str) {
        *self.given_up.lock().expect("no panic while the cause is held") = Some(cause.into());
        if let Some(life) = self.state().life() {
            life.stop.notify_one();
        }
    }

    /// The server answered something: it is no crash loop.
    pub(crate) fn note_answer(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// The server said something that is JSON-RPC.
    pub(crate) fn note_message(&self) {
        if !self.has_spoken.swap(true, Ordering::Relaxed) {
            self.server.note_works(true);
        }
    }

    /// Whether messages wait for the server's handshake.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(&*self.state(), SupervisorState::Starting { .. })
    }

    /// Whether there is room for more messages.
    pub(crate) fn has_room(&self) -> bool {
        match &*self.state() {
            SupervisorState::Up { life, .. } => life.sink.has_room(),
            SupervisorState::Starting { queue, .. } => !queue.is_full(),
            SupervisorState::Down { .. } | SupervisorState::Stopped => true,
        }
    }

    /// Waits until there is room for more messages.
    pub(crate) async fn room(&self) {
        loop {
            let changed = self.changed.notified();
            let sink = match &*self.state() {
                SupervisorState::Up { life, .. } if life.sink.has_room() => return,
                SupervisorState::Up { life, .. } => Some(life.sink.clone()),
                SupervisorState::Starting { queue, .. } if queue.is_full() => None,
                _ => return,
            };
            match sink {
                Some(sink) => return sink.room().await,
                None => changed.await,
            }
        }
    }

    /// Ends the server, within 2.2 s: stdin closes, SIGTERM, SIGKILL to the group (§9).
    pub(crate) async fn stop(&self) {
        let last = std::mem::replace(&mut *self.state(), SupervisorState::Stopped);
        if let SupervisorState::Up { life, .. } | SupervisorState::Starting { life, .. } = last {
            life.stop.notify_one();
            let _ = life.task.await;
        }
    }

    fn begin_life(self: &Arc<Self>, first: bool) -> Result<RunningLife, StartError> {
        self.has_answered.store(false, Ordering::Relaxed);
        let keeper: Arc<dyn LifeKeeper> = self.clone();
        let observer = self.observer.upgrade().expect("whoever starts the server observes it");
        let (keeper, limit) = (Arc::downgrade(&keeper), self.limit);
        let life = self.server.begin(LifeTerms { observer, keeper, limit, first })?;
        let (sink, stop, started) = (life.sink, life.stop, Instant::now());
        let this = self.clone();
        let task = tokio::spawn(async move {
            let end = life.run.await;
            this.ended(end);
        });
        Ok(RunningLife { sink, stop, started, first, task })
    }

    /// A life is over.
    fn ended(&self, end: LifeEnd) {
        let given_up = self.given_up.lock().expect("no panic while the cause is held").take();
        let cause = given_up.unwrap_or(end.cause);
        let (end, unsent) = {
            let mut state = self.state();
            let (life, failures, during_start) = match &*state {
                SupervisorState::Starting { life, failures, renewed, .. } => {
                    (life, *failures, !renewed)
                }
                SupervisorState::Up { life, failures } => (life, *failures, end.nothing_sent),
                SupervisorState::Down { .. } | SupervisorState::Stopped => return,
            };
            let well =
                self.has_answered.load(Ordering::Relaxed) || life.started.elapsed() > SETTLED;
            let has_spoken = self.has_spoken.load(Ordering::Relaxed);
            let never_up = life.first && !has_spoken;
            if !has_spoken {
                self.server.note_works(false);
            }
            let failures = if well { 0 } else { failures + 1 };
            let down = SupervisorState::down(failures, cause.clone());
            let last = std::mem::replace(&mut *state, down);
            (ServerEnd { cause, never_up, during_start }, last.unsent())
        };
        self.changed.notify_waiters();
        // Its stderr has been passed on as it came.
        warn!("{}", without_details(&end.cause));
        if let Some(observer) = self.observer.upgrade() {
            for id in unsent {
                observer.request_lost(&id, Loss::unsent(end.cause.clone()));
            }
            observer.lost(&end);
        }
    }
}
