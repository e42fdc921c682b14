//! The sessions of HTTP clients, and the streams in them.

use std::collections::HashMap;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::http::stream::{EventStream, Style};
use crate::server::Server;
use crate::session::Session;

/// A session and its streams.
pub(crate) struct HttpSession {
    pub id: String,
    pub session: Arc<Session>,
    /// The stream of its GET.
    pub apart: Arc<EventStream>,
    /// The streams of its POSTs.
    streams: Mutex<Vec<Arc<EventStream>>>,
}

impl HttpSession {
    /// Keeps a stream, so that it can be resumed.
    pub(crate) fn keep(&self, stream: &Arc<EventStream>) {
        self.streams.lock().expect("no holder panics").push(Arc::clone(stream));
    }

    /// The stream of an event, and how many events it had by then.
    pub(crate) fn stream_of(&self, event_id: &str) -> Option<(Arc<EventStream>, usize)> {
        let (number, index) = event_id.split_once('-')?;
        let (number, index) = (number.parse::<usize>().ok()?, index.parse().ok()?);
        let streams = self.streams.lock().expect("no holder panics");
        let mut all = streams.iter().chain([&self.apart]);
        all.find(|stream| stream.number == number).map(|stream| (Arc::clone(stream), index))
    }
}

/// All sessions by their ids.
pub(crate) struct Sessions {
    server: Arc<Server>,
    open: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// Those that ended or that nobody can come back to, too.
    all: Mutex<Vec<Arc<HttpSession>>>,
    /// Every session and stream has a number of its own.
    next: AtomicUsize,
}

impl Sessions {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server, open: Mutex::default(), all: Mutex::default(), next: AtomicUsize::new(1) }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.open.lock().expect("no holder panics")
    }

    pub(crate) fn next_number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A session that nobody can come back to.
    pub(crate) fn passing(&self, style: Style) -> Arc<HttpSession> {
        let number = self.next_number();
        let apart = EventStream::apart(number, style);
        let session = Session::new(Arc::clone(&self.server), apart.clone());
        let id = format!("session-{}-{number}", process::id());
        let session = Arc::new(session);
        let session = Arc::new(HttpSession { id, session, apart, streams: Mutex::default() });
        self.all.lock().expect("no holder panics").push(Arc::clone(&session));
        session
    }

    /// A new session.
    pub(crate) fn begin(&self, style: Style) -> Arc<HttpSession> {
        let session = self.passing(style);
        self.open().insert(session.id.clone(), Arc::clone(&session));
        session
    }

    /// The one session of a server that tells none apart.
    pub(crate) fn only(&self, style: Style) -> Arc<HttpSession> {
        let session = self.open().values().next().cloned();
        session.unwrap_or_else(|| self.begin(style))
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.open().get(id).cloned()
    }

    /// Ends a session; whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        self.open().remove(id).is_some()
    }

    /// Forgets all sessions; what runs in them runs on.
    pub(crate) fn forget(&self) {
        self.open().clear();
    }

    /// Breaks the connections of all streams.
    pub(crate) fn cut_streams(&self) {
        for session in self.all.lock().expect("no holder panics").iter() {
            session.apart.cut_connection();
            let streams = session.streams.lock().expect("no holder panics");
            streams.iter().for_each(|stream| stream.cut_connection());
        }
    }
}
