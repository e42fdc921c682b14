//! Requests that wait for a job: a `job_get`, a `job_cancel`, a call that joined an equal one, a
//! client that resumed its stream. All wait in the same way, and differ in the answer that they
//! get.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tracing::debug;

use crate::downstream::Answer;
use crate::jobs::handle::{self, JobAnswer, View};
use crate::jobs::live::{Job, LiveJob};
use crate::jobs::registry::Registry;
use crate::jobs::tools::{self, Form, Rendered};
use crate::jobs::wording;
use crate::mcp::compose::{progress_line, raw_error_line, result_line};
use crate::mcp::error_code::URL_ELICITATION_REQUIRED;
use crate::mcp::params::Params;
use crate::relay::session::Locked;
use crate::relay::session::Session;
use crate::relay::state::calls::WaitTask;
use crate::relay::state::requester::Requester;

/// How often a request that waits for a job sends progress (§5.1).
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// A request that waits for a job.
pub(crate) struct Wait {
    pub requester: Requester,
    pub job: Job,
    /// the latest time of the answer
    pub until: Instant,
    /// the caller's progress token, raw JSON
    pub token: Option<Box<str>>,
    pub view: View,
    pub kind: AnswerKind,
}

/// Which answer a request that waits for a job gets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AnswerKind {
    /// the status or result of the job (§5.1)
    Job(Form),
    /// the answer to `job_cancel` (§5.2)
    Cancellation,
}

impl AnswerKind {
    /// Whether a question of the server ends the wait.
    fn ends_on_question(self) -> bool {
        match self {
            // An envelope has no room for a question.
            AnswerKind::Job(form) => !form.envelope,
            AnswerKind::Cancellation => false,
        }
    }

    fn render(self, view: &View, registry: &Registry, job: &Job) -> Rendered {
        match self {
            AnswerKind::Job(form) => tools::get(view, registry, job, form),
            AnswerKind::Cancellation => {
                let answer = JobAnswer::Result(handle::cancelled(view, job));
                Rendered { answer, completes_fetch: false }
            }
        }
    }
}

impl Session {
    /// §7: a call that joins the job of an equal call waits for it within its own budget.
    pub(super) fn join(
        self: &Arc<Self>,
        state: Locked,
        job: Job,
        params: &Params,
        requester: Requester,
        until: Instant,
    ) {
        debug!(job = job.record.short_id(), "an equal call joined the job");
        let token = params.progress_token().map(Into::into);
        let view = self.view(&state);
        let kind = AnswerKind::Job(Form { joined: true, ..Form::default() });
        self.wait(state, Wait { requester, job, until, token, view, kind });
    }

    /// A client resumed the stream of a call that went on as a job.
    pub(super) fn resume_wait(
        self: &Arc<Self>,
        state: Locked,
        requester: Requester,
        job: &Arc<LiveJob>,
        until: Instant,
    ) {
        let view = self.view(&state);
        let (job, token, kind) = (Job::live(job), None, AnswerKind::Job(Form::default()));
        self.wait(state, Wait { requester, job, until, token, view, kind });
    }

    /// Answers at once where there is nothing to wait for; else a task waits.
    pub(super) fn wait(self: &Arc<Self>, mut state: Locked, wait: Wait) {
        state.calls.mark_answered_by_proxy(&wait.requester);
        let Some(live) = wait.job.running().filter(|live| !wait.is_over(live)).cloned() else {
            drop(state);
            return self.answer_wait(&wait);
        };
        let key = wait.requester.key.clone();
        let session = self.clone();
        let task = tokio::spawn(async move {
            wait.until_end(&live).await;
            // A cancel takes the entry out too; only one of the two may answer.
            let is_wanted = session.state().calls.waits.remove(&wait.requester.key).is_some();
            if is_wanted {
                session.answer_wait(&wait);
            }
        });
        let client = state.client.info.clone();
        let waiting = WaitTask { task: task.abort_handle(), since: Instant::now(), client };
        state.calls.waits.insert(key, waiting);
    }

    /// Sends the answer: the job has ended, asks for input, or the wait is over.
    fn answer_wait(&self, wait: &Wait) {
        let Wait { requester, view, .. } = wait;
        let job = wait.job.now();
        let Rendered { answer, completes_fetch } = wait.kind.render(view, &self.registry, &job);
        if let Some(live) = job.running() {
            live.mark_polled();
        }
        match answer {
            JobAnswer::Result(result) => {
                self.answer(requester, &result_line(&requester.id, &result));
            }
            // Only `-32042` is replayed as an error (§5.1).
            JobAnswer::Error(error) => {
                let line = raw_error_line(&requester.id, &error);
                let answer = Answer::error(&line, URL_ELICITATION_REQUIRED);
                self.send_answer(requester, &answer);
            }
        }
        if completes_fetch && requester.reply.is_open() {
            self.registry.mark_fetched(&job);
        }
    }
}

impl Wait {
    /// Waits for the job, at most until `self.until`; sends progress meanwhile.
    async fn until_end(&self, live: &Arc<LiveJob>) {
        let mut ticks = interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = live.end_or_question(self.kind.ends_on_question()) => return,
                () = sleep_until(self.until) => return,
                _ = ticks.tick(), if self.token.is_some() => self.send_progress(live),
            }
        }
    }

    /// Whether there is nothing to wait for.
    fn is_over(&self, live: &LiveJob) -> bool {
        let news = live.is_done() || (self.kind.ends_on_question() && live.is_done_or_asks());
        news || self.until <= Instant::now()
    }

    /// Sends progress to the caller: the job still runs.
    fn send_progress(&self, live: &Arc<LiveJob>) {
        let Some(token) = &self.token else { return };
        let said = wording::waiting(&Job::live(live));
        let line = progress_line(token, live.elapsed().as_secs(), &said);
        self.requester.reply.push(&line);
    }
}
