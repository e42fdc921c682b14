//! Every sentence that models read from the proxy, and nothing but the sentences. (Causes of
//! failures are worded where they are found, such as in `upstream/http/loss.rs`.)

use std::time::Duration;

use super::live::Job;
use super::record::Status;

/// What models are told, once, in the server's `instructions` (contract §1.1.3).
pub(crate) const ANNOUNCEMENT: &str = "Tools of this server may take long. A call that takes longer than \
the client can wait is answered with a job_id and a next_action in place of its result, while the \
work goes on. Then call the tool that next_action names, with its args, to wait for the result; \
don't repeat the call.";

/// The description of `job_get`.
pub(crate) const GET_DESCRIPTION: &str = "Waits for the result of a tool call that is still running, and \
returns it: the very result of the call. Call it with the arguments that next_action names. If the \
call has not ended when the wait is over, the answer says so and names the next call. Without \
job_id it lists your calls. Results are kept for hours; reading does not consume them. Never \
repeat the original call meanwhile.";
/// The title of `job_get`.
pub(crate) const GET_TITLE: &str = "Get the result of a running call";
/// The description of its argument `job_id`.
pub(crate) const GET_JOB_ID: &str = "The job_id of the running call.";
/// The description of its argument `wait_seconds`.
pub(crate) const GET_WAIT_SECONDS: &str =
    "How long to wait for the end. Leave it out: the default is the longest.";
/// The description of its argument `page`.
pub(crate) const GET_PAGE: &str = "Which page of a long result, from 1.";
/// The description of its argument `envelope`.
pub(crate) const GET_ENVELOPE: &str =
    "For programs: {job_id, tool, status, done, elapsed_seconds, result | error}.";
/// The description of its argument `seq`.
pub(crate) const GET_SEQ: &str = "As given in next_action.";

/// The description of `job_cancel`.
pub(crate) const CANCEL_DESCRIPTION: &str = "Stops a tool call that is still running. Its result is lost. \
On a call that has ended it changes nothing.";
/// The title of `job_cancel`.
pub(crate) const CANCEL_TITLE: &str = "Stop a running call";
/// The description of its argument.
pub(crate) const CANCEL_JOB_ID: &str = "The job_id of the running call.";

/// How much of a bad value is repeated to the caller, in characters.
const SHOWN: usize = 80;

/// A duration as people read it.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(10) && duration.subsec_millis() >= 100 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} s", duration.as_secs())
    }
}

/// A value as the caller wrote it, cut to a readable length.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

// Of a job that runs.

/// A job that has not ended (contract §4.2). `joined`: an equal call joined it. `get`: the real
/// name of `job_get`.
pub(crate) fn running(job: &Job, joined: bool, get: &str) -> String {
    let (tool, elapsed) = (job.tool(), seconds(job.elapsed()));
    let joined = if joined {
        format!("ALREADY RUNNING: an equal call of {tool} runs, and this one joined it. ")
    } else {
        String::new()
    };
    let state = match job.place() {
        0 => format!("STILL RUNNING after {elapsed}: not finished, not failed."),
        place => format!(
            "WAITING IN LINE after {elapsed}, place {place}: not started, not finished, not failed."
        ),
    };
    format!(
        "{joined}{state} Do not call {tool} again, that would start a second run. Next: call {get} \
         with the arguments in next_action; it waits for the result."
    )
}

/// Progress of a poll that waits (§5.1): what the server said last, if it did.
pub(crate) fn waiting(job: &Job) -> String {
    match (job.progress_text(), job.place()) {
        (Some(said), _) => said,
        (None, 0) => format!("{} is still running", job.tool()),
        (None, place) => format!("{} waits in line, place {place}", job.tool()),
    }
}

// Of a job that has ended (contract §5.1).

/// The server's call was lost, for this cause.
pub(crate) fn failed(job: &Job, cause: &str) -> String {
    let mark = repeatable(job.record.repeatable);
    format!("FAILED after {}: {cause} {mark}", seconds(job.elapsed()))
}

/// The server answered with a JSON-RPC error, which stands beside this sentence.
pub(crate) fn failed_with_error(job: &Job) -> String {
    failed(job, "the server answered with the error below.")
}

/// The job was stopped. `cancel`: the real name of `job_cancel`.
pub(crate) fn stopped(job: &Job, cancel: &str) -> String {
    format!(
        "CANCELLED after {}: {} was stopped by {cancel}; there is no result.",
        seconds(job.elapsed()),
        job.tool()
    )
}

/// The result is gone; the job ended with this status.
pub(crate) fn expired(job: &Job, status: Status) -> String {
    let at = job.record.end.as_ref().map(|end| end.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    format!(
        "EXPIRED: {} ended at {} ({}), and its result was kept for its time and then dropped. \
         Call {} again only if a second run does no harm.",
        job.tool(),
        at.unwrap_or_default(),
        status.as_str(),
        job.tool(),
    )
}

/// The result is gone, for programs.
pub(crate) const EXPIRED: &str = "the result has expired";
/// The job was stopped, for programs.
pub(crate) const CANCELLED: &str = "cancelled";

/// Whether the server marks the tool as safe to repeat.
pub(crate) fn repeatable(marked: Option<bool>) -> &'static str {
    match marked {
        Some(true) => "The server marks this tool as safe to repeat.",
        Some(false) => "The server does not mark this tool as safe to repeat.",
        None => "Whether this tool is safe to repeat is not known.",
    }
}

// The answers to `job_cancel` (contract §5.2).

/// The job was stopped by this call.
pub(crate) fn cancelled(job: &Job) -> String {
    format!(
        "CANCELLED after {}: the server was told to stop {}; a late result is dropped.",
        seconds(job.elapsed()),
        job.tool()
    )
}

/// The job had ended before.
pub(crate) fn nothing_to_cancel(job: &Job) -> String {
    format!(
        "Nothing to cancel: {} had already ended ({}). Nothing was changed.",
        job.tool(),
        job.status().as_str()
    )
}

// Pages of a long result (contract §5.1).

/// One page, and how to read the next one.
pub(crate) fn page(job: &Job, number: usize, count: usize, get: &str) -> String {
    format!(
        "Page {number} of {count} of the result of {}. Next: call {get} with the arguments in \
         next_action for page {}.",
        job.tool(),
        number + 1
    )
}

/// A page that is not there.
pub(crate) fn no_such_page(page: i64, count: usize) -> String {
    match count {
        1 => format!("There is no page {page}: the result has 1 page."),
        _ => format!("There is no page {page}: the result has {count} pages, counted from 1."),
    }
}

// Lists of jobs, and ids that name none (contract §5.1).

/// What stands above the caller's jobs.
pub(crate) fn listed(count: usize, get: &str) -> String {
    match count {
        0 => "No calls are running in the background, and no results are kept.".to_owned(),
        _ => format!("Your calls, newest first. Read one with {get} and its job_id."),
    }
}

/// The same for an unknown, a foreign and a malformed id.
pub(crate) fn unknown_job(id: &str, get: &str) -> String {
    format!(
        "No job {} is known here. Your own calls are listed below; a job of another server is \
         known to that server's {get}.",
        serde_json::Value::from(shown(id)),
    )
}

/// The store does not answer.
pub(crate) fn no_store(error: &dyn std::fmt::Display) -> String {
    format!("{error}. Nothing is lost; call this again in a while.")
}

// Arguments that can't be understood.

/// `arguments` is no object.
pub(crate) fn arguments_no_object(raw: &str) -> String {
    format!("arguments must be an object, not {}", shown(raw))
}

/// `job_cancel` without `job_id`.
pub(crate) fn no_job_id() -> String {
    "job_id is missing: name the call to stop".to_owned()
}

/// `wait_seconds` is no number.
pub(crate) fn bad_wait_seconds(raw: &str) -> String {
    format!("wait_seconds must be a number of seconds, not {}", shown(raw))
}

/// `page` is no whole number.
pub(crate) fn bad_page(raw: &str) -> String {
    format!("page must be a whole number from 1, not {}", shown(raw))
}

/// `envelope` is no boolean.
pub(crate) fn bad_envelope(raw: &str) -> String {
    format!("envelope must be true or false, not {}", shown(raw))
}

// Why a call has no result (contract §7). The first two are whole answers, the others are causes.

/// The server may have begun with the call.
pub(crate) fn outcome_unknown(cause: &str) -> String {
    let cause = cause.trim_end_matches('.');
    format!("outcome unknown: check before you repeat it. What happened: {cause}.")
}

/// The call has not reached the server.
pub(crate) fn not_started(tool: &str, cause: &str) -> String {
    format!("{tool} was not started: {}.", cause.trim_end_matches('.'))
}

/// Follows [`not_started`].
pub(crate) const MAY_BE_REPEATED: &str = "It may be called again.";

/// The call ran for too long.
pub(crate) fn overran(max_runtime: Duration) -> String {
    format!(
        "it ran longer than max_runtime ({}) and was cancelled. Outcome unknown: check before you \
         repeat it.",
        seconds(max_runtime)
    )
}

/// The call waited in line for too long.
pub(crate) fn never_began(max_runtime: Duration) -> String {
    format!("it waited in line longer than max_runtime ({}) and never began.", seconds(max_runtime))
}

/// The server asked for input in vain.
pub(crate) fn nobody_answered(max_runtime: Duration) -> String {
    format!(
        "the server asked for input, and nobody answered within max_runtime ({}).",
        seconds(max_runtime)
    )
}

/// The proxy ends before the job (contract §11).
pub(crate) const INTERRUPTED: &str =
    "interrupted: the proxy ended. Outcome unknown: check before you repeat it.";

/// A message above `max_message` was dropped. `what`: which one.
pub(crate) fn too_long(what: &str, length: u64, max_message: usize) -> String {
    format!(
        "{what} of {length} bytes is longer than max_message ({max_message} bytes) and was dropped"
    )
}

/// The server's answer has neither `result` nor `error`.
pub(crate) const NO_RESULT: &str = "the server's answer has neither result nor error.";
