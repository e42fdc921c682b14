//! The session that a client is in: its own in the legacy era, one that many clients share in the
//! modern era.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::downstream::http::{ClientStreams, HttpResponder, RequestInfo, ResponseObserver};
use crate::relay::Session;
use crate::rpc::id::Id;

use super::principal::Principal;

/// A session of a legacy client.
pub(crate) struct LegacySession {
    /// what the client knows it by
    pub id: String,
    /// the relay between the client and its server
    pub session: Arc<Session>,
    /// all ways to the client
    pub streams: Arc<ClientStreams>,
    /// who may use it
    pub principal: Principal,
    /// when it was used
    pub last_use: LastUse,
}

/// What all modern clients of one principal share.
pub(crate) struct SharedSession {
    /// the relay between the clients and their server
    pub session: Arc<Session>,
    /// when it was used
    pub last_use: LastUse,
    /// requests whose answers are read now
    open: AtomicUsize,
    /// the last name that was given to a request
    last_key: AtomicI64,
}

/// When a session was last used, and the end of its use.
pub(crate) struct LastUse {
    last: Mutex<Instant>,
    retired: Notify,
}

impl LastUse {
    /// It is used now.
    pub(crate) fn new() -> Self {
        LastUse { last: Mutex::new(Instant::now()), retired: Notify::new() }
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        self.last.lock().expect("no panic while the time is held")
    }

    /// It is used again.
    pub(crate) fn touch(&self) {
        *self.last() = Instant::now();
    }

    /// How long it was not used.
    pub(crate) fn idle(&self) -> Duration {
        self.last().elapsed()
    }

    /// Nobody will use it any more.
    pub(crate) fn retire(&self) {
        self.retired.notify_one();
    }

    /// Waits until nobody will use it any more.
    pub(crate) async fn retired(&self) {
        self.retired.notified().await;
    }
}

impl ResponseObserver for LegacySession {
    fn response_closed(&self, responder: &Arc<HttpResponder>, delivered: bool) {
        self.last_use.touch();
        self.streams.close(responder);
        tell(&self.session, responder, delivered, false);
    }
}

impl ResponseObserver for SharedSession {
    fn response_closed(&self, responder: &Arc<HttpResponder>, delivered: bool) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.last_use.touch();
        tell(&self.session, responder, delivered, true);
    }
}

/// Tells the session that nobody reads what goes back to these requests any more.
fn tell(session: &Session, responder: &HttpResponder, delivered: bool, closing_cancels: bool) {
    for key in &responder.request.keys {
        if delivered {
            session.answer_delivered(key)
        } else {
            session.client_disconnected(key, closing_cancels)
        }
    }
}

impl SharedSession {
    /// A session that no request has used.
    pub(crate) fn new(session: Arc<Session>) -> Arc<Self> {
        let (open, last_key) = (AtomicUsize::new(0), AtomicI64::new(0));
        Arc::new(SharedSession { session, last_use: LastUse::new(), open, last_key })
    }

    /// A request came in. Several clients use the same ids, so it gets a name of its own.
    pub(crate) fn open(
        self: &Arc<Self>,
        accepts_events: bool,
        wants_logs: bool,
    ) -> (Id, Arc<HttpResponder>) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let key = Id::Number(self.last_key.fetch_add(1, Ordering::Relaxed) + 1);
        let request = RequestInfo {
            keys: [key.clone()].into(),
            errors_have_status: true,
            accepts_events,
            wants_logs,
            stream_number: None,
        };
        let observer: Weak<dyn ResponseObserver> = Arc::downgrade(self) as _;
        (key, HttpResponder::new(request, observer))
    }

    /// Whether a client waits for anything.
    pub(crate) fn in_use(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }
}
