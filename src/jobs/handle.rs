//! The shape of the answers about a job (contract §4.2, §5). Their words are in `wording.rs`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::mcp::error_code::URL_ELICITATION_REQUIRED;
use crate::mcp::meta::{JOB, with_job};
use crate::rpc::object::Members;
use crate::rpc::string::quoted;

use super::live::Job;
use super::pages::text_block;
use super::record::{End, Outcome, Status};
use super::registry::Registry;
use super::wording;

/// The real names of our two tools in this session (§5.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobToolNames {
    pub get: String,
    pub cancel: String,
}

/// One of our two tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobTool {
    Get,
    Cancel,
}

impl JobToolNames {
    /// The names of our tools: where the server has a tool of that name, ours gets another (§5.3).
    pub(crate) fn avoiding(prefix: &str, is_taken: impl Fn(&str) -> bool) -> Self {
        let free = |name: &str| {
            let mut name = format!("{prefix}{name}");
            while is_taken(&name) {
                name.insert_str(0, "unhurry_");
            }
            name
        };
        JobToolNames { get: free("job_get"), cancel: free("job_cancel") }
    }

    /// Which of our tools has this name, if any.
    pub(crate) fn tool_named(&self, name: &str) -> Option<JobTool> {
        match name {
            _ if name == self.get => Some(JobTool::Get),
            _ if name == self.cancel => Some(JobTool::Cancel),
            _ => None,
        }
    }
}

/// What an answer depends on besides the job: what the client understands, and what our tools are
/// called.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub names: Arc<JobToolNames>,
    /// 2025-06-18 or later: knows `structuredContent`
    pub structured: bool,
    /// 2026-07-28 or later: demands `resultType`
    pub modern: bool,
    /// how long `job_get` may wait: the client's budget (§5.1)
    pub wait_limit: Duration,
    pub page_bytes: usize,
}

/// The answer to a call of our tools, or to a call that became a job.
#[derive(Debug, PartialEq)]
pub(crate) enum JobAnswer {
    /// raw JSON of a result
    Result(String),
    /// raw JSON of a JSON-RPC error
    Error(String),
}

/// `structuredContent` of the answers about a job (§4.2).
#[derive(Serialize)]
struct Report<'a> {
    message: String,
    job_id: String,
    tool: &'a str,
    status: &'a str,
    done: bool,
    elapsed_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    eta_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_action: Option<NextAction<'a>>,
}

#[derive(Serialize)]
struct NextAction<'a> {
    tool: &'a str,
    args: NextArgs,
    check_after_seconds: u64,
    status_path: &'a str,
    terminal_statuses: [&'a str; 4],
}

#[derive(Serialize)]
struct NextArgs {
    job_id: String,
    seq: u64,
}

/// `structuredContent` with `envelope: true` (§5.1).
#[derive(Serialize)]
struct Envelope<'a> {
    job_id: String,
    tool: &'a str,
    status: &'a str,
    done: bool,
    elapsed_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

impl<'a> Report<'a> {
    fn new(job: &'a Job, status: Status, message: String) -> Self {
        Report {
            message,
            job_id: job.id().to_string(),
            tool: job.tool(),
            status: status.as_str(),
            done: status.is_final(),
            elapsed_seconds: job.elapsed().as_secs(),
            eta_seconds: None,
            poll_after_seconds: None,
            progress: progress(job),
            joined: None,
            error: None,
            next_action: None,
        }
    }
}

fn progress(job: &Job) -> Option<Box<RawValue>> {
    RawValue::from_string(job.progress()?.into()).ok()
}

/// `_meta["unhurry/job"]`, on every answer about a job (§4.2).
pub(crate) fn job_meta(job: &Job, status: Status) -> String {
    let done = status.is_final();
    format!(r#"{{"job_id":"{}","status":"{}","done":{done}}}"#, job.id(), status.as_str())
}

/// A tool result of our own: `body`, raw JSON, as text and, where the client knows it, as
/// `structuredContent` (§4.2).
pub(crate) fn tool_result(view: &View, body: &str, is_error: bool, job: Option<&str>) -> String {
    let result_type = if view.modern { r#""resultType":"complete","# } else { "" };
    let text = quoted(body);
    let structured =
        if view.structured { format!(r#","structuredContent":{body}"#) } else { String::new() };
    let is_error = if is_error { r#","isError":true"# } else { "" };
    let meta = job.map(|job| format!(r#","_meta":{{"{JOB}":{job}}}"#)).unwrap_or_default();
    format!(
        r#"{{{result_type}"content":[{{"type":"text","text":{text}}}]{structured}{is_error}{meta}}}"#
    )
}

/// A tool result with `isError: true` and plain text: what a requester gets in place of an answer
/// of the server (§7).
pub(crate) fn failure(modern: bool, message: &str) -> String {
    let result_type = if modern { r#""resultType":"complete","# } else { "" };
    let text = quoted(message);
    format!(r#"{{{result_type}"content":[{{"type":"text","text":{text}}}],"isError":true}}"#)
}

/// A tool result of our own with `isError: true`, whose body is one sentence.
pub(crate) fn error_result(view: &View, message: &str) -> String {
    let body = serde_json::json!({ "message": message }).to_string();
    tool_result(view, &body, true, None)
}

/// §4.2: the answer to a call whose budget ended, or to a poll of a job that still runs.
pub(crate) fn handle(view: &View, registry: &Registry, job: &Job, joined: bool) -> String {
    let status = Status::Working;
    let mut report = Report::new(job, status, wording::running(job, joined, &view.names.get));
    let eta = registry.remaining(job).map(|left| left.as_secs_f64().ceil() as u64);
    let poll_after = eta.unwrap_or(report.elapsed_seconds / 2).clamp(2, 60);
    report.eta_seconds = eta;
    report.poll_after_seconds = Some(poll_after);
    report.joined = joined.then_some(true);
    report.next_action = Some(NextAction {
        tool: &view.names.get,
        args: NextArgs { job_id: report.job_id.clone(), seq: job.next_seq() },
        check_after_seconds: poll_after,
        status_path: "_meta.unhurry/job.status",
        terminal_statuses: ["cancelled", "completed", "expired", "failed"],
    });
    tool_result(view, &json(&report), false, Some(&job_meta(job, status)))
}

/// The server's own result. One that is no object can't say how the job stands: it is shown as text.
pub(crate) fn servers_result<'a>(view: &View, result: &'a [u8]) -> Cow<'a, str> {
    let result = String::from_utf8_lossy(result);
    if result.starts_with('{') {
        return result;
    }
    let result_type = if view.modern { r#""resultType":"complete","# } else { "" };
    Cow::Owned(format!(r#"{{{result_type}"content":[{}]}}"#, text_block(&result)))
}

/// §5.1: the answer about a job that has ended: the server's own result, or why there is none.
pub(crate) fn ended(view: &View, job: &Job, end: &End) -> JobAnswer {
    match &end.outcome {
        Some(Outcome::Result(result)) => {
            let result = servers_result(view, result);
            JobAnswer::Result(with_job(&result, &job_meta(job, end.status)))
        }
        Some(Outcome::Error(error)) => with_error(view, job, &String::from_utf8_lossy(error)),
        Some(Outcome::Lost(cause)) => {
            without_result(view, job, Status::Failed, wording::failed(job, cause))
        }
        Some(Outcome::Cancelled) => {
            let message = wording::stopped(job, &view.names.cancel);
            without_result(view, job, Status::Cancelled, message)
        }
        None => without_result(view, job, Status::Expired, wording::expired(job, end.status)),
    }
}

/// The answer about a job that ended without an answer of the server.
fn without_result(view: &View, job: &Job, status: Status, message: String) -> JobAnswer {
    let body = json(&Report::new(job, status, message));
    JobAnswer::Result(tool_result(view, &body, true, Some(&job_meta(job, status))))
}

/// The answer about a job whose server answered with a JSON-RPC error.
fn with_error(view: &View, job: &Job, error: &str) -> JobAnswer {
    let code = Members::parse(error).and_then(|error| error.get("code")?.parse().ok());
    // Only this error is replayed, since clients act on it (§5.1).
    if code == Some(URL_ELICITATION_REQUIRED) {
        return JobAnswer::Error(error.to_owned());
    }
    let mut report = Report::new(job, Status::Failed, wording::failed_with_error(job));
    report.error = serde_json::from_str(error).ok();
    let body = json(&report);
    JobAnswer::Result(tool_result(view, &body, true, Some(&job_meta(job, Status::Failed))))
}

/// §8.4: the server's question, to be answered by calling `job_get` again with the answers, as the
/// modern era answers any question.
pub(crate) fn question(job: &Job, question: &[u8]) -> JobAnswer {
    let meta = job_meta(job, Status::InputRequired);
    JobAnswer::Result(with_job(&String::from_utf8_lossy(question), &meta))
}

/// §5.2: the answer to `job_cancel`.
pub(crate) fn cancelled(view: &View, job: &Job) -> String {
    // A job that has not ended yet is about to be stored as cancelled.
    let status = if job.is_done() { job.status() } else { Status::Cancelled };
    let message = match status {
        Status::Cancelled => wording::cancelled(job),
        _ => wording::nothing_to_cancel(job),
    };
    let body = json(&Report::new(job, status, message));
    tool_result(view, &body, false, Some(&job_meta(job, status)))
}

/// §5.1 `envelope: true`: one shape for every state, for programs.
pub(crate) fn envelope(view: &View, job: &Job) -> String {
    let status = job.status();
    let outcome = job.record.end.as_ref().and_then(|end| end.outcome.as_ref());
    let (mut result, mut error) = (None, None);
    let text;
    match outcome {
        Some(Outcome::Result(bytes)) => {
            text = String::from_utf8_lossy(bytes);
            result = serde_json::from_str(&text).ok();
        }
        Some(Outcome::Error(bytes)) => error = raw(String::from_utf8_lossy(bytes).into_owned()),
        Some(Outcome::Lost(cause)) => error = message_of(cause),
        Some(Outcome::Cancelled) => error = message_of(wording::CANCELLED),
        None if status == Status::Expired => error = message_of(wording::EXPIRED),
        None => {}
    }
    let body = json(&Envelope {
        job_id: job.id().to_string(),
        tool: job.tool(),
        status: status.as_str(),
        done: status.is_final(),
        elapsed_seconds: job.elapsed().as_secs(),
        result,
        error,
    });
    tool_result(view, &body, false, Some(&job_meta(job, status)))
}

fn message_of(text: &str) -> Option<Box<RawValue>> {
    raw(serde_json::json!({ "message": text }).to_string())
}

fn raw(json: String) -> Option<Box<RawValue>> {
    RawValue::from_string(json).ok()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain structs with string keys")
}
