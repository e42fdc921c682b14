//! One client and one server, and every message between them.
//!
//! Both sides call in with lines, in order; each line is handled at once, under one lock, and
//! leaves by a queue. So the messages of a peer keep their order, and of two things that happen to
//! a call at the same time, such as its result and the end of its budget, one comes first.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tracing::debug;
use uuid::Uuid;

use crate::config::Config;
use crate::downstream::{Answer, Channel, Reply};
use crate::jobs::caller::Caller;
use crate::jobs::duplicates::{Fingerprint, fingerprint};
use crate::jobs::registry::Registry;
use crate::jobs::store::{self, StoreFuture};
use crate::mcp::compose::{cancelled_line, error_line};
use crate::mcp::params::Params;
use crate::relay::concurrency::{Concurrency, ReadyCalls};
use crate::relay::state::requester::Requester;
use crate::relay::state::{AfterUnlock, State};
use crate::rpc::id::Id;
use crate::rpc::message::Message;
use crate::rpc::outbox::Room;
use crate::rpc::parsed_line::ParsedLine;
use crate::rpc::splice::{Edits, with_id};
use crate::upstream::{
    Delivery, Headers, Loss, MessageOrigin, Outgoing, ServerEnd, ServerObserver, StartError,
    Supervisor, without_details,
};

use super::time_outs::TimeOuts;

/// The relay between one client and one server.
pub(crate) struct Session {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) upstream: Arc<Supervisor>,
    /// the way to the client
    pub(super) client: Arc<dyn Channel>,
    pub(super) caller: Caller,
    pub(super) time_outs: Arc<TimeOuts>,
    /// running and waiting calls of tools with `max_concurrent`
    pub(super) concurrency: Arc<Concurrency>,
    /// calls of this session whose turn came when another session freed a place
    pub(super) ready_calls: Arc<ReadyCalls>,
    /// tells this session's calls from those of others, since the server may keep state (§7)
    id: Uuid,
    /// `true`: where the first start fails, the program ends; `false`: the next message starts it
    /// again
    pub(super) ends_with_server: bool,
    pub(super) weak_self: Weak<Session>,
    state: Mutex<State>,
    /// wakes the task that waits for the next deadline when an earlier one was added
    pub(super) earlier_deadline: Notify,
    /// notified when a request is over, with an answer or without
    pub(super) request_over: Notify,
    /// notified when it is clear that there will be no server
    pub(super) failed: Notify,
}

/// What sessions have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
    pub time_outs: Arc<TimeOuts>,
    /// `Some` where all sessions share one server
    concurrency: Option<Arc<Concurrency>>,
}

impl Shared {
    /// Opens the store that is configured.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let registry = Arc::new(Registry::new(store::open(&config.jobs)));
        let concurrency = config.remote().map(|_| Arc::default());
        Shared { config, registry, time_outs: Arc::default(), concurrency }
    }
}

impl Session {
    /// A session whose upstream is made by `upstream`, which gets a handle on the session for
    /// its events. Nothing is started.
    pub(crate) fn new(
        shared: &Shared,
        client: Arc<dyn Channel>,
        caller: Caller,
        ends_with_server: bool,
        upstream: impl FnOnce(Weak<dyn ServerObserver>) -> Arc<Supervisor>,
    ) -> Arc<Self> {
        let Shared { config, registry, time_outs, concurrency } = shared.clone();
        Arc::new_cyclic(|weak_self: &Weak<Session>| Session {
            upstream: upstream(weak_self.clone()),
            state: Mutex::new(State::new(&config)),
            config,
            registry,
            client,
            caller,
            time_outs,
            concurrency: concurrency.unwrap_or_default(),
            ready_calls: Arc::default(),
            id: Uuid::new_v4(),
            ends_with_server,
            weak_self: weak_self.clone(),
            earlier_deadline: Notify::new(),
            request_over: Notify::new(),
            failed: Notify::new(),
        })
    }

    /// Starts the server.
    ///
    /// # Errors
    /// Why it can't be started.
    pub(crate) fn start(&self) -> Result<(), StartError> {
        self.upstream.start()
    }

    /// What to wait for before more is read from the client: room on the way to the server, and for
    /// our own answers; `None` where there is room.
    pub(crate) fn room(&self) -> Option<impl Future<Output = ()>> {
        let has_room = self.upstream.has_room() && self.client.has_room();
        (!has_room).then_some(async {
            self.upstream.room().await;
            self.client.answers_room().await;
        })
    }

    /// Ends the server.
    pub(crate) async fn stop(&self) {
        self.upstream.stop().await;
    }

    /// Locks the state. The lock is never held across an `.await`.
    pub(super) fn state(&self) -> Locked<'_> {
        let state = self.state.lock().expect("no panic while the session is held");
        Locked { session: self, state: Some(state) }
    }

    /// Calls `then` once the store has answered and the session is not locked.
    pub(super) fn once_stored(
        &self,
        state: &mut State,
        stored: StoreFuture<()>,
        then: impl FnOnce(&Arc<Session>) + Send + 'static,
    ) {
        let Some(me) = self.weak_self.upgrade() else { return };
        state.after_unlock.push_back(AfterUnlock::new(stored, move || then(&me)));
    }

    /// Sends a message to the server, which is started if need be.
    ///
    /// # Errors
    /// One sentence: why it can't be sent.
    pub(super) fn send_to_server(
        &self,
        state: &mut State,
        message: Outgoing,
    ) -> Result<(), String> {
        match self.upstream.send(message) {
            Ok(Delivery::Sent | Delivery::Waiting) => Ok(()),
            Ok(Delivery::Started) => {
                self.restart(state);
                Ok(())
            }
            Err(unavailable) => Err(self.cause_for_client(&unavailable.to_string()).to_owned()),
        }
    }

    /// A cause of a failure as the client may read it: over HTTP, where it may be anybody, without
    /// details.
    pub(super) fn cause_for_client<'a>(&self, cause: &'a str) -> &'a str {
        if self.client.shows_details() { cause } else { without_details(cause) }
    }

    /// Answers a request that could not be sent with the cause.
    pub(super) fn fail_unsent(&self, state: &mut State, upstream_id: &Id, cause: &str) {
        if let Some(pending) = state.calls.pending.remove(upstream_id) {
            self.lost_request(state, pending, cause, false);
        }
    }

    /// Sends the server's answer to the client, with the id that the client wrote.
    pub(super) fn forward_answer(&self, requester: Option<&Requester>, message: &Message) {
        let Some(requester) = requester else { return };
        if message.id() == &*requester.id {
            self.send_answer(requester, &Answer::of(message, message.line));
        } else {
            let line = with_id(message.text, message.id(), &requester.id).into();
            self.send_answer(requester, &Answer::of(message, &line));
        }
    }

    /// Sends a result of our own to the requester.
    pub(super) fn answer(&self, requester: &Requester, line: &Bytes) {
        self.send_answer(requester, &Answer::result(line));
    }

    /// Sends an error of our own to the requester.
    pub(super) fn answer_error(&self, requester: &Requester, code: i32, message: &str) {
        let line = error_line(&requester.id, code, message);
        self.send_answer(requester, &Answer::error(&line, code));
    }

    /// Sends an answer to the requester.
    pub(super) fn send_answer(&self, requester: &Requester, answer: &Answer) {
        debug!(to = "client", id = &*requester.id, bytes = answer.line.len());
        requester.reply.send(answer);
        self.notify_request_over();
    }

    /// Sends a request or notification of the server: on the stream of the client's request that it
    /// belongs to, where that is known, else on the client's channel. `false`: it reaches nobody.
    pub(super) fn send_to_client(
        &self,
        state: &State,
        request: Option<&Id>,
        line: &Bytes,
        is_request: bool,
    ) -> bool {
        let requester = request.and_then(|id| state.calls.pending.get(id)?.requester.as_ref());
        if requester.is_some_and(|requester| requester.reply.push(line)) {
            return true;
        }
        if is_request { self.client.ask(line) } else { self.client.notify(line) }
    }

    /// Tells the server that nobody wants the answer to a request any more.
    pub(super) fn send_cancelled(&self, id: &Id, reason: &str, headers: Headers) {
        let line = cancelled_line(id, reason);
        let params = Params::default();
        self.upstream.send_if_up(Outgoing::cancelled(line, headers, id.clone(), &params));
    }

    /// Tells those who wait for it that a request is over, with an answer or without.
    pub(super) fn notify_request_over(&self) {
        self.request_over.notify_one();
    }

    /// Sends the server's answer to the client with these edits, and with the id that the client
    /// wrote.
    pub(super) fn forward_edited_answer(
        &self,
        requester: &Requester,
        message: &Message,
        mut edits: Edits,
    ) {
        if message.id() != &*requester.id {
            edits.replace(message.text, message.id(), &*requester.id);
        }
        self.send_answer(requester, &Answer::of(message, &message.edited(edits)));
    }

    /// The fingerprint by which an equal call is found (§7); `None` where the call may not be
    /// joined.
    pub(super) fn fingerprint(&self, headers: &Headers, params: &str) -> Option<Fingerprint> {
        let own = self.caller.job_scope()?;
        let scope = [own.as_bytes(), self.id.as_bytes()];
        let headers = headers.iter().flat_map(|headers| headers.iter());
        let headers =
            headers.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        fingerprint(scope.into_iter().chain(headers), params)
    }
}

impl ServerObserver for Session {
    fn message(&self, line: &ParsedLine, from: MessageOrigin) {
        self.server_line(line, &from);
    }

    fn lost(&self, end: &ServerEnd) {
        self.server_lost(end);
    }

    fn request_lost(&self, id: &Id, loss: Loss) {
        self.request_without_answer(id, loss);
    }

    fn renewed(&self) {
        self.restart(&mut self.state());
    }

    fn primed(&self, request: &Id, retry: Option<Duration>) {
        if let Some(reply) = self.reply_of(request) {
            reply.prime(retry);
        }
    }

    fn paused(&self, request: &Id) {
        if let Some(reply) = self.reply_of(request) {
            reply.pause();
        }
    }

    fn room(&self) -> Option<Room> {
        self.client.room()
    }
}

impl Session {
    /// The way back for the answer to a request.
    fn reply_of(&self, request: &Id) -> Option<Reply> {
        let state = self.state();
        Some(state.calls.pending.get(request)?.requester.as_ref()?.reply.clone())
    }
}

/// The locked state. When it is dropped, the lock is released, and then what is in
/// [`State::after_unlock`] is done.
pub(super) struct Locked<'a> {
    session: &'a Session,
    state: Option<MutexGuard<'a, State>>,
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("taken only when it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("taken only when it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let after = std::mem::take(&mut self.after_unlock);
        drop(self.state.take());
        after.into_iter().for_each(|after| after.run(&self.session.registry));
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::Overrides;
    use crate::downstream::StdioClient;
    use crate::jobs::store::slow::SlowStore;
    use crate::rpc::line::Line;
    use crate::rpc::outbox::Outbox;
    use crate::upstream::{RemoteServer, Server};

    /// A session over stdio whose server is at `url`.
    fn session(url: String, registry: Registry, client: Arc<StdioClient>) -> Arc<Session> {
        let overrides = Overrides { url: Some(url), ..Overrides::default() };
        let config = Arc::new(Config::load(&overrides, &[]).unwrap());
        let server = Server::Remote(RemoteServer::new(config.remote().unwrap()));
        let shared = Shared { registry: Arc::new(registry), ..Shared::new(config.clone()) };
        let make = |observer| Supervisor::new(server, config.max_message, observer);
        Session::new(&shared, client, Caller::local(), true, make)
    }

    #[tokio::test]
    async fn a_handle_leaves_once_its_job_is_stored_and_holds_up_nothing_else_s11() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", silent.local_addr().unwrap());
        let (store, mut keeps) = SlowStore::new();
        let outbox = Arc::new(Outbox::default());
        let client = StdioClient::new(outbox.clone());
        let session = session(url, Registry::new(Arc::new(store)), client.clone());
        session.start().unwrap();
        let clock = session.clone();
        let clock = tokio::spawn(async move { clock.run_deadlines().await });
        let (mut read, written) = tokio::io::duplex(1 << 20);
        let writer = tokio::spawn(async move { outbox.run(written).await });

        let send = |line: &'static str| {
            session.from_client(&Line::Whole(Bytes::from(line)), &(client.clone() as Reply));
        };
        send(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"unhurry/answer_within":0.01}}}"#,
        );
        let kept = keeps.recv().await.unwrap();
        send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
        let mut line = [0; 64];
        let length = read.read(&mut line).await.unwrap();
        let pong = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n";
        assert_eq!(std::str::from_utf8(&line[..length]).unwrap(), pong, "no handle before it");

        kept.send(()).unwrap();
        let length = read.read(&mut line).await.unwrap();
        let handle = std::str::from_utf8(&line[..length]).unwrap();
        assert!(handle.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":{"content""#), "{handle}");
        clock.abort();
        writer.abort();
        session.stop().await;
    }
}
