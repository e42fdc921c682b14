//! Calls of our own tools, `job_get` and `job_cancel` (contract §5). They are never sent to the
//! server.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::jobs::handle::{JobTool, View, error_result};
use crate::jobs::live::Job;
use crate::jobs::record::Outcome;
use crate::jobs::store::StoreError;
use crate::jobs::tools::{self, Form, GetArguments, LISTED};
use crate::jobs::wording;
use crate::mcp::compose::result_line;
use crate::mcp::params::Params;
use crate::relay::session::Locked;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::requester::Requester;

use super::input::InputAnswers;
use super::waiting::AnswerKind;
use super::waiting::Wait;

/// A `job_get` for one job.
struct Poll {
    requester: Requester,
    view: View,
    form: Form,
    /// how long it may wait
    wait: Duration,
    /// the caller's progress token, raw JSON
    token: Option<Box<str>>,
    /// answers for a server that needs input
    answers: Option<InputAnswers>,
}

impl Session {
    /// What the answers to this client depend on.
    pub(super) fn view(&self, state: &State) -> View {
        let client = &state.client.info;
        let limit = client.wait_limit();
        let learned = self.time_outs.limit(&self.caller, client);
        View {
            names: state.lists.catalog.names(),
            structured: client.knows_structured_content(),
            modern: client.is_modern(),
            wait_limit: learned.map_or(limit, |learned| learned.min(limit)),
            page_bytes: client.policy.page_bytes,
        }
    }

    /// A call of one of our tools.
    pub(super) fn call_job_tool(
        self: &Arc<Self>,
        state: Locked,
        tool: JobTool,
        params: &Params,
        requester: Requester,
    ) {
        let view = self.view(&state);
        // The store may take its time, and what follows locks the session again.
        drop(state);
        match tool {
            JobTool::Get => self.job_get(view, params, requester),
            JobTool::Cancel => self.job_cancel(view, params, requester),
        }
    }

    fn job_get(self: &Arc<Self>, view: View, params: &Params, requester: Requester) {
        let arguments = match GetArguments::parse(params.get("arguments")) {
            Ok(arguments) => arguments,
            Err(problem) => return self.answer_problem(&view, &requester, &problem),
        };
        let wait = tools::wait_for(&view, &arguments);
        let GetArguments { job_id, page, envelope, .. } = arguments;
        let Some(id) = job_id.map(|id| id.into_owned()) else {
            return self.list_jobs(view, requester);
        };
        let poll = Poll {
            requester,
            view,
            form: Form { page, envelope, joined: false },
            wait,
            token: params.progress_token().map(Into::into),
            answers: InputAnswers::of(params),
        };
        let session = self.clone();
        self.registry.when(self.registry.get(&self.caller, &id), move |found| match found {
            Ok(Some(job)) => session.poll(job, poll),
            Ok(None) => session.unknown_job(poll.view, poll.requester, id),
            Err(error) => session.answer_no_store(&poll.view, &poll.requester, &error),
        });
    }

    fn poll(self: &Arc<Self>, job: Job, poll: Poll) {
        let Poll { requester, view, form, wait, token, answers } = poll;
        let mut state = self.state();
        if let (Some(live), Some(answers)) = (job.running(), answers) {
            self.take_answers(&mut state, live, &answers);
        }
        let until = poll_until(&view, wait, &job);
        self.wait(state, Wait { requester, job, until, token, view, kind: AnswerKind::Job(form) });
    }

    fn job_cancel(self: &Arc<Self>, view: View, params: &Params, requester: Requester) {
        let id = match tools::cancel_id(params.get("arguments")) {
            Ok(id) => id.into_owned(),
            Err(problem) => return self.answer_problem(&view, &requester, &problem),
        };
        let session = self.clone();
        self.registry.when(self.registry.get(&self.caller, &id), move |found| match found {
            Ok(Some(job)) => session.cancel_job(view, job, requester),
            Ok(None) => session.unknown_job(view, requester, id),
            Err(error) => session.answer_no_store(&view, &requester, &error),
        });
    }

    /// Stops a job; the answer says how it ended, and is sent once that is stored.
    fn cancel_job(self: &Arc<Self>, view: View, job: Job, requester: Requester) {
        if let Some(live) = job.running()
            && self.registry.finish(live, Outcome::Cancelled)
            && let Some(owner) = live.owner()
        {
            owner.cancel(live);
        }
        let job = job.now();
        let until = Instant::now() + view.wait_limit;
        let (token, kind) = (None, AnswerKind::Cancellation);
        self.wait(self.state(), Wait { requester, job, until, token, view, kind });
    }

    fn list_jobs(self: &Arc<Self>, view: View, requester: Requester) {
        self.with_own_jobs(view, requester, tools::list);
    }

    fn unknown_job(self: &Arc<Self>, view: View, requester: Requester, id: String) {
        self.with_own_jobs(view, requester, move |view, jobs| tools::unknown(view, &id, jobs));
    }

    /// Answers with what `render` makes of the caller's jobs.
    fn with_own_jobs(
        self: &Arc<Self>,
        view: View,
        requester: Requester,
        render: impl FnOnce(&View, &[Job]) -> String + Send + 'static,
    ) {
        let session = self.clone();
        self.registry.when(self.registry.list(&self.caller, LISTED), move |listed| match listed {
            Ok(jobs) => {
                let result = render(&view, &jobs);
                session.answer(&requester, &result_line(&requester.id, &result));
            }
            Err(error) => session.answer_no_store(&view, &requester, &error),
        });
    }

    fn answer_no_store(&self, view: &View, requester: &Requester, error: &StoreError) {
        self.answer_problem(view, requester, &wording::no_store(error));
    }

    fn answer_problem(&self, view: &View, requester: &Requester, problem: &str) {
        let result = error_result(view, problem);
        self.answer(requester, &result_line(&requester.id, &result));
    }
}

/// When a poll of an unfinished job is answered at the latest (§5.1).
fn poll_until(view: &View, wait: Duration, job: &Job) -> Instant {
    let now = Instant::now();
    let until = now + wait;
    match job.running().and_then(|live| live.next_poll_at()) {
        Some(spread) => until.max(spread.min(now + view.wait_limit)),
        None => until,
    }
}
