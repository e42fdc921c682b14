//! The life of a `tools/call`, as long as somebody waits for it; from then on see
//! `detach.rs`.
//!
//! ```text
//!  attached ──(answer in time)──► answered
//!     │
//!     ├──(budget ends: handle)──┐
//!     ├──(client gave up)───────┤
//!     ▼                         ▼
//!  cancelled upstream        detached = a job ──► its end in the registry
//! ```

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::config::{Duplicates, ToolPolicy};
use crate::jobs::handle::{failure, repeatable};
use crate::jobs::job::{Job, Outcome};
use crate::mcp::meta::{MetaEdit, edit_meta};
use crate::mcp::params::Params;
use crate::rpc::id::Id;
use crate::rpc::lines::keep;
use crate::rpc::splice::Edits;
use crate::rpc::string::{quoted, string};
use crate::upstream::Headers;

use super::client::Client;
use super::deadlines::{Due, Slot};
use super::lanes::Place;
use super::pending::name_token;
use super::pending::{Asker, Pending, Token, What};
use super::session::{Session, State};
use crate::mcp::compose::result_line;
use crate::mcp::error_code::HEADER_MISMATCH;
use crate::rpc::message::Message;

/// With a budget of zero a refusal that the server gives at once still reaches the caller (§4.1).
const AT_ONCE: Duration = Duration::from_millis(250);
/// The longest member of progress that is kept with a job, in bytes.
const PROGRESS: usize = 1024;
/// Policies remembered by tool; names come from the client, so there must be a bound.
const POLICIES: usize = 1024;
/// Names above this are looked up each time.
const LONG_NAME: usize = 256;

/// A call that the server has, or that waits for its turn.
pub struct Call {
    pub tool: Arc<str>,
    pub policy: Arc<ToolPolicy>,
    pub client: Arc<Client>,
    /// when the request arrived
    pub received: Instant,
    /// the raw `params`, as the client wrote them
    pub(super) params: Bytes,
    /// what goes with it over HTTP
    pub(super) headers: Headers,
    pub(super) deadline: Option<Slot>,
    /// the message itself while the call waits in line
    pub(super) waiting: Option<Bytes>,
    /// its place there, where its tool has a line
    pub(super) place: Option<Place>,
    /// the last progress, raw JSON
    pub(super) progress: Option<Box<str>>,
    /// set once nobody waits for the answer any more
    pub job: Option<Arc<Job>>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Call({})", self.tool)
    }
}

impl Call {
    pub fn is_in_line(&self) -> bool {
        self.waiting.is_some()
    }

    /// Notes progress of the server, without its token.
    pub fn progress(&mut self, params: &Params) {
        let known = ["progress", "total", "message"];
        let members = known.iter().filter_map(|key| Some((key, bounded(params.get(key)?)?)));
        let members: Vec<_> = members.map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let progress: Box<str> = format!("{{{}}}", members.join(",")).into();
        match &self.job {
            Some(job) => job.set_progress(progress),
            None => self.progress = Some(progress),
        }
    }
}

#[cfg(test)]
impl Call {
    /// A call that nobody has sent.
    pub(super) fn for_test(params: &str, client: Arc<Client>, policy: ToolPolicy) -> Self {
        Call {
            tool: "t".into(),
            policy: Arc::new(policy),
            client,
            received: Instant::now(),
            params: Bytes::copy_from_slice(params.as_bytes()),
            headers: None,
            deadline: None,
            waiting: None,
            place: None,
            progress: None,
            job: None,
        }
    }
}

impl Session {
    /// A `tools/call` of the client.
    pub(super) fn call(
        self: &Arc<Self>,
        mut state: MutexGuard<State>,
        message: &Message,
        params: &Params,
        mut asker: Asker,
    ) {
        let received = asker.received;
        let name = params.text("name").unwrap_or_default();
        if let Some(tool) = state.catalog.ours(&name) {
            if state.catalog.must_ask() {
                state.catalog.hold_call(asker, keep(message.line));
                return self.read_catalog(&mut state);
            }
            return self.own_call(state, tool, params, asker);
        }
        if state.catalog.must_ask() {
            self.read_catalog(&mut state);
        }
        if state.catalog.is_reading() && self.needs_catalog(&state.client) {
            return state.catalog.hold_call(asker, keep(message.line));
        }
        if let Err(problem) = self.mirror_params(&state, &mut asker, &name, params) {
            return self.answer_error(&asker, HEADER_MISMATCH, &problem);
        }
        let (tool, policy) = self.policy_of(&mut state, &name);
        let budget = self.budget_of(&state, &policy, params);
        if let Some(raw) = message.envelope.params
            && let Some(job) = self.joined(&policy, &tool, &asker.headers, raw)
        {
            // A tool that is never deferred waits for the end of the job, which comes by then.
            let longest = policy.max_runtime;
            let until = received + budget.map_or(longest, |budget| budget.min(longest));
            return self.join(state, job, params, asker, until);
        }
        let call = Call {
            params: message.envelope.params.map_or(Bytes::from_static(b"{}"), |raw| {
                keep(&message.line.slice_ref(raw.as_bytes()))
            }),
            tool,
            policy,
            client: state.client.clone(),
            received,
            headers: asker.headers.clone(),
            deadline: None,
            waiting: None,
            place: None,
            progress: None,
            job: None,
        };
        self.attach(&mut state, message, params, asker, call, budget);
    }

    /// §3 "Which budget holds"; `None`: the call is never deferred.
    fn budget_of(&self, state: &State, policy: &ToolPolicy, params: &Params) -> Option<Duration> {
        // A task is not ours to defer.
        if params.get("task").is_some() {
            return None;
        }
        let client = &state.client;
        let learned = self.patience.limit(&self.caller, client);
        let (budget, _) = self.config.policy.budget(policy, &client.policy, params.wish(), learned);
        Some(at_least(budget.duration()?))
    }

    /// Sends a call to the server, or puts it in line.
    fn attach(
        &self,
        state: &mut State,
        message: &Message,
        params: &Params,
        asker: Asker,
        mut call: Call,
        budget: Option<Duration>,
    ) {
        let mut edits = Edits::new();
        let inside = state.pending.inside_id(&asker.key);
        let renamed = inside != asker.key;
        message.go_by(&inside, &mut edits);
        let token = self.call_edits(state, message, params, &call.policy, &mut edits);
        let out = message.edited(edits);
        call.deadline = budget.map(|budget| {
            let at = call.received + budget.min(call.policy.max_runtime);
            self.add_deadline(state, at, Due::Call(inside.clone()))
        });
        self.dispatch(state, inside, (Some(asker), renamed, token), call, out);
    }

    /// The call goes to the server, or waits for its turn.
    pub(super) fn dispatch(
        &self,
        state: &mut State,
        inside: Id,
        (asker, renamed, token): (Option<Asker>, bool, Option<Token>),
        mut call: Call,
        out: Bytes,
    ) {
        let may_go = self.enter_lane(&mut call, &inside);
        call.waiting = (!may_go).then(|| keep(&out));
        let headers = call.headers.clone();
        let what = What::Call(Box::new(call));
        state.pending.insert(inside.clone(), Pending { asker, renamed, token, what });
        if may_go && let Err(cause) = self.to_server(state, &out, &headers) {
            self.refuse(state, &inside, &cause);
        }
    }

    /// §1.1.4: takes the caller's wish out, names the progress token or puts one in.
    fn call_edits(
        &self,
        state: &mut State,
        message: &Message,
        params: &Params,
        policy: &ToolPolicy,
        edits: &mut Edits,
    ) -> Option<Token> {
        let mut change = MetaEdit { drop_answer_within: params.has_wish(), token: None };
        let own;
        let token = match params.progress_token() {
            Some(raw) => Some(name_token(state, message, raw, edits)),
            None if policy.ask_progress => {
                let inside = state.pending.own_id();
                own = inside.to_json();
                change.token = Some(&own);
                Some(Token { inside, outside: None })
            }
            None => None,
        };
        if change.drop_answer_within || change.token.is_some() {
            edit_meta(edits, message.text, &message.envelope, &change);
        }
        token
    }

    fn policy_of(&self, state: &mut State, name: &str) -> (Arc<str>, Arc<ToolPolicy>) {
        if let Some((tool, policy)) = state.policies.get_key_value(name) {
            return (tool.clone(), policy.clone());
        }
        let (tool, policy): (Arc<str>, _) = (name.into(), Arc::new(self.config.policy.tool(name)));
        if name.len() <= LONG_NAME {
            if state.policies.len() >= POLICIES {
                state.policies.clear();
            }
            state.policies.insert(tool.clone(), policy.clone());
        }
        (tool, policy)
    }

    /// The job of an equal call, if there is one to join (§7).
    fn joined(
        &self,
        policy: &ToolPolicy,
        tool: &str,
        headers: &Headers,
        params: &str,
    ) -> Option<Arc<Job>> {
        if policy.duplicates == Duplicates::Run || !self.registry.may_join(tool) {
            return None;
        }
        self.registry.join(&self.fingerprint(headers, params)?)
    }

    /// The server's answer: to the client that waits, or into the job.
    pub(super) fn call_answered(
        &self,
        state: &mut State,
        call: Call,
        mut asker: Option<Asker>,
        message: &Message,
    ) {
        if self.missed_headers(&call, message)
            && let Some(asker) = asker.take_if(|asker| !asker.refused)
        {
            self.call_closed(state, &call);
            return self.call_again(state, &call, asker);
        }
        if message.envelope.result.is_some() {
            self.registry.past_runs.record(&call.tool, call.received.elapsed());
        }
        if let Some(job) = call.job.clone() {
            let outcome = outcome_of(message).copied();
            if let Outcome::Result(question) = &outcome
                && call.asks_for_input(message.envelope.result)
            {
                self.call_closed(state, &call);
                return self.park(state, call, &job, question.clone());
            }
            self.registry.finish(&job, outcome);
        }
        self.call_closed(state, &call);
        self.pass_answer(asker.as_ref(), message);
        if let Some(asker) = asker {
            self.note_delivery(state, &asker, call, message);
        }
    }

    /// No answer will come. `reached`: the server may have begun with it (§7).
    pub(super) fn call_lost(
        &self,
        state: &mut State,
        call: Call,
        asker: Option<Asker>,
        cause: &str,
        reached: bool,
    ) {
        let cause = cause.trim_end_matches('.');
        let text = match reached {
            true => {
                format!("outcome unknown: check before you repeat it. What happened: {cause}.",)
            }
            false => format!("{} was not started: {cause}.", call.tool),
        };
        if let Some(asker) = asker {
            let mark = match reached {
                true => repeatable(state.catalog.repeatable(&call.tool)),
                false => "It may be called again.",
            };
            let result = failure(call.client.is_modern(), &format!("{text} {mark}"));
            self.answer(&asker, &result_line(&asker.id, &result));
        }
        if let Some(job) = &call.job {
            self.registry.finish(job, Outcome::Lost(text.into()));
        }
        self.call_closed(state, &call);
    }

    /// A call that was taken back: it leaves the line or frees its place.
    pub(super) fn call_over(&self, state: &mut State, call: &Call) {
        if call.is_in_line() {
            if let Some(slot) = call.deadline {
                state.deadlines.remove(slot);
            }
            self.quit_lane(call);
            self.note_answered();
        } else {
            self.call_closed(state, call);
        }
    }

    /// What every call that has left the server leaves behind.
    fn call_closed(&self, state: &mut State, call: &Call) {
        self.note_answered();
        if let Some(slot) = call.deadline {
            state.deadlines.remove(slot);
        }
        if !call.is_in_line() && call.policy.max_concurrent > 0 {
            self.leave_lane(state, &call.tool);
        }
    }
}

/// A member of a progress notification, short enough to be kept with a job.
fn bounded(raw: &str) -> Option<Cow<'_, str>> {
    if raw.len() <= PROGRESS {
        return Some(Cow::Borrowed(raw));
    }
    let text = string(raw)?;
    let mut end = PROGRESS / 2;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Some(Cow::Owned(quoted(&format!("{}…", &text[..end]))))
}

/// The time that a budget stands for.
pub(super) fn at_least(budget: Duration) -> Duration {
    if budget.is_zero() { AT_ONCE } else { budget }
}

/// What an answer of the server means for a job, as a part of the message.
pub(super) fn outcome_of(message: &Message) -> Outcome {
    let part = |raw: &str| message.line.slice_ref(raw.as_bytes());
    match (message.envelope.result, message.envelope.error) {
        (Some(result), _) => Outcome::Result(part(result)),
        (None, Some(error)) => Outcome::Error(part(error)),
        (None, None) => Outcome::Lost("the server's answer has neither result nor error.".into()),
    }
}
