//! `notifications/cancelled` of the client: a user who has changed their mind, or a client that
//! gave up (contract §6).

use std::sync::Arc;

use tracing::debug;

use crate::config::OnClientCancel;
use crate::mcp::params::Params;
use crate::rpc::id::Id;
use crate::rpc::splice::Edits;
use crate::upstream::Headers;

use super::call::Call;
use super::patience::says_time_out;
use super::pending::What;
use super::session::{Session, State};
use crate::rpc::message::Message;

impl Session {
    pub(super) fn cancelled(
        self: &Arc<Self>,
        message: &Message,
        params: &Params,
        headers: &Headers,
    ) {
        let Some(raw) = params.get("requestId") else {
            return self.upstream.send_if_up(message.line, headers);
        };
        let Some(id) = Id::parse(raw) else {
            return self.upstream.send_if_up(message.line, headers);
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
                let reason = params.text("reason").unwrap_or_default();
                self.cancel_request(&mut state, message, raw, &inside, &reason, headers);
            }
            None if state.catalog.cancel(&id) => debug!("the server has answered already"),
            // Its handle is out; the server may know a job by this id (§4.3).
            None if state.pending.contains(&id) || state.has_parted(&id) => {
                debug!("ignored a late cancel of a call that has its handle");
            }
            None => self.upstream.send_if_up(message.line, headers),
        }
        self.note_answered();
    }

    fn cancel_request(
        &self,
        state: &mut State,
        message: &Message,
        raw: &str,
        inside: &Id,
        reason: &str,
        headers: &Headers,
    ) {
        let Some(pending) = state.pending.get(inside) else { return };
        let gave_up = match &pending.what {
            // Not to be cancelled, says MCP; the answer is still wanted.
            What::Initialize => return self.upstream.send_if_up(message.line, headers),
            What::Call(call) => self.is_time_out(call, reason),
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
        self.upstream.send_if_up(&message.edited(edits), headers);
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
