//! The sessions of all clients: begun, found, and ended (contract §9, §10).
//!
//! Each legacy client session has a [`Session`] of its own, and with it an upstream session of its
//! own. Modern clients have no sessions; those of one principal share one. A session that nobody
//! uses any more lives on while one of its jobs runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};
use uuid::Uuid;

use crate::downstream::Channel;
use crate::downstream::http::{ClientStreams, NoChannel};
use crate::jobs::caller::Caller;
use crate::relay::{Session, Shared};
use crate::upstream::Server;
use crate::upstream::Supervisor;
use crate::upstream::without_details;

use super::client_session::{LastUse, LegacySession, SharedSession};
use super::principal::Principal;

/// How long what was interrupted has to leave, and the servers to end.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSession {
    /// so many there are already
    #[error("there are {0} sessions already (server.max_sessions); try again later")]
    TooMany(usize),
    /// no new work is taken
    #[error("the proxy is ending")]
    Ending,
    /// its server can't be started, for this reason
    #[error("{0}")]
    NoServer(String),
}

/// All sessions.
pub(crate) struct Sessions {
    shared: Shared,
    server: Server,
    /// see [`ClientStreams::new`]
    guess_request: bool,
    table: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    /// by the id that the client knows
    legacy_sessions: HashMap<String, Arc<LegacySession>>,
    shared_sessions: HashMap<Principal, Arc<SharedSession>>,
    /// every session whose server runs, also those that nobody uses any more
    running: HashMap<u64, Arc<Session>>,
    last_number: u64,
    tasks: JoinSet<()>,
    ending: bool,
}

impl Sessions {
    /// No sessions yet. `guess_request`: the server's messages don't say which request they belong
    /// to, as those of a child.
    pub(crate) fn new(shared: Shared, server: Server, guess_request: bool) -> Arc<Self> {
        Arc::new(Sessions { shared, server, guess_request, table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().expect("no panic while the sessions are held")
    }

    /// Begins a legacy session.
    ///
    /// # Errors
    /// See [`NoSession`].
    pub(crate) fn begin(
        self: &Arc<Self>,
        principal: Principal,
    ) -> Result<Arc<LegacySession>, NoSession> {
        let mut table = self.table();
        self.check_room(&table)?;
        let id = Uuid::new_v4().to_string();
        let caller = principal.as_deref().map_or_else(|| Caller::of_session(&id), Caller::known);
        let legacy = Arc::new_cyclic(|me: &Weak<LegacySession>| {
            let streams = ClientStreams::new(self.guess_request, me.clone());
            let session = self.session(streams.clone(), caller);
            LegacySession { id: id.clone(), session, streams, principal, last_use: LastUse::new() }
        });
        self.start(&legacy.session)?;
        debug!("a session begins");
        let (session, own) = (legacy.session.clone(), legacy.clone());
        self.run(&mut table, session, async move { own.last_use.retired().await });
        table.legacy_sessions.insert(id, legacy.clone());
        Ok(legacy)
    }

    /// The session that a principal's modern requests share.
    ///
    /// # Errors
    /// See [`NoSession`].
    pub(crate) fn shared_by(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Result<Arc<SharedSession>, NoSession> {
        let mut table = self.table();
        if let Some(shared) = table.shared_sessions.get(principal) {
            shared.last_use.touch();
            return Ok(shared.clone());
        }
        self.check_room(&table)?;
        let caller = principal.as_deref().map_or_else(Caller::anonymous, Caller::known);
        let session = self.session(Arc::new(NoChannel), caller);
        self.start(&session)?;
        let shared = SharedSession::new(session.clone());
        let own = shared.clone();
        self.run(&mut table, session, async move { own.last_use.retired().await });
        table.shared_sessions.insert(principal.clone(), shared.clone());
        Ok(shared)
    }

    fn check_room(&self, table: &SessionTable) -> Result<(), NoSession> {
        let most = self.shared.config.server.max_sessions;
        match () {
            () if table.ending => Err(NoSession::Ending),
            () if table.running.len() >= most => {
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
        table: &mut SessionTable,
        session: Arc<Session>,
        retired: impl Future<Output = ()> + Send + 'static,
    ) {
        table.last_number += 1;
        let number = table.last_number;
        table.running.insert(number, session.clone());
        let this = self.clone();
        table.tasks.spawn(async move {
            tokio::select! {
                () = session.run_deadlines() => {}
                () = async {
                    retired.await;
                    session.idle().await;
                } => {}
            }
            session.close();
            session.stop().await;
            this.table().running.remove(&number);
        });
    }

    /// A principal's own session of this id.
    pub(crate) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<LegacySession>> {
        let table = self.table();
        let legacy =
            table.legacy_sessions.get(id).filter(|legacy| legacy.principal == *principal)?;
        legacy.last_use.touch();
        Some(legacy.clone())
    }

    /// Nobody will use the session any more; its jobs run on.
    pub(crate) fn retire(&self, legacy: &LegacySession) {
        if self.table().legacy_sessions.remove(&legacy.id).is_some() {
            legacy.streams.finish();
            legacy.last_use.retire();
            debug!("a session ends");
        }
    }

    /// Ends sessions that have been idle for `session_idle`; runs for ever.
    pub(crate) async fn sweep(&self) {
        let limit = self.shared.config.server.session_idle;
        let pause = (limit / 4).clamp(Duration::from_millis(50), Duration::from_secs(30));
        loop {
            sleep(pause).await;
            self.end_idle(limit);
        }
    }

    fn end_idle(&self, limit: Duration) {
        let mut table = self.table();
        while table.tasks.try_join_next().is_some() {}
        let is_idle = |legacy: &&Arc<LegacySession>| {
            legacy.last_use.idle() >= limit && !legacy.streams.in_use()
        };
        let idle: Vec<_> = table.legacy_sessions.values().filter(is_idle).cloned().collect();
        table.shared_sessions.retain(|_, shared| {
            let keep = shared.last_use.idle() < limit || shared.in_use();
            if !keep {
                shared.last_use.retire();
            }
            keep
        });
        drop(table);
        for legacy in idle {
            info!("a session was idle for session_idle and ends");
            self.retire(&legacy);
        }
    }

    /// Lets what runs go on for so long, or until `hurry`; then whoever waits is told, and jobs are
    /// recorded (§9).
    pub(crate) async fn drain(&self, drain_timeout: Duration, hurry: impl Future<Output = ()>) {
        let mut tasks = self.retire_all();
        tokio::select! {
            () = all_ended(&mut tasks) => return,
            () = sleep(drain_timeout) => {}
            () = hurry => {}
        }
        let running: Vec<_> = self.table().running.values().cloned().collect();
        info!("{} sessions are interrupted", running.len());
        running.iter().for_each(|session| session.interrupt());
        let _ = timeout(LAST_ANSWERS, all_ended(&mut tasks)).await;
    }

    fn retire_all(&self) -> JoinSet<()> {
        let mut table = self.table();
        table.ending = true;
        for (_, legacy) in table.legacy_sessions.drain() {
            legacy.streams.finish();
            legacy.last_use.retire();
        }
        for (_, shared) in table.shared_sessions.drain() {
            shared.last_use.retire();
        }
        std::mem::take(&mut table.tasks)
    }
}

async fn all_ended(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
