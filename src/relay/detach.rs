//! From call to job: the budget of a call ended, or its client gave up.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tracing::{info, warn};

use crate::config::Duplicates;
use crate::jobs::handle::{handle, seconds};
use crate::jobs::job::{Job, Origin, Outcome, Owner};
use crate::mcp::params::Params;
use crate::rpc::id::Id;
use crate::rpc::object::Members;
use crate::upstream::Outgoing;

use super::call::Call;
use super::catalog::Catalog;
use super::deadlines::Due;
use super::pending::{Pending, What};
use super::session::{Session, State};
use crate::mcp::compose::{cancelled_line, result_line};
use crate::rpc::message::text_of;

/// The short form of the arguments, in bytes (§10).
const SHORT: usize = 120;

impl Session {
    /// The budget of a call ended, or the longest time that a job may run.
    pub(super) fn call_due(&self, state: &mut State, id: &Id) {
        let Some(Pending { what: What::Call(call), .. }) = state.pending.get_mut(id) else {
            return;
        };
        call.deadline = None;
        match call.job.clone() {
            Some(job) => self.overrun(state, &job),
            None => self.hand_out(state, id),
        }
    }

    fn hand_out(&self, state: &mut State, id: &Id) {
        let Some(job) = self.make_job(state, id) else { return };
        let Some(asker) = state.pending.detach(id) else { return };
        state.part(&asker);
        let view = self.view(state);
        info!(job = job.short_id(), tool = &*job.origin.tool, "job started: the handle is out");
        let handle = handle(&view, &self.registry, &job, false);
        self.answer(&asker, &result_line(&asker.id, &handle));
    }

    /// The client gave up: the call goes on as a job. `false`: there is no room for one.
    pub(super) fn detach(&self, state: &mut State, id: &Id) -> bool {
        let Some(job) = self.make_job(state, id) else { return false };
        if let Some(asker) = state.pending.detach(id) {
            state.part(&asker);
        }
        info!(
            job = job.short_id(),
            tool = &*job.origin.tool,
            "job started: the client gave up after {}",
            seconds(job.elapsed())
        );
        true
    }

    fn make_job(&self, state: &mut State, id: &Id) -> Option<Arc<Job>> {
        let Some(Pending { what: What::Call(call), .. }) = state.pending.get_mut(id) else {
            return None;
        };
        let created = self.registry.create(self.origin(&state.catalog, call));
        let job = match created {
            Ok(job) => job,
            Err(full) => {
                warn!(
                    tool = &*call.tool,
                    "no room for another job ({full}): the call waits for its answer, as without \
                     the proxy"
                );
                return None;
            }
        };
        if let Some(progress) = call.progress.take() {
            job.set_progress(progress);
        }
        job.set_upstream_id(id.clone());
        call.job = Some(job.clone());
        if !call.client.is_modern() {
            // Only a modern server may want the call again, with answers to its question.
            call.params = Bytes::new();
        }
        let at = call.received + call.policy.max_runtime;
        let old = call.deadline.take();
        if let Some(slot) = old {
            state.deadlines.remove(slot);
        }
        let slot = self.add_deadline(state, at, Due::Call(id.clone()));
        if let Some(Pending { what: What::Call(call), .. }) = state.pending.get_mut(id) {
            call.deadline = Some(slot);
        }
        Some(job)
    }

    /// What is fixed when a call becomes a job.
    pub(super) fn origin(&self, catalog: &Catalog, call: &Call) -> Origin {
        let params = text_of(&call.params);
        let join = call.policy.duplicates == Duplicates::Join;
        let owner: Weak<dyn Owner> = self.me.clone();
        Origin {
            caller: self.caller.clone(),
            tool: call.tool.clone(),
            arguments: short_arguments(params),
            fingerprint: join.then(|| self.fingerprint(&call.headers, params)).flatten(),
            started: call.received,
            policy: call.policy.clone(),
            repeatable: catalog.repeatable(&call.tool),
            place: call.place.clone(),
            owner,
        }
    }

    /// A job is older than `max_runtime`: it is cancelled and fails (§3).
    fn overrun(&self, state: &mut State, job: &Arc<Job>) {
        let limit = seconds(job.origin.policy.max_runtime);
        let cause = match job.place() {
            0 => format!(
                "it ran longer than max_runtime ({limit}) and was cancelled. Outcome unknown: \
                 check before you repeat it."
            ),
            _ => format!("it waited in line longer than max_runtime ({limit}) and never began."),
        };
        self.registry.finish(job, Outcome::Lost(cause.into()));
        self.withdraw(state, job, &format!("longer than max_runtime ({limit})"));
    }

    /// Takes a job's call back from the server, by the means of its era. Its id stays taken for a
    /// while, since the server may answer all the same.
    fn withdraw(&self, state: &mut State, job: &Job, reason: &str) {
        let Some(id) = job.upstream_id() else { return };
        let is_its_call = |pending: &Pending| match &pending.what {
            What::Call(call) => call.job.as_ref().is_some_and(|own| own.id == job.id),
            _ => false,
        };
        if !state.pending.get(&id).is_some_and(is_its_call) {
            return;
        }
        self.take_back(state, &id, reason);
    }

    /// Takes a request back from the server, which may answer it all the same.
    pub(super) fn take_back(&self, state: &mut State, id: &Id, reason: &str) {
        let Some(pending) = state.pending.withdraw(id) else { return };
        let mut headers = pending.asker.and_then(|asker| asker.headers);
        if let What::Call(call) = pending.what {
            headers = call.headers.clone();
            let in_line = call.is_in_line();
            self.call_over(state, &call);
            if in_line {
                return;
            }
        }
        let line = cancelled_line(id, reason);
        let params = Params::default();
        self.upstream.send_if_up(Outgoing::cancelled(line, headers, id.clone(), &params));
    }
}

impl Owner for Session {
    fn cancel(&self, job: &Job) {
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
