//! A call becomes a job: its budget is over, or its client gave up.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tracing::{info, warn};

use crate::config::Duplicates;
use crate::jobs::handle::handle;
use crate::jobs::live::{Job, LiveJob, Owner};
use crate::jobs::record::Outcome;
use crate::jobs::registry::{CreatedJob, NewJob};
use crate::jobs::wording::{self, seconds};
use crate::mcp::compose::result_line;
use crate::relay::session::Session;
use crate::relay::state::calls::{Call, PendingRequest, RequestKind};
use crate::relay::state::{Due, State};
use crate::rpc::id::Id;
use crate::rpc::message::text_of;
use crate::rpc::object::Members;

/// The longest form of the arguments that is shown and stored, in bytes (§10).
const SHORT: usize = 120;

impl Session {
    /// The budget of a call is over, or the `max_runtime` of a job.
    pub(in crate::relay) fn call_due(&self, state: &mut State, id: &Id) {
        let Some(call) = state.calls.pending.call_mut(id) else { return };
        call.deadline = None;
        match call.job.clone() {
            Some(job) => self.overrun(state, &job),
            None => self.send_handle(state, id),
        }
    }

    /// Makes a job of the call, and sends the handle once the job is stored.
    fn send_handle(&self, state: &mut State, id: &Id) {
        let Some(CreatedJob { job, stored }) = self.create_job(state, id) else { return };
        let Some(requester) = state.calls.pending.take_requester(id) else { return };
        state.calls.mark_answered_by_proxy(&requester);
        let view = self.view(state);
        self.once_stored(state, stored, move |session| {
            let Job { record, .. } = &Job::live(&job);
            info!(job = record.short_id(), tool = &*record.tool, "job started: the handle is out");
            let handle = handle(&view, &session.registry, &Job::live(&job), false);
            session.answer(&requester, &result_line(&requester.id, &handle));
        });
    }

    /// The client gave up: the call goes on as a job. `false`: there is no room for another job.
    pub(super) fn detach(&self, state: &mut State, id: &Id) -> bool {
        let Some(CreatedJob { job, stored }) = self.create_job(state, id) else { return false };
        if let Some(requester) = state.calls.pending.take_requester(id) {
            state.calls.mark_answered_by_proxy(&requester);
        }
        info!(
            job = job.record.short_id(),
            tool = &*job.record.tool,
            "job started: the client gave up after {}",
            seconds(job.elapsed())
        );
        // Nobody waits for the store: no handle is sent.
        self.once_stored(state, stored, |_| {});
        true
    }

    /// Makes a job of a call; `None` where there is no room for another one.
    fn create_job(&self, state: &mut State, id: &Id) -> Option<CreatedJob> {
        let call = state.calls.pending.call(id)?;
        let created = match self.registry.create(self.new_job(state, call)) {
            Ok(created) => created,
            Err(full) => {
                warn!(
                    tool = &*call.tool,
                    "no room for another job ({full}): the call waits for its answer, as without \
                     the proxy"
                );
                return None;
            }
        };
        let call = state.calls.pending.call_mut(id)?;
        if let Some(progress) = call.progress.take() {
            created.job.set_progress(progress);
        }
        created.job.set_upstream_id(id.clone());
        call.job = Some(created.job.clone());
        if !call.client.is_modern() {
            // Only a call to a modern server may be sent again, with the answers to its question.
            call.params = Bytes::new();
        }
        let at = call.received + call.policy.max_runtime;
        if let Some(slot) = call.deadline.take() {
            state.deadlines.remove(slot);
        }
        let slot = self.add_deadline(state, at, Due::Call(id.clone()));
        state.calls.pending.call_mut(id)?.deadline = Some(slot);
        Some(created)
    }

    /// What the registry has to know of a call that becomes a job.
    pub(super) fn new_job(&self, state: &State, call: &Call) -> NewJob {
        let params = text_of(&call.params);
        let join = call.policy.duplicates == Duplicates::Join;
        let owner: Weak<dyn Owner> = self.weak_self.clone();
        NewJob {
            caller: self.caller.clone(),
            tool: call.tool.clone(),
            arguments: short_arguments(params),
            fingerprint: join.then(|| self.fingerprint(&call.headers, params)).flatten(),
            started: call.received,
            policy: call.policy.clone(),
            repeatable: state.lists.catalog.repeatable(&call.tool),
            place: call.place.clone(),
            owner,
        }
    }

    /// A job runs for longer than `max_runtime`: its call is cancelled, and it fails (§3).
    fn overrun(&self, state: &mut State, job: &Arc<LiveJob>) {
        let limit = job.record.terms.max_runtime;
        match job.place() {
            0 => self.registry.finish(job, Outcome::Lost(wording::overran(limit).into())),
            _ => self.registry.never_began(job, wording::never_began(limit)),
        };
        self.cancel_job_call(state, job, &format!("longer than max_runtime ({})", seconds(limit)));
    }

    /// Cancels the call of a job at the server.
    fn cancel_job_call(&self, state: &mut State, job: &LiveJob, reason: &str) {
        let Some(id) = job.upstream_id() else { return };
        let is_its_call = |pending: &PendingRequest| match &pending.kind {
            RequestKind::Call(call) => {
                call.job.as_ref().is_some_and(|own| own.record.id == job.record.id)
            }
            _ => false,
        };
        if state.calls.pending.get(&id).is_some_and(is_its_call) {
            self.cancel_pending(state, &id, reason);
        }
    }
}

impl Owner for Session {
    fn cancel(&self, job: &LiveJob) {
        let mut state = self.state();
        // The server has answered a parked call, so there is nothing to cancel.
        if self.unpark(&mut state, job).is_none() {
            self.cancel_job_call(&mut state, job, "cancelled with job_cancel");
        }
    }
}

/// The arguments as they may be shown and stored: at most 120 bytes (§10).
fn short_arguments(params: &str) -> Box<str> {
    let members = Members::parse(params).unwrap_or_default();
    let raw = members.get("arguments").unwrap_or("{}");
    if raw.len() <= SHORT {
        return raw.into();
    }
    let end = raw.floor_char_boundary(SHORT - '…'.len_utf8());
    format!("{}…", &raw[..end]).into()
}
