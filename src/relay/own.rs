//! Calls of our own tools, and calls that joined a job: whoever waits for one (contract §5, §7).

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::downstream;
use crate::jobs::handle::{Answer, OwnTool, View, error_result, progress_message};
use crate::jobs::job::Job;
use crate::jobs::tools::{self, GetArguments};
use crate::mcp::params::Params;

use super::pending::Asker;
use super::session::{Session, State, Waiting};
use crate::mcp::compose::{progress_line, raw_error_line, result_line};
use crate::mcp::error_code::URL_ELICITATION_REQUIRED;

/// Progress of a waiting poll comes so often (§5.1).
const BEAT: Duration = Duration::from_secs(10);

/// Somebody who waits for the end of a job.
struct Wait {
    asker: Asker,
    job: Arc<Job>,
    until: Instant,
    /// the caller's progress token, raw JSON
    token: Option<Box<str>>,
    view: View,
    page: Option<i64>,
    envelope: bool,
    joined: bool,
}

impl Wait {
    /// An envelope has no room for a question, so it does not end its wait.
    fn shows_questions(&self) -> bool {
        !self.envelope
    }
}

impl Session {
    /// How answers look to the client that asks now.
    pub(super) fn view(&self, state: &State) -> View {
        let client = &state.client;
        let limit = client.wait_limit();
        let learned = self.patience.limit(&self.caller, client);
        View {
            caller: self.caller.clone(),
            names: state.catalog.names(),
            structured: client.knows_structured_content(),
            modern: client.is_modern(),
            wait_limit: learned.map_or(limit, |learned| learned.min(limit)),
            page_bytes: client.policy.page_bytes,
        }
    }

    /// A call of one of our tools. It is never sent to the server.
    pub(super) fn own_call(
        self: &Arc<Self>,
        state: MutexGuard<State>,
        tool: OwnTool,
        params: &Params,
        asker: Asker,
    ) {
        let view = self.view(&state);
        let arguments = params.get("arguments");
        match tool {
            OwnTool::Get => self.job_get(state, view, params, arguments, asker),
            OwnTool::Cancel => {
                // The owner of the job locks the session again.
                drop(state);
                let result = self.job_cancel(&view, arguments);
                self.answer(&asker, &result_line(&asker.id, &result));
            }
        }
    }

    fn job_cancel(&self, view: &View, arguments: Option<&str>) -> String {
        match tools::cancel_id(arguments) {
            Err(problem) => error_result(view, &problem),
            Ok(id) => match self.registry.get(&self.caller, &id) {
                None => tools::unknown(view, &self.registry, &id),
                Some(job) => tools::cancel(view, &self.registry, &job),
            },
        }
    }

    fn job_get(
        self: &Arc<Self>,
        mut state: MutexGuard<State>,
        view: View,
        params: &Params,
        arguments: Option<&str>,
        asker: Asker,
    ) {
        let arguments = match GetArguments::parse(arguments) {
            Ok(arguments) => arguments,
            Err(problem) => {
                let result = error_result(&view, &problem);
                return self.answer(&asker, &result_line(&asker.id, &result));
            }
        };
        let job = match &arguments.job_id {
            None => Err(tools::list(&view, &self.registry)),
            Some(id) => self
                .registry
                .get(&self.caller, id)
                .ok_or_else(|| tools::unknown(&view, &self.registry, id)),
        };
        let job = match job {
            Ok(job) => job,
            Err(result) => return self.answer(&asker, &result_line(&asker.id, &result)),
        };
        self.take_answers(&mut state, &job, params);
        let until = poll_until(&view, &arguments, &job);
        let token = params.progress_token().map(Into::into);
        let GetArguments { page, envelope, .. } = arguments;
        let joined = false;
        self.wait(state, Wait { asker, job, until, token, view, page, envelope, joined });
    }

    /// §7: a call that equals one of a job waits for that job, through its own budget.
    pub(super) fn join(
        self: &Arc<Self>,
        state: MutexGuard<State>,
        job: Arc<Job>,
        params: &Params,
        asker: Asker,
        until: Instant,
    ) {
        tracing::debug!(job = job.short_id(), "an equal call joined the job");
        let view = self.view(&state);
        let token = params.progress_token().map(Into::into);
        let (page, envelope, joined) = (None, false, true);
        self.wait(state, Wait { asker, job, until, token, view, page, envelope, joined });
    }

    /// A client that left a call came back for its answer.
    pub(super) fn wait_again(
        self: &Arc<Self>,
        state: MutexGuard<State>,
        asker: Asker,
        job: Arc<Job>,
        until: Instant,
    ) {
        let view = self.view(&state);
        let (token, page, envelope, joined) = (None, None, false, false);
        self.wait(state, Wait { asker, job, until, token, view, page, envelope, joined });
    }

    /// Answers at once where there is nothing to wait for; else a task waits.
    fn wait(self: &Arc<Self>, mut state: MutexGuard<State>, wait: Wait) {
        state.part(&wait.asker);
        let news = wait.job.is_done() || (wait.shows_questions() && wait.job.has_news());
        if news || wait.until <= Instant::now() {
            return self.wait_over(&wait);
        }
        let key = wait.asker.key.clone();
        let session = self.clone();
        let task = tokio::spawn(async move {
            session.until_end(&wait).await;
            // Whoever takes the entry out answers: this, or the cancel that aborts it.
            if session.state().waits.remove(&wait.asker.key).is_some() {
                session.wait_over(&wait);
            }
        });
        let client = state.client.clone();
        let waiting = Waiting { task: task.abort_handle(), since: Instant::now(), client };
        state.waits.insert(key, waiting);
    }

    async fn until_end(&self, wait: &Wait) {
        let mut beat = interval_at(Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = wait.job.news(wait.shows_questions()) => return,
                () = sleep_until(wait.until) => return,
                _ = beat.tick(), if wait.token.is_some() => self.beat(wait),
            }
        }
    }

    fn beat(&self, wait: &Wait) {
        let Some(token) = &wait.token else { return };
        let elapsed = wait.job.elapsed().as_secs();
        let line = progress_line(token, elapsed, &progress_message(&wait.job));
        wait.asker.reply.push(&line);
    }

    fn wait_over(&self, wait: &Wait) {
        let Wait { asker, job, view, .. } = wait;
        let arguments =
            GetArguments { page: wait.page, envelope: wait.envelope, ..Default::default() };
        let got = tools::get(view, &self.registry, job, &arguments, wait.joined);
        if !job.is_done() {
            job.polled();
        }
        match got.answer {
            Answer::Result(result) => self.answer(asker, &result_line(&asker.id, &result)),
            // The one error that is replayed (§5.1).
            Answer::Error(error) => {
                let line = raw_error_line(&asker.id, &error);
                self.send_answer(
                    asker,
                    &downstream::Answer::error(&line, URL_ELICITATION_REQUIRED),
                );
            }
        }
        if got.to_the_end && asker.reply.is_open() {
            self.registry.fetched(job);
        }
    }
}

/// When a poll of an unfinished job is answered at the latest (§5.1).
fn poll_until(view: &View, arguments: &GetArguments, job: &Job) -> Instant {
    let now = Instant::now();
    let wait = now + tools::wait_for(view, arguments);
    match job.next_poll_at() {
        Some(spread) => wait.max(spread.min(now + view.wait_limit)),
        None => wait,
    }
}
