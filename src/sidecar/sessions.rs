//! The sessions of all clients: begun, found, and ended (contract §9, §10).
//!
//! Each legacy client session has a [`Session`] of its own, and with it an upstream session of its
//! own. Modern clients have no sessions; those of one principal share one. A session that nobody
//! uses any more lives on while one of its jobs runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};
use uuid::Uuid;

use crate::downstream::Channel;
use crate::downstream::http::ClientStreams;
use crate::downstream::http::NoChannel;
use crate::downstream::http::{HttpResponder, RequestInfo, ResponseObserver};
use crate::jobs::caller::Caller;
use crate::relay::session::{Session, Shared};
use crate::rpc::id::Id;
use crate::upstream::server::Server;
use crate::upstream::supervisor::Supervisor;
use crate::upstream::without_details;

use super::principal::Principal;

/// How long what was interrupted has to leave, and the servers to end.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// A session of a legacy client.
pub struct Legacy {
    pub id: String,
    pub session: Arc<Session>,
    pub streams: Arc<ClientStreams>,
    principal: Principal,
    life: Life,
}

/// What all modern clients of one principal share.
pub struct Modern {
    pub session: Arc<Session>,
    /// requests whose answers are read now
    open: AtomicUsize,
    /// the last name that was given to a request
    keys: AtomicI64,
    life: Life,
}

/// When a session was used, and the end of its use.
struct Life {
    used: Mutex<Instant>,
    retired: Notify,
}

impl Life {
    fn new() -> Self {
        Life { used: Mutex::new(Instant::now()), retired: Notify::new() }
    }

    fn touch(&self) {
        *self.used.lock().expect("no panic while the time is held") = Instant::now();
    }

    fn idle(&self) -> Duration {
        self.used.lock().expect("no panic while the time is held").elapsed()
    }
}

impl ResponseObserver for Legacy {
    fn response_closed(&self, responder: &Arc<HttpResponder>, delivered: bool) {
        self.life.touch();
        self.streams.close(responder);
        for key in &responder.request.keys {
            if delivered { self.session.took(key) } else { self.session.left(key, false) }
        }
    }
}

impl ResponseObserver for Modern {
    fn response_closed(&self, responder: &Arc<HttpResponder>, delivered: bool) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.life.touch();
        for key in &responder.request.keys {
            if delivered { self.session.took(key) } else { self.session.left(key, true) }
        }
    }
}

impl Modern {
    /// A request came in. Several clients use the same ids, so it gets a name of its own.
    pub fn open(
        self: &Arc<Self>,
        takes_stream: bool,
        wants_logs: bool,
    ) -> (Id, Arc<HttpResponder>) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let key = Id::Number(self.keys.fetch_add(1, Ordering::Relaxed) + 1);
        let keys = [key.clone()].into();
        let request = RequestInfo {
            keys,
            errors_have_status: true,
            accepts_events: takes_stream,
            wants_logs,
            stream_number: None,
        };
        let observer: Weak<dyn ResponseObserver> = Arc::downgrade(self) as _;
        (key, HttpResponder::new(request, observer))
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum NoSession {
    #[error("there are {0} sessions already (server.max_sessions); try again later")]
    TooMany(usize),
    #[error("the proxy is ending")]
    Ending,
    #[error("{0}")]
    NoServer(String),
}

/// All sessions.
pub struct Sessions {
    shared: Shared,
    server: Server,
    /// a child's messages bear no sign of the call that they belong to
    guess: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    legacy: HashMap<String, Arc<Legacy>>,
    modern: HashMap<Principal, Arc<Modern>>,
    /// every session whose server runs, also those that nobody uses any more
    running: HashMap<u64, Arc<Session>>,
    last: u64,
    tasks: JoinSet<()>,
    ending: bool,
}

impl Sessions {
    pub fn new(shared: Shared, server: Server, guess: bool) -> Arc<Self> {
        Arc::new(Sessions { shared, server, guess, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the sessions are held")
    }

    /// Begins a legacy session.
    pub fn begin(self: &Arc<Self>, principal: Principal) -> Result<Arc<Legacy>, NoSession> {
        let mut state = self.state();
        self.check_room(&state)?;
        let id = Uuid::new_v4().to_string();
        let caller = principal.as_deref().map_or_else(|| Caller::of_session(&id), Caller::known);
        let legacy = Arc::new_cyclic(|me: &Weak<Legacy>| {
            let streams = ClientStreams::new(self.guess, me.clone());
            let session = self.session(streams.clone(), caller);
            Legacy { id: id.clone(), session, streams, principal, life: Life::new() }
        });
        self.start(&legacy.session)?;
        debug!("a session begins");
        let (session, own) = (legacy.session.clone(), legacy.clone());
        self.run(&mut state, session, async move { own.life.retired.notified().await });
        state.legacy.insert(id, legacy.clone());
        Ok(legacy)
    }

    /// The session that a principal's modern requests share.
    pub fn shared_by(self: &Arc<Self>, principal: &Principal) -> Result<Arc<Modern>, NoSession> {
        let mut state = self.state();
        if let Some(modern) = state.modern.get(principal) {
            modern.life.touch();
            return Ok(modern.clone());
        }
        self.check_room(&state)?;
        let caller = principal.as_deref().map_or_else(Caller::anonymous, Caller::known);
        let session = self.session(Arc::new(NoChannel), caller);
        self.start(&session)?;
        let (open, keys) = (AtomicUsize::new(0), AtomicI64::new(0));
        let modern = Arc::new(Modern { session: session.clone(), open, keys, life: Life::new() });
        let own = modern.clone();
        self.run(&mut state, session, async move { own.life.retired.notified().await });
        state.modern.insert(principal.clone(), modern.clone());
        Ok(modern)
    }

    fn check_room(&self, state: &State) -> Result<(), NoSession> {
        let most = self.shared.config.server.max_sessions;
        match () {
            () if state.ending => Err(NoSession::Ending),
            () if state.running.len() >= most => {
                warn!("refused a new session: there are {most} (server.max_sessions)");
                Err(NoSession::TooMany(most))
            }
            () => Ok(()),
        }
    }

    fn session(&self, channel: Arc<dyn Channel>, caller: Caller) -> Arc<Session> {
        let (server, limit) = (self.server.clone(), self.shared.config.max_message);
        let make = |events| Supervisor::new(server, limit, events);
        Session::new(&self.shared, channel, caller, false, make)
    }

    fn start(&self, session: &Arc<Session>) -> Result<(), NoSession> {
        session.start().map_err(|error| {
            warn!("{error}");
            NoSession::NoServer(without_details(&error.to_string()).to_owned())
        })
    }

    /// The life of a session: until it is retired, and then until its last job has ended.
    fn run(
        self: &Arc<Self>,
        state: &mut State,
        session: Arc<Session>,
        retired: impl Future<Output = ()> + Send + 'static,
    ) {
        state.last += 1;
        let number = state.last;
        state.running.insert(number, session.clone());
        let this = self.clone();
        state.tasks.spawn(async move {
            tokio::select! {
                () = session.keep_time() => {}
                () = async {
                    retired.await;
                    session.at_rest().await;
                } => {}
            }
            session.close();
            session.stop().await;
            this.state().running.remove(&number);
        });
    }

    /// A principal's own session of this id.
    pub fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Legacy>> {
        let state = self.state();
        let legacy = state.legacy.get(id).filter(|legacy| legacy.principal == *principal)?;
        legacy.life.touch();
        Some(legacy.clone())
    }

    /// Nobody will use the session any more; its jobs run on.
    pub fn retire(&self, legacy: &Legacy) {
        if self.state().legacy.remove(&legacy.id).is_some() {
            legacy.streams.finish();
            legacy.life.retired.notify_one();
            debug!("a session ends");
        }
    }

    /// Ends sessions that have been idle for `session_idle`; runs for ever.
    pub async fn sweep(&self) {
        let limit = self.shared.config.server.session_idle;
        let pause = (limit / 4).clamp(Duration::from_millis(50), Duration::from_secs(30));
        loop {
            sleep(pause).await;
            self.end_idle(limit);
        }
    }

    fn end_idle(&self, limit: Duration) {
        let mut state = self.state();
        while state.tasks.try_join_next().is_some() {}
        let is_idle =
            |legacy: &&Arc<Legacy>| legacy.life.idle() >= limit && !legacy.streams.in_use();
        let idle: Vec<_> = state.legacy.values().filter(is_idle).cloned().collect();
        state.modern.retain(|_, modern| {
            let keep = modern.life.idle() < limit || modern.open.load(Ordering::Relaxed) > 0;
            if !keep {
                modern.life.retired.notify_one();
            }
            keep
        });
        drop(state);
        for legacy in idle {
            info!("a session was idle for session_idle and ends");
            self.retire(&legacy);
        }
    }

    /// Lets what runs go on for so long, or until `hurry`; then whoever waits is told, and jobs are
    /// recorded (§9).
    pub async fn drain(&self, drain_timeout: Duration, hurry: impl Future<Output = ()>) {
        let mut tasks = self.retire_all();
        tokio::select! {
            () = all_ended(&mut tasks) => return,
            () = sleep(drain_timeout) => {}
            () = hurry => {}
        }
        let running: Vec<_> = self.state().running.values().cloned().collect();
        info!("{} sessions are interrupted", running.len());
        running.iter().for_each(|session| session.interrupt());
        let _ = timeout(LAST_ANSWERS, all_ended(&mut tasks)).await;
    }

    fn retire_all(&self) -> JoinSet<()> {
        let mut state = self.state();
        state.ending = true;
        for (_, legacy) in state.legacy.drain() {
            legacy.streams.finish();
            legacy.life.retired.notify_one();
        }
        for (_, modern) in state.modern.drain() {
            modern.life.retired.notify_one();
        }
        std::mem::take(&mut state.tasks)
    }
}

async fn all_ended(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
