//! Keeps the server there: three states, and the rules for starting it anew (contract §9).
//!
//! ```text
//!   Down ──(a message for the server)──► Starting ──(handshake done)──► Up
//!    ▲                                       │                           │
//!    └───────────────(it ended)──────────────┴───────────────────────────┘
//! ```
//! The first start goes straight to Up, since the client brings the handshake itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::rpc::outbox::Outbox;

use super::child::Life;
use super::http::{self, Ended, Remote};
use super::process::Process;
use super::server::{Launch, Server};
use super::{End, Events, Loss, Outgoing, StartError, Way, without_details};

/// A server that lived so long was no failure.
const SETTLED: Duration = Duration::from_secs(10);
/// The shortest and the longest pause of a crash loop.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Bytes that may wait for a server that is starting.
const QUEUED: usize = 8 << 20;

/// What became of a message for the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivery {
    /// it is on its way
    Sent,
    /// it waits for a server that is starting
    Waiting,
    /// the server was started for it, and wants its handshake
    Started,
}

/// Why the server can't take a message now: one sentence.
#[derive(Debug)]
pub struct Unavailable(pub String);

/// One server, started as often as needed.
pub struct Supervisor {
    server: Server,
    /// `max_message`
    limit: usize,
    pub(super) events: Weak<dyn Events>,
    state: Mutex<State>,
    /// the present life answered something
    pub(super) healthy: AtomicBool,
    /// the first life said something
    heard: AtomicBool,
    /// fired at every change of state
    changed: Notify,
    /// why the present life is ended by us
    why: Mutex<Option<Arc<str>>>,
}

pub(super) enum State {
    Down {
        failures: u32,
        not_before: Instant,
        cause: Arc<str>,
    },
    /// `renewed`: it was up before, and requests of its last session may still be on their way
    Starting {
        link: Link,
        queue: Queue,
        failures: u32,
        renewed: bool,
    },
    Up {
        link: Link,
        failures: u32,
    },
    Stopped,
}

/// What waits for a server that is starting.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) messages: Vec<Outgoing>,
    bytes: usize,
}

impl Queue {
    pub(super) fn push(&mut self, message: Outgoing) {
        self.bytes += message.bytes.len();
        self.messages.push(message);
    }
}

pub(super) struct Link {
    pub(super) way: Arc<dyn Way>,
    pub(super) stop: Arc<Notify>,
    pub(super) started: Instant,
    pub(super) first: bool,
    /// joined by `stop`
    pub(super) task: JoinHandle<()>,
}

impl Supervisor {
    /// Nothing is started yet. `limit`: the longest message that is taken, in bytes.
    pub fn new(server: Server, limit: usize, events: Weak<dyn Events>) -> Arc<Self> {
        Arc::new(Supervisor {
            server,
            limit,
            events,
            state: Mutex::new(State::Stopped),
            healthy: AtomicBool::new(false),
            heard: AtomicBool::new(false),
            changed: Notify::new(),
            why: Mutex::default(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the state is held")
    }

    /// The first start.
    pub fn start(self: &Arc<Self>) -> Result<(), StartError> {
        let link = self.spawn(true)?;
        *self.state() = State::Up { link, failures: 0 };
        Ok(())
    }

    /// Sends a message that the server must get; starts it if it is down.
    pub fn send(self: &Arc<Self>, message: Outgoing) -> Result<Delivery, Unavailable> {
        let mut state = self.state();
        match &mut *state {
            State::Up { link, .. } => {
                link.way.push(message);
                Ok(Delivery::Sent)
            }
            State::Starting { queue, .. } => {
                queue.push(message);
                Ok(Delivery::Waiting)
            }
            State::Down { failures, not_before, cause } => {
                let wait = not_before.saturating_duration_since(Instant::now());
                if !wait.is_zero() {
                    return Err(Unavailable(format!(
                        "{cause}. It ended {failures} times in a row and is started again in \
                         {:.1} s at the earliest",
                        wait.as_secs_f64()
                    )));
                }
                let failures = *failures;
                match self.spawn(false) {
                    Ok(link) => {
                        let mut queue = Queue::default();
                        queue.push(message);
                        *state = State::Starting { link, queue, failures, renewed: false };
                        Ok(Delivery::Started)
                    }
                    Err(error) => {
                        let cause: Arc<str> = error.to_string().into();
                        *state = down(failures + 1, cause.clone());
                        Err(Unavailable(cause.to_string()))
                    }
                }
            }
            State::Stopped => Err(Unavailable("the proxy is ending".to_owned())),
        }
    }

    /// Sends a message for which no server is started: what only a living one can use.
    pub fn send_if_up(&self, message: Outgoing) {
        match &mut *self.state() {
            State::Up { link, .. } => link.way.push(message),
            State::Starting { queue, .. } => queue.push(message),
            State::Down { .. } | State::Stopped => {}
        }
    }

    /// Sends a part of the handshake to a server that is starting, ahead of what waits.
    pub fn send_first(&self, message: Outgoing) {
        if let State::Starting { link, .. } | State::Up { link, .. } = &*self.state() {
            link.way.push(message);
        }
    }

    /// The handshake is done: what waits is sent.
    pub fn ready(&self) {
        let mut state = self.state();
        let taken = std::mem::replace(&mut *state, State::Stopped);
        *state = match taken {
            State::Starting { link, queue, failures, .. } => {
                for message in queue.messages {
                    link.way.push(message);
                }
                State::Up { link, failures }
            }
            other => other,
        };
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends the present life; it counts as a failure, of this cause.
    pub fn give_up(&self, why: &str) {
        *self.why.lock().expect("no panic while the cause is held") = Some(why.into());
        if let State::Starting { link, .. } | State::Up { link, .. } = &*self.state() {
            link.stop.notify_one();
        }
    }

    /// The server answered something: it is no crash loop.
    pub fn healthy(&self) {
        self.healthy.store(true, Ordering::Relaxed);
    }

    /// The server said something that is JSON-RPC.
    pub fn heard(&self) {
        if !self.heard.swap(true, Ordering::Relaxed) {
            self.note(true);
        }
    }

    fn note(&self, works: bool) {
        match &self.server {
            Server::Command(launch) => launch.note(works),
            Server::Remote(_) => {}
        }
    }

    pub fn is_starting(&self) -> bool {
        matches!(&*self.state(), State::Starting { .. })
    }

    /// Whether there is room for more messages.
    pub fn has_room(&self) -> bool {
        match &*self.state() {
            State::Up { link, .. } => link.way.has_room(),
            State::Starting { queue, .. } => queue.bytes <= QUEUED,
            State::Down { .. } | State::Stopped => true,
        }
    }

    /// Waits until there is room for more messages.
    pub async fn room(&self) {
        loop {
            let changed = self.changed.notified();
            let way = match &*self.state() {
                State::Up { link, .. } if link.way.has_room() => return,
                State::Up { link, .. } => Some(link.way.clone()),
                State::Starting { queue, .. } if queue.bytes > QUEUED => None,
                _ => return,
            };
            match way {
                Some(way) => return way.room().await,
                None => changed.await,
            }
        }
    }

    /// Ends the server, within 2.2 s: stdin closes, SIGTERM, SIGKILL to the group (§9).
    pub async fn stop(&self) {
        let taken = std::mem::replace(&mut *self.state(), State::Stopped);
        if let State::Up { link, .. } | State::Starting { link, .. } = taken {
            link.stop.notify_one();
            let _ = link.task.await;
        }
    }

    fn spawn(self: &Arc<Self>, first: bool) -> Result<Link, StartError> {
        self.healthy.store(false, Ordering::Relaxed);
        match &self.server {
            Server::Command(launch) => self.spawn_process(launch, first),
            Server::Remote(remote) => Ok(self.open_link(remote, first)),
        }
    }

    fn open_link(self: &Arc<Self>, remote: &Arc<Remote>, first: bool) -> Link {
        let stop = Arc::new(Notify::new());
        let (started, this, stopped) = (Instant::now(), self.clone(), stop.clone());
        let Some(events) = self.events.upgrade() else {
            // Whom it would serve is gone.
            let task = tokio::spawn(async {});
            return Link { way: Arc::new(Outbox::default()), stop, started, first, task };
        };
        let way = http::link::Link::new(remote.clone(), events, self.limit, Arc::downgrade(self));
        let link = way.clone();
        let task = tokio::spawn(async move {
            let Ended { cause, untouched } = link.run(stopped).await;
            this.ended(cause, untouched);
        });
        Link { way, stop, started, first, task }
    }

    fn spawn_process(
        self: &Arc<Self>,
        launch: &Arc<Launch>,
        first: bool,
    ) -> Result<Link, StartError> {
        let (process, pipes) = Process::spawn(&launch.command, &launch.environment)?;
        let group = process.id;
        if let Err(error) = launch.reaper.watch(group) {
            warn!("no reaper, the server may outlive a kill -9 of the proxy: {error}");
        }
        if first {
            info!(pid = group, "server started");
        } else {
            info!(pid = group, "server started again");
        }
        let outbox = Arc::new(Outbox::default());
        let stop = Arc::new(Notify::new());
        let events = self.events.upgrade();
        let life = events.map(|events| Life {
            process,
            pipes,
            outbox: outbox.clone(),
            events,
            stop: stop.clone(),
            stderr: launch.stderr.clone(),
            limit: self.limit,
        });
        let (this, launch) = (self.clone(), launch.clone());
        let task = tokio::spawn(async move {
            let Some(life) = life else { return };
            let cause = life.run().await;
            launch.reaper.forget(group);
            this.ended(cause, false);
        });
        Ok(Link { way: outbox, stop, started: Instant::now(), first, task })
    }

    /// A life is over. `untouched`: it got nothing of what was sent.
    pub(super) fn ended(&self, cause: Arc<str>, untouched: bool) {
        let given_up = self.why.lock().expect("no panic while the cause is held").take();
        let cause = given_up.unwrap_or(cause);
        let (end, unsent) = {
            let mut state = self.state();
            let (link, failures, during_start) = match &*state {
                State::Starting { link, failures, renewed, .. } => (link, *failures, !renewed),
                State::Up { link, failures } => (link, *failures, untouched),
                State::Down { .. } | State::Stopped => return,
            };
            let well = self.healthy.load(Ordering::Relaxed) || link.started.elapsed() > SETTLED;
            let heard = self.heard.load(Ordering::Relaxed);
            let never_up = link.first && !heard;
            if !heard {
                self.note(false);
            }
            let failures = if well { 0 } else { failures + 1 };
            let last = std::mem::replace(&mut *state, down(failures, cause.clone()));
            (End { cause, never_up, during_start }, last.unsent())
        };
        self.changed.notify_waiters();
        // The tail has been passed on as it came.
        warn!("{}", without_details(&end.cause));
        if let Some(events) = self.events.upgrade() {
            for id in unsent {
                events.request_lost(&id, Loss::unsent(end.cause.clone()));
            }
            events.lost(&end);
        }
    }
}

/// The first failure costs no pause; from the second on it grows from 100 ms to 10 s.
fn down(failures: u32, cause: Arc<str>) -> State {
    let pause = match failures {
        0 | 1 => Duration::ZERO,
        n => FIRST_PAUSE.saturating_mul(1 << (n - 2).min(10)).min(LONGEST_PAUSE),
    };
    State::Down { failures, not_before: Instant::now() + pause, cause }
}
