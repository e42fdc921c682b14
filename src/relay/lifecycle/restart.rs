//! What a server that was restarted is told, so that it knows what the last one knew (contract §9):
//! the client's own `initialize`, log level and subscriptions.

use bytes::Bytes;
use tokio::time::Instant;

use crate::mcp::compose::notification_line;
use crate::mcp::method::Method;
use crate::relay::session::Session;
use crate::relay::state::calls::{PendingRequest, RequestKind};
use crate::relay::state::lists::ListKind;
use crate::relay::state::restart_step::RestartStep;
use crate::relay::state::{Due, State};
use crate::rpc::id::Id;
use crate::rpc::message::Envelope;
use crate::rpc::splice::with_id;
use crate::upstream::Outgoing;

impl Session {
    /// Begins the handshake with a server that was restarted, while messages wait in the
    /// supervisor.
    pub(in crate::relay) fn restart(&self, state: &mut State) {
        match state.client.settings.initialize.clone() {
            // The modern era has no handshake.
            None => self.restore_settings(state),
            // The client's own `initialize` waits already, as after a `server/discover` that ended
            // the first server.
            Some(_) if state.calls.pending.any(|kind| matches!(kind, RequestKind::Initialize)) => {
                self.upstream.ready();
            }
            Some(params) => {
                let id = self.send_step(
                    state,
                    RestartStep::Initialize,
                    Method::Initialize,
                    Some(&params),
                );
                let at = Instant::now() + self.config.start_timeout;
                self.add_deadline(state, at, Due::Handshake(id));
            }
        }
    }

    /// Sends a request of the handshake; returns its id.
    fn send_step(
        &self,
        state: &mut State,
        step: RestartStep,
        method: Method,
        params: Option<&str>,
    ) -> Id {
        let id = state.calls.pending.new_id();
        state
            .calls
            .pending
            .insert(id.clone(), PendingRequest::without_requester(RequestKind::Restart(step)));
        let headers = state.client.headers.clone();
        self.upstream.send_first(Outgoing::own_request(&id, method, params, headers));
        id
    }

    /// The answer to a request of the handshake.
    pub(in crate::relay) fn restart_step_answered(
        &self,
        state: &mut State,
        step: RestartStep,
        envelope: &Envelope,
    ) {
        match step {
            RestartStep::Initialize if envelope.error.is_some() => {
                self.upstream.give_up("the server, started again, refused the client's initialize");
            }
            RestartStep::Initialize => self.restore_settings(state),
            RestartStep::Setting => {}
            RestartStep::CompareList(key) => {
                if let Some(result) = envelope.result
                    && state.lists.cache.differs(&key, result)
                {
                    self.notify_list_changed_once(state, key.kind);
                }
            }
        }
    }

    /// The server has answered `initialize`: sends what the client has set, and lets the messages
    /// go that wait.
    fn restore_settings(&self, state: &mut State) {
        if let Some(line) = &state.client.settings.initialized {
            self.upstream.send_first(Outgoing::parse(line.clone(), state.client.headers.clone()));
        }
        if let Some(params) = state.client.settings.log_level.clone() {
            self.send_step(state, RestartStep::Setting, Method::SetLogLevel, Some(&params));
        }
        for params in state.client.settings.subscriptions.values().cloned().collect::<Vec<_>>() {
            self.send_step(state, RestartStep::Setting, Method::Subscribe, Some(&params));
        }
        self.listen_again(state);
        if state.client.settings.initialize.is_some() {
            self.compare_lists(state);
        }
        self.upstream.ready();
    }

    /// Sends the `subscriptions/listen` again that the last server had.
    fn listen_again(&self, state: &mut State) {
        for id in state.calls.pending.ids() {
            if let Some(PendingRequest {
                kind: RequestKind::Listen { line, lost, .. },
                requester,
                ..
            }) = state.calls.pending.get_mut(&id)
                && std::mem::take(lost)
            {
                let headers = requester.as_ref().and_then(|requester| requester.headers.clone());
                self.upstream.send_first(Outgoing::parse(with_upstream_id(line, &id), headers));
            }
        }
    }

    /// Asks for the lists that the client knows, to tell it if one differs.
    fn compare_lists(&self, state: &mut State) {
        state.lists.changed.clear();
        for key in state.lists.cache.keys() {
            let params = key.cursor.as_ref().map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
            let method = key.kind.method();
            self.send_step(state, RestartStep::CompareList(key), method, params.as_deref());
        }
    }

    /// Tells the client that a list has changed, once in this life of the server.
    fn notify_list_changed_once(&self, state: &mut State, kind: ListKind) {
        // Several pages may differ.
        if !state.lists.changed.contains(&kind) {
            state.lists.changed.push(kind);
            self.notify_list_changed(kind);
        }
    }

    /// Tells the client that a list has changed.
    pub(in crate::relay) fn notify_list_changed(&self, kind: ListKind) {
        self.client.announce(&notification_line(kind.changed(), None));
    }
}

/// The line of a request with its upstream id.
fn with_upstream_id(line: &Bytes, id: &Id) -> Bytes {
    let text = String::from_utf8_lossy(line);
    match Envelope::parse(&text).ok().and_then(|envelope| envelope.id) {
        Some(old) if Id::parse(old).as_ref() != Some(id) => {
            with_id(&text, old, &id.to_json()).into()
        }
        _ => line.clone(),
    }
}
