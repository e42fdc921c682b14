//! Background calls whose server needs input (contract §8.4).
//!
//! A modern server that needs input ends its call with `input_required` and expects the same call
//! with the answers. In the background there is nobody to ask, so the call is parked; `job_get`
//! shows the question, and the `job_get` that brings the answers sends the call again.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use tracing::info;
use uuid::Uuid;

use crate::jobs::live::LiveJob;
use crate::jobs::record::Outcome;
use crate::jobs::wording;
use crate::mcp::compose::request_line;
use crate::mcp::meta::{MetaEdit, edit_meta};
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::relay::session::Session;
use crate::relay::state::calls::{Call, ProgressToken};
use crate::relay::state::{Due, State};
use crate::rpc::id::Id;
use crate::rpc::message::{Envelope, text_of};
use crate::rpc::object::Members;
use crate::rpc::splice::Edits;
use crate::upstream::Outgoing;

/// The members of `params` that bring the answers.
const MEMBERS: [&str; 2] = ["inputResponses", "requestState"];

/// What a `job_get` brings for a server that waits for input: the values of [`MEMBERS`], raw JSON.
pub(crate) struct InputAnswers([Option<Box<str>>; 2]);

impl InputAnswers {
    /// From the `params` of the `job_get`; `None` where it brings no answers.
    pub(crate) fn of(params: &Params) -> Option<Self> {
        let answers = MEMBERS.map(|key| params.get(key).map(Into::into));
        answers.iter().any(Option::is_some).then_some(InputAnswers(answers))
    }
}

impl Session {
    /// Keeps a call until its question is answered, within its `max_runtime`.
    pub(super) fn park(
        &self,
        state: &mut State,
        mut call: Call,
        job: &Arc<LiveJob>,
        question: Bytes,
    ) {
        info!(job = job.record.short_id(), tool = &*call.tool, "job waits for input");
        let at = call.received + call.policy.max_runtime;
        call.deadline = Some(self.add_deadline(state, at, Due::Input(job.record.id)));
        state.calls.parked.insert(job.record.id, call);
        job.set_question(Some(question));
    }

    /// Takes out a parked call and its deadline.
    pub(super) fn unpark(&self, state: &mut State, job: &LiveJob) -> Option<Call> {
        let mut call = state.calls.parked.remove(&job.record.id)?;
        if let Some(slot) = call.deadline.take() {
            state.deadlines.remove(slot);
        }
        Some(call)
    }

    /// Nobody has answered the question within `max_runtime`: the job fails.
    pub(in crate::relay) fn input_due(&self, state: &mut State, id: &Uuid) {
        let Some(job) = state.calls.parked.remove(id).and_then(|call| call.job) else { return };
        let cause = wording::nobody_answered(job.record.terms.max_runtime);
        self.registry.finish(&job, Outcome::Lost(cause.into()));
    }

    /// A `job_get` brings answers: the call goes to the server again, with them.
    pub(super) fn take_answers(
        &self,
        state: &mut State,
        job: &Arc<LiveJob>,
        answers: &InputAnswers,
    ) {
        let Some(mut call) = self.unpark(state, job) else { return };
        let id = state.calls.pending.new_id();
        let token = (Params::parse(Some(text_of(&call.params))).progress_token().is_some()
            || call.policy.ask_progress)
            .then(|| ProgressToken { upstream: state.calls.pending.new_id(), downstream: None });
        let line = repeated_call(&id, &call, answers, token.as_ref());
        job.set_upstream_id(id.clone());
        job.set_question(None);
        let at = (call.received + call.policy.max_runtime).max(Instant::now());
        call.deadline = Some(self.add_deadline(state, at, Due::Call(id.clone())));
        let out = Outgoing::parse(line, call.headers.clone());
        self.dispatch(state, id, (None, false, token), call, out);
    }
}

/// The original request under a new id, with the answers in place of earlier ones.
fn repeated_call(
    id: &Id,
    call: &Call,
    answers: &InputAnswers,
    token: Option<&ProgressToken>,
) -> Bytes {
    let line = request_line(id, Method::CallTool, Some(text_of(&call.params)));
    let text = text_of(&line);
    let envelope = Envelope::parse(text).unwrap_or_default();
    let Some(params) = envelope.params else { return line };
    let mut edits = Edits::new();
    let token = token.map(|token| token.upstream.to_json());
    let change = MetaEdit { drop_answer_within: true, token: token.as_deref() };
    edit_meta(&mut edits, text, &envelope, &change);
    let InputAnswers([responses, request_state]) = answers;
    let changes = [(MEMBERS[0], responses.as_deref()), (MEMBERS[1], request_state.as_deref())];
    if Members::parse(params).is_some_and(|members| members.get("_meta").is_none()) {
        // Without `_meta`, both edits would change `params`, and an object may be edited once only.
        // A modern request always has `_meta`.
        edits = Edits::new();
    }
    edits.edit_object(text, params, &changes);
    edits.apply(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::state::client::Client;

    #[test]
    fn a_call_is_asked_again_with_the_answers_and_nothing_else_changed_s8_4() {
        let config = crate::config::Overrides { command: vec!["x".into()], ..Default::default() };
        let policies = crate::config::Config::load(&config, &[]).unwrap().policy;
        let original = r#"{"name":"t","arguments":{"n":1.10},"requestState":"old","_meta":{"progressToken":7,"k":-0,"unhurry/answer_within":1}}"#;
        let call = Call::for_test(original, Client::unknown(&policies), policies.tool("t"));
        let answers = r#"{"name":"job_get","inputResponses":{"k1":{"action":"accept"}},"requestState":"new"}"#;
        let answers = InputAnswers::of(&Params::parse(Some(answers))).unwrap();
        let token = ProgressToken { upstream: Id::Number(9), downstream: None };
        let line = repeated_call(&Id::Number(5), &call, &answers, Some(&token));
        assert_eq!(
            text_of(&line),
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{"n":1.10},"requestState":"new","_meta":{"progressToken":9,"k":-0},"inputResponses":{"k1":{"action":"accept"}}}}"#
        );
        let fewer = Params::parse(Some(r#"{"inputResponses":{}}"#));
        let fewer = InputAnswers::of(&fewer).unwrap();
        let line = repeated_call(&Id::Number(6), &call, &fewer, None);
        assert!(!text_of(&line).contains("requestState"));
    }
}
