//! Requests that get no answer: the server is gone, or one of its answers is lost.

use tracing::warn;

use crate::jobs::wording;
use crate::mcp::error_code::INTERNAL_ERROR;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::{PendingRequest, RequestKind};
use crate::relay::state::lists::HeldPage;
use crate::relay::state::requester::Requester;
use crate::rpc::id::Id;
use crate::rpc::truncated::{id_at_an_end, is_request};
use crate::upstream::{Loss, ServerEnd};

impl Session {
    /// One request will get no answer; all others go on.
    pub(in crate::relay) fn request_without_answer(&self, id: &Id, loss: Loss) {
        let mut state = self.state();
        let Some(mut pending) = state.calls.pending.remove(id) else { return };
        warn!("{}", loss.cause);
        if let Some(refusal) = loss.refusal
            && self.config.forwards_authorization()
            && let Some(requester) = &pending.requester
            && requester.reply.refuse(refusal)
        {
            pending.requester = None;
        }
        self.lost_request(&mut state, pending, &loss.cause, loss.reached);
    }

    /// The server is gone: the requests that it had are lost.
    pub(in crate::relay) fn server_lost(&self, end: &ServerEnd) {
        let end = &ServerEnd { cause: self.cause_for_client(&end.cause).into(), ..end.clone() };
        let mut state = self.state();
        let probed = state.calls.pending.any(|kind| matches!(kind, RequestKind::Discover));
        if end.never_up && !probed && self.ends_with_server {
            return self.fail_locked(&mut state, &end.cause);
        }
        state.client.server_requests.server_gone();
        let reading = state.lists.catalog.server_gone();
        for HeldPage { requester, .. } in reading.held_pages {
            self.answer_lost(Some(&requester), &end.cause);
        }
        self.release_held_calls(&mut state, reading.held_calls);
        state.calls.pending.mark_lost_listens();
        // Collected first: the end of a call sends the next one in line, which is for the next
        // server and not lost.
        let lost = state.calls.pending.iter().filter(|(_, one)| !one.survives_restart());
        let lost: Vec<Id> = lost.map(|(id, _)| id.clone()).collect();
        for id in lost {
            let Some(pending) = state.calls.pending.remove(&id) else { continue };
            self.lost_request(&mut state, pending, &end.cause, !end.during_start);
        }
    }

    /// Tells the requester that no answer will come. `reached`: the server may have begun with the
    /// request.
    pub(in crate::relay) fn lost_request(
        &self,
        state: &mut State,
        pending: PendingRequest,
        cause: &str,
        reached: bool,
    ) {
        match pending.kind {
            RequestKind::Call(call) => {
                self.call_lost(state, *call, pending.requester, cause, reached);
            }
            RequestKind::List { repeat, .. } => {
                if let Some(slot) = repeat {
                    state.deadlines.remove(slot);
                }
                self.answer_lost(pending.requester.as_ref(), cause);
            }
            // The names are made from the pages that were read.
            RequestKind::ToolsPage if state.lists.catalog.is_reading() => {
                self.tools_page(state, None);
            }
            RequestKind::ToolsPage | RequestKind::Restart(_) => {}
            RequestKind::Initialize
            | RequestKind::Discover
            | RequestKind::Listen { .. }
            | RequestKind::Other => self.answer_lost(pending.requester.as_ref(), cause),
        }
    }

    fn answer_lost(&self, requester: Option<&Requester>, cause: &str) {
        if let Some(requester) = requester {
            self.answer_error(requester, INTERNAL_ERROR, cause);
        }
    }

    /// A message of the server above `max_message` was dropped. If it was an answer, its request
    /// fails; all else goes on.
    pub(in crate::relay) fn server_too_long(&self, head: &[u8], tail: &[u8], length: u64) {
        warn!(bytes = length, "dropped a message of the server that is above max_message");
        let Some(raw) = id_at_an_end(head, tail).filter(|_| !is_request(head)) else { return };
        let Some(id) = Id::parse(&raw) else { return };
        let mut state = self.state();
        if let Some(pending) = state.calls.pending.remove(&id) {
            let limit = self.config.max_message;
            let cause = wording::too_long("The server's answer", length, limit);
            self.lost_request(&mut state, pending, &cause, true);
        }
    }
}
