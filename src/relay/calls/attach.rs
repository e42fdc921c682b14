//! A `tools/call` arrives: it is a call of our tools, joins the job of an equal call, waits in
//! line, or goes to the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::config::{Duplicates, ToolPolicy};
use crate::jobs::live::Job;
use crate::jobs::store::StoreFuture;
use crate::mcp::error_code::HEADER_MISMATCH;
use crate::mcp::meta::{MetaEdit, edit_meta};
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::relay::session::Locked;
use crate::relay::session::Session;
use crate::relay::state::calls::{Call, PendingRequest, ProgressToken, RequestKind};
use crate::relay::state::requester::Requester;
use crate::relay::state::{Due, State};
use crate::rpc::id::Id;
use crate::rpc::lines::compact;
use crate::rpc::message::Message;
use crate::rpc::splice::Edits;
use crate::upstream::{Headers, Outgoing};

/// Tool, policy and budget of a call.
struct CallRules {
    tool: Arc<str>,
    policy: Arc<ToolPolicy>,
    /// `None`: the call is never deferred
    budget: Option<Duration>,
}

impl Session {
    /// A `tools/call` of the client.
    pub(in crate::relay) fn call(
        self: &Arc<Self>,
        mut state: Locked,
        message: &Message,
        params: &Params,
        mut requester: Requester,
    ) {
        let name = params.text("name").unwrap_or_default();
        if let Some(tool) = state.lists.catalog.job_tool_named(&name) {
            if state.lists.catalog.must_ask() {
                state.lists.catalog.hold_call(requester, compact(message.line));
                return self.read_tools(&mut state);
            }
            return self.call_job_tool(state, tool, params, requester);
        }
        if state.lists.catalog.must_ask() {
            self.read_tools(&mut state);
        }
        if state.lists.catalog.is_reading() && self.needs_tools(&state.client.info) {
            return state.lists.catalog.hold_call(requester, compact(message.line));
        }
        if let Err(problem) = self.apply_param_headers(&state, &mut requester, &name, params) {
            return self.answer_error(&requester, HEADER_MISMATCH, &problem);
        }
        let (tool, policy) = state.calls.policies.get(&self.config.policy, &name);
        let budget = self.budget_of_call(&state.client.info, &policy, params);
        let rules = CallRules { tool, policy, budget };
        match self.equal_job(&rules, &requester.headers, message.envelope.params) {
            Some(found) => {
                drop(state);
                self.join_or_run(found, rules, compact(message.line), requester);
            }
            None => self.run(&mut state, rules, message, params, requester),
        }
    }

    /// The job of an equal call (§7); `None` where it is clear at once that there is none.
    fn equal_job(
        &self,
        rules: &CallRules,
        headers: &Headers,
        params: Option<&str>,
    ) -> Option<StoreFuture<Option<Job>>> {
        if rules.policy.duplicates == Duplicates::Run || !self.registry.may_join(&rules.tool) {
            return None;
        }
        self.registry.join(&self.fingerprint(headers, params?)?)
    }

    /// §7: the call joins the job that was found; where the store has none after all, it runs.
    fn join_or_run(
        self: &Arc<Self>,
        found: StoreFuture<Option<Job>>,
        rules: CallRules,
        line: Bytes,
        requester: Requester,
    ) {
        let session = self.clone();
        self.registry.when(found, move |found| {
            let message = Message::parse(&line);
            let params = Params::parse(message.envelope.params);
            match found {
                Ok(Some(job)) => {
                    // A call that is never deferred waits for the end of the job, which comes
                    // within `max_runtime`.
                    let longest = rules.policy.max_runtime;
                    let wait = rules.budget.map_or(longest, |budget| budget.min(longest));
                    let until = requester.received + wait;
                    session.join(session.state(), job, &params, requester, until);
                }
                Ok(None) | Err(_) => {
                    session.run(&mut session.state(), rules, &message, &params, requester);
                }
            }
        });
    }

    /// Makes the message for the server, and sends it or puts it in line.
    fn run(
        &self,
        state: &mut State,
        CallRules { tool, policy, budget }: CallRules,
        message: &Message,
        params: &Params,
        requester: Requester,
    ) {
        let received = requester.received;
        let mut edits = Edits::new();
        let upstream_id = state.calls.pending.upstream_id_for(&requester.key);
        let renamed = upstream_id != requester.key;
        message.set_id(&upstream_id, &mut edits);
        let token = call_edits(state, message, params, &policy, &mut edits);
        let (out, headers) = (message.edited(edits), requester.headers.clone());
        let (id, method) = (upstream_id.clone(), Some(Method::CallTool));
        let out = Outgoing::request(out, headers, id, method, &message.envelope, params);
        let deadline = budget.map(|budget| {
            let at = received + budget.min(policy.max_runtime);
            self.add_deadline(state, at, Due::Call(upstream_id.clone()))
        });
        let call = Call {
            params: message.envelope.params.map_or(Bytes::from_static(b"{}"), |raw| {
                compact(&message.line.slice_ref(raw.as_bytes()))
            }),
            tool,
            policy,
            client: state.client.info.clone(),
            received,
            headers: requester.headers.clone(),
            deadline,
            queued: None,
            place: None,
            progress: None,
            job: None,
        };
        self.dispatch(state, upstream_id, (Some(requester), renamed, token), call, out);
    }

    /// Sends a call to the server, or puts it in line. `requester`, `renamed` and `token` are those
    /// of its [`PendingRequest`].
    pub(super) fn dispatch(
        &self,
        state: &mut State,
        upstream_id: Id,
        (requester, renamed, token): (Option<Requester>, bool, Option<ProgressToken>),
        mut call: Call,
        out: Outgoing,
    ) {
        let may_go = self.enter_queue(&mut call, &upstream_id);
        call.queued = (!may_go).then(|| out.clone().kept());
        let kind = RequestKind::Call(Box::new(call));
        let pending = PendingRequest { requester, renamed, token, kind };
        state.calls.pending.insert(upstream_id.clone(), pending);
        if may_go && let Err(cause) = self.send_to_server(state, out) {
            self.fail_unsent(state, &upstream_id, &cause);
        }
    }
}

/// §1.1.4: takes `unhurry/answer_within` out, and replaces the progress token or puts one in.
fn call_edits(
    state: &mut State,
    message: &Message,
    params: &Params,
    policy: &ToolPolicy,
    edits: &mut Edits,
) -> Option<ProgressToken> {
    let mut change = MetaEdit { drop_answer_within: params.has_answer_within(), token: None };
    let raw_token;
    let token = match params.progress_token() {
        Some(raw) => state.calls.pending.map_token(message.text, raw, edits),
        None if policy.ask_progress => {
            let upstream = state.calls.pending.new_id();
            raw_token = upstream.to_json();
            change.token = Some(&raw_token);
            Some(ProgressToken { upstream, downstream: None })
        }
        None => None,
    };
    if change.drop_answer_within || change.token.is_some() {
        edit_meta(edits, message.text, &message.envelope, &change);
    }
    token
}
