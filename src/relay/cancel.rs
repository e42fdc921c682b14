//! `notifications/cancelled` of the client: a user who has changed their mind, or a client that
//! gave up (contract §6).

use std::sync::Arc;

use tracing::debug;

use crate::config::OnClientCancel;
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::rpc::id::Id;
use crate::rpc::splice::Edits;
use crate::upstream::{Headers, Outgoing};

use super::call::Call;
use super::patience::says_time_out;
use super::pending::What;
use super::session::{Session, State};
use crate::rpc::message::Message;

impl Session {
    pub(super) fn cancelled(self: &Arc<Self>, message: &Message, headers: &Headers) {
        let params = Params::parse(message.envelope.params);
        let Some((raw, id)) = params.get("requestId").and_then(|raw| Some((raw, Id::parse(raw)?)))
        else {
            return self.upstream.send_if_up(as_it_is(message, headers, &params));
        };
        let mut state = self.state();
        if let Some(wait) = state.waits.remove(&id) {
            // It ends the wait, never the job (§5.1).
            wait.task.abort();
            if says_time_out(&params.text("reason").unwrap_or_default()) {
                self.patience.timed_out(&self.caller, &wait.client, wait.since.elapsed());
            }
            return self.note_answered();
        }
        match state.pending.asked_as(&id) {
            Some(inside) => {
                self.cancel_request(&mut state, message, raw, &inside, &params, headers);
            }
            None if state.catalog.cancel(&id) => debug!("the server has answered already"),
            // Its handle is out; the server may know a job by this id (§4.3).
            None if state.pending.contains(&id) || state.has_parted(&id) => {
                debug!("ignored a late cancel of a call that has its handle");
            }
            None => self.upstream.send_if_up(as_it_is(message, headers, &params)),
        }
        self.note_answered();
    }

    fn cancel_request(
        &self,
        state: &mut State,
        message: &Message,
        raw: &str,
        inside: &Id,
        params: &Params,
        headers: &Headers,
    ) {
        let Some(pending) = state.pending.get(inside) else { return };
        let gave_up = match &pending.what {
            // Not to be cancelled, says MCP; the answer is still wanted.
            What::Initialize => {
                return self.upstream.send_if_up(as_it_is(message, headers, params));
            }
            What::Call(call) => self.is_time_out(call, &params.text("reason").unwrap_or_default()),
            _ => false,
        };
        if gave_up && self.detach(state, inside) {
            return;
        }
        let Some(pending) = state.pending.withdraw(inside) else { return };
        if let What::Call(call) = pending.what {
            let in_line = call.is_in_line();
            self.call_over(state, &call);
            if in_line {
                return;
            }
        }
        let mut edits = Edits::new();
        if pending.renamed {
            edits.replace(message.text, raw, inside.to_json());
        }
        let line = message.edited(edits);
        let out = Outgoing::cancelled(line, headers.clone(), inside.clone(), params);
        self.upstream.send_if_up(out);
    }

    /// Whether the client gave up, or its user did; learns from it.
    fn is_time_out(&self, call: &Call, reason: &str) -> bool {
        let age = call.received.elapsed();
        let said = says_time_out(reason);
        let usual = self.patience.gave_up_before(&self.caller, &call.client, age);
        if said {
            self.patience.timed_out(&self.caller, &call.client, age);
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
