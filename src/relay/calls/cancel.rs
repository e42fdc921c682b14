//! `notifications/cancelled` of the client: its user cancelled, or it timed out (contract §6).

use std::sync::Arc;

use tracing::debug;

use crate::config::OnClientCancel;
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::{Call, RequestKind, RequestState, WaitTask};
use crate::relay::time_outs::says_time_out;
use crate::rpc::id::Id;
use crate::rpc::message::Message;
use crate::rpc::splice::Edits;
use crate::upstream::{Headers, Outgoing};

impl Session {
    /// A `notifications/cancelled` of the client.
    pub(in crate::relay) fn cancelled(
        self: &Arc<Self>,
        message: &Message,
        params: &Params,
        headers: &Headers,
    ) {
        let named = params.get("requestId").and_then(|raw| Some((raw, Id::parse(raw)?)));
        let Some((raw, id)) = named else {
            return self.upstream.send_if_up(as_it_is(message, headers, params));
        };
        let mut state = self.state();
        match state.calls.state_of(&id) {
            RequestState::Waiting => {
                if let Some(wait) = state.calls.waits.remove(&id) {
                    self.wait_cancelled(&wait, params);
                }
            }
            RequestState::Pending(upstream_id) => {
                self.cancel_request(&mut state, message, params, raw, &upstream_id, headers);
            }
            // The request, or its answer, was held here: the server has nothing to cancel.
            _ if state.lists.catalog.cancel(&id) => debug!("the server has answered already"),
            RequestState::Disconnected | RequestState::AnsweredByProxy => {
                debug!("ignored a late cancel of a call that has its handle");
            }
            RequestState::Undelivered | RequestState::Unknown => {
                self.upstream.send_if_up(as_it_is(message, headers, params));
            }
        }
        self.notify_request_over();
    }

    /// A cancel of a request that waits for a job ends the wait, never the job (§5.1).
    fn wait_cancelled(&self, wait: &WaitTask, params: &Params) {
        wait.task.abort();
        if says_time_out(&params.text("reason").unwrap_or_default()) {
            self.time_outs.timed_out(&self.caller, &wait.client, wait.since.elapsed());
        }
    }

    /// Cancels a request that the server has. `raw`: the id that the notification names.
    fn cancel_request(
        &self,
        state: &mut State,
        message: &Message,
        params: &Params,
        raw: &str,
        upstream_id: &Id,
        headers: &Headers,
    ) {
        let Some(pending) = state.calls.pending.get(upstream_id) else { return };
        let gave_up = match &pending.kind {
            // MCP forbids to cancel it, so its answer is still sent.
            RequestKind::Initialize => {
                return self.upstream.send_if_up(as_it_is(message, headers, params));
            }
            RequestKind::Call(call) => {
                self.is_time_out(call, &params.text("reason").unwrap_or_default())
            }
            _ => false,
        };
        if gave_up && self.detach(state, upstream_id) {
            return;
        }
        let Some(pending) = state.calls.pending.withdraw(upstream_id) else { return };
        if let RequestKind::Call(call) = pending.kind {
            let was_queued = call.is_queued();
            self.release_cancelled(state, &call);
            if was_queued {
                return;
            }
        }
        let mut edits = Edits::new();
        if pending.renamed {
            edits.replace(message.text, raw, upstream_id.to_json());
        }
        let line = message.edited(edits);
        let out = Outgoing::cancelled(line, headers.clone(), upstream_id.clone(), params);
        self.upstream.send_if_up(out);
    }

    /// Whether the client timed out (`true`) or its user cancelled; a time-out is remembered.
    fn is_time_out(&self, call: &Call, reason: &str) -> bool {
        let age = call.received.elapsed();
        let said = says_time_out(reason);
        let usual = self.time_outs.gave_up_before(&self.caller, &call.client, age);
        if said {
            self.time_outs.timed_out(&self.caller, &call.client, age);
        }
        match call.policy.on_client_cancel {
            OnClientCancel::Auto => said || usual,
            OnClientCancel::Cancel => false,
            OnClientCancel::Detach => true,
        }
    }
}

/// The client's message, with nothing changed.
fn as_it_is(message: &Message, headers: &Headers, params: &Params) -> Outgoing {
    let (line, headers) = (message.line.clone(), headers.clone());
    Outgoing::notification(line, headers, Some(Method::Cancelled), &message.envelope, params)
}
