//! From call to job: the budget of a call ended, or its client gave up.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tracing::{info, warn};

use crate::config::Duplicates;
use crate::jobs::handle::handle;
use crate::jobs::live::{Job, LiveJob, Owner};
use crate::jobs::record::Outcome;
use crate::jobs::registry::{Begun, Start};
use crate::jobs::wording::{self, seconds};
use crate::mcp::compose::result_line;
use crate::relay::session::Session;
use crate::relay::state::{Due, State};
use crate::rpc::id::Id;
use crate::rpc::message::text_of;
use crate::rpc::object::Members;

use super::call::Call;
use super::pending::{PendingRequest, RequestKind};

/// The short form of the arguments, in bytes (§10).
const SHORT: usize = 120;

impl Session {
    /// The budget of a call ended, or the longest time that a job may run.
    pub(in crate::relay) fn call_due(&self, state: &mut State, id: &Id) {
        let Some(call) = state.calls.pending.call_mut(id) else { return };
        call.deadline = None;
        match call.job.clone() {
            Some(job) => self.overrun(state, &job),
            None => self.hand_out(state, id),
        }
    }

    /// The client gets a handle, as soon as the job is stored.
    fn hand_out(&self, state: &mut State, id: &Id) {
        let Some(Begun { job, stored }) = self.make_job(state, id) else { return };
        let Some(requester) = state.calls.pending.detach(id) else { return };
        state.calls.part(&requester);
        let view = self.view(state);
        self.once_stored(state, stored, move |session| {
            let Job { record, .. } = &Job::live(&job);
            info!(job = record.short_id(), tool = &*record.tool, "job started: the handle is out");
            let handle = handle(&view, &session.registry, &Job::live(&job), false);
            session.answer(&requester, &result_line(&requester.id, &handle));
        });
    }

    /// The client gave up: the call goes on as a job. `false`: there is no room for one.
    pub(super) fn detach(&self, state: &mut State, id: &Id) -> bool {
        let Some(Begun { job, stored }) = self.make_job(state, id) else { return false };
        if let Some(requester) = state.calls.pending.detach(id) {
            state.calls.part(&requester);
        }
        info!(
            job = job.record.short_id(),
            tool = &*job.record.tool,
            "job started: the client gave up after {}",
            seconds(job.elapsed())
        );
        // Nobody is told of it.
        self.once_stored(state, stored, |_| {});
        true
    }

    fn make_job(&self, state: &mut State, id: &Id) -> Option<Begun> {
        let call = state.calls.pending.call(id)?;
        let begun = match self.registry.create(self.start_of(state, call)) {
            Ok(begun) => begun,
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
            begun.job.set_progress(progress);
        }
        begun.job.set_upstream_id(id.clone());
        call.job = Some(begun.job.clone());
        if !call.client.is_modern() {
            // Only a modern server may want the call again, with answers to its question.
            call.params = Bytes::new();
        }
        let at = call.received + call.policy.max_runtime;
        if let Some(slot) = call.deadline.take() {
            state.deadlines.remove(slot);
        }
        let slot = self.add_deadline(state, at, Due::Call(id.clone()));
        state.calls.pending.call_mut(id)?.deadline = Some(slot);
        Some(begun)
    }

    /// What is fixed when a call becomes a job.
    pub(super) fn start_of(&self, state: &State, call: &Call) -> Start {
        let params = text_of(&call.params);
        let join = call.policy.duplicates == Duplicates::Join;
        let owner: Weak<dyn Owner> = self.me.clone();
        Start {
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

    /// A job is older than `max_runtime`: it is cancelled and fails (§3).
    fn overrun(&self, state: &mut State, job: &Arc<LiveJob>) {
        let limit = job.record.terms.max_runtime;
        match job.place() {
            0 => self.registry.finish(job, Outcome::Lost(wording::overran(limit).into())),
            _ => self.registry.never_began(job, wording::never_began(limit)),
        };
        self.withdraw(state, job, &format!("longer than max_runtime ({})", seconds(limit)));
    }

    /// Takes a job's call back from the server, by the means of its era.
    fn withdraw(&self, state: &mut State, job: &LiveJob, reason: &str) {
        let Some(id) = job.upstream_id() else { return };
        let is_its_call = |pending: &PendingRequest| match &pending.kind {
            RequestKind::Call(call) => {
                call.job.as_ref().is_some_and(|own| own.record.id == job.record.id)
            }
            _ => false,
        };
        if state.calls.pending.get(&id).is_some_and(is_its_call) {
            self.take_back(state, &id, reason);
        }
    }
}

impl Owner for Session {
    fn cancel(&self, job: &LiveJob) {
        let mut state = self.state();
        // A parked call has been answered by the server: there is nothing to take back.
        if self.unpark(&mut state, job).is_none() {
            self.withdraw(&mut state, job, "cancelled with job_cancel");
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
    let mut end = SHORT - '…'.len_utf8();
    while !raw.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &raw[..end]).into()
}
