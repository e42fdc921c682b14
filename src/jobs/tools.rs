//! Our two tools, `job_get` and `job_cancel`: definitions, arguments, answers (contract §5).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::rpc::object::Members;
use crate::rpc::string::string;

use super::handle::{self, Answer, Names, View, job_meta, tool_result};
use super::job::{Job, Outcome};
use super::pages::{Pages, text_block};
use super::registry::Registry;

/// Jobs named in a list (§5.1).
const LISTED: usize = 20;
/// How much of a bad value is repeated to the caller.
const SHOWN: usize = 80;

/// The definitions as raw JSON, `job_get` first.
pub fn definitions(names: &Names) -> String {
    let get = Tool::new(
        names.get.clone(),
        "Waits for the result of a tool call that is still running, and returns it: the very \
         result of the call. Call it with the arguments that next_action names. If the call has \
         not ended when the wait is over, the answer says so and names the next call. Without \
         job_id it lists your calls. Results are kept for hours; reading does not consume them. \
         Never repeat the original call meanwhile.",
        schema(
            json!({
                "job_id": { "type": "string", "description": "The job_id of the running call." },
                "wait_seconds": { "type": "number", "description": "How long to wait for the end. Leave it out: the default is the longest." },
                "page": { "type": "integer", "description": "Which page of a long result, from 1." },
                "envelope": { "type": "boolean", "description": "For programs: {job_id, tool, status, done, elapsed_seconds, result | error}." },
                "seq": { "type": "integer", "description": "As given in next_action." },
            }),
            &[],
        ),
    );
    let get = get.with_annotations(
        ToolAnnotations::with_title("Get the result of a running call")
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false),
    );
    let cancel = Tool::new(
        names.cancel.clone(),
        "Stops a tool call that is still running. Its result is lost. On a call that has ended \
         it changes nothing.",
        schema(
            json!({ "job_id": { "type": "string", "description": "The job_id of the running call." } }),
            &["job_id"],
        ),
    );
    let cancel = cancel.with_annotations(
        ToolAnnotations::with_title("Stop a running call")
            .read_only(false)
            .destructive(true)
            .idempotent(true)
            .open_world(false),
    );
    let json = |tool: &Tool| serde_json::to_string(tool).expect("a plain struct");
    format!("{},{}", json(&get), json(&cancel))
}

fn schema(properties: Value, required: &[&str]) -> serde_json::Map<String, Value> {
    let mut schema = serde_json::Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema
}

/// The arguments of `job_get`.
#[derive(Debug, Default, PartialEq)]
pub struct GetArguments<'a> {
    /// `None`: list the jobs
    pub job_id: Option<Cow<'a, str>>,
    /// clamped only against zero; the upper limit is the client's budget
    pub wait: Option<Duration>,
    pub page: Option<i64>,
    pub envelope: bool,
}

impl<'a> GetArguments<'a> {
    /// Reads the raw `arguments`. Models write numbers and booleans as strings, so these are
    /// taken too; `null` counts as absent. The error is a sentence for the model.
    pub fn parse(raw: Option<&'a str>) -> Result<Self, String> {
        let Some(raw) = present(raw) else { return Ok(Self::default()) };
        let members = Members::parse(raw)
            .ok_or_else(|| format!("arguments must be an object, not {}", shown(raw)))?;
        let member = |key| present(members.get(key));
        Ok(GetArguments {
            job_id: member("job_id").map(text_or_raw),
            wait: member("wait_seconds").map(wait).transpose()?,
            page: member("page").map(page).transpose()?,
            envelope: member("envelope").map(boolean).transpose()?.unwrap_or(false),
        })
    }
}

/// The `job_id` of `job_cancel`; a missing one is a sentence for the model.
pub fn cancel_id(raw: Option<&str>) -> Result<Cow<'_, str>, String> {
    let id = present(raw).and_then(Members::parse).and_then(|m| present(m.get("job_id")));
    id.map(text_or_raw).ok_or_else(|| "job_id is missing: name the call to stop".to_owned())
}

fn present(raw: Option<&str>) -> Option<&str> {
    raw.filter(|raw| *raw != "null")
}

fn text_or_raw(raw: &str) -> Cow<'_, str> {
    string(raw).unwrap_or(Cow::Borrowed(raw))
}

fn number(raw: &str) -> Option<f64> {
    text_or_raw(raw).trim().parse::<f64>().ok().filter(|n| !n.is_nan())
}

fn wait(raw: &str) -> Result<Duration, String> {
    let seconds = number(raw)
        .ok_or_else(|| format!("wait_seconds must be a number of seconds, not {}", shown(raw)))?;
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
}

fn page(raw: &str) -> Result<i64, String> {
    let bad = || format!("page must be a whole number from 1, not {}", shown(raw));
    let number = number(raw).ok_or_else(bad)?;
    if number.fract() == 0.0 { Ok(number as i64) } else { Err(bad()) }
}

fn boolean(raw: &str) -> Result<bool, String> {
    match &*text_or_raw(raw) {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("envelope must be true or false, not {}", shown(raw))),
    }
}

/// A value as the caller wrote it, cut to a readable length.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What `job_get` answers about a job now (§5.1), and whether its result was read to the end.
pub struct Got {
    pub answer: Answer,
    pub to_the_end: bool,
}

/// §5.1: the answer about a job as it stands: a handle, or the end.
pub fn get(
    view: &View,
    registry: &Registry,
    job: &Job,
    arguments: &GetArguments,
    joined: bool,
) -> Got {
    let end = job.end();
    if arguments.envelope {
        let answer = Answer::Result(handle::envelope(view, job));
        return Got { answer, to_the_end: end.is_some() };
    }
    if let Some(asked) = job.question().filter(|_| end.is_none()) {
        return Got { answer: handle::question(job, &asked), to_the_end: false };
    }
    let Some(end) = end else {
        let answer = Answer::Result(handle::handle(view, registry, job, joined));
        return Got { answer, to_the_end: false };
    };
    let page = arguments.page.unwrap_or(1);
    if let Some(Outcome::Result(result)) = &end.outcome
        && let Ok(result) = std::str::from_utf8(result)
        && let Some(pages) = Pages::cut(result, view.page_bytes)
    {
        return one_page(view, job, &pages, page);
    }
    if page != 1 {
        return no_such_page(view, job, page, 1);
    }
    let answer = handle::ended(view, job, end.outcome.as_ref(), end.status);
    Got { answer, to_the_end: true }
}

fn one_page(view: &View, job: &Job, pages: &Pages, page: i64) -> Got {
    let count = pages.count();
    let Some(number) = usize::try_from(page).ok().filter(|n| (1..=count).contains(n)) else {
        return no_such_page(view, job, page, count);
    };
    let last = number == count;
    let next = json!({
        "message": format!(
            "Page {number} of {count} of the result of {}. Next: call {} with the arguments in \
             next_action for page {}.", job.origin.tool, view.names.get, number + 1),
        "job_id": job.id.to_string(),
        "page": number,
        "pages": count,
        "next_action": {
            "tool": view.names.get,
            "args": { "job_id": job.id.to_string(), "page": number + 1 },
        },
    });
    let trailer = (!last).then(|| text_block(&next.to_string()));
    let mut meta = json!({
        "job_id": job.id.to_string(),
        "status": job.status().as_str(),
        "done": true,
        "page": number,
        "pages": count,
    });
    if !last {
        meta["message"] = next["message"].clone();
        meta["next_action"] = next["next_action"].clone();
    }
    let result = pages.page(number, trailer);
    let answer = Answer::Result(crate::mcp::meta::with_job(&result, &meta.to_string()));
    Got { answer, to_the_end: last }
}

fn no_such_page(view: &View, job: &Job, page: i64, count: usize) -> Got {
    let message = match count {
        1 => format!("There is no page {page}: the result has 1 page."),
        _ => format!("There is no page {page}: the result has {count} pages, counted from 1."),
    };
    let status = job.status();
    let body = json!({ "message": message, "job_id": job.id.to_string(), "pages": count });
    let meta = job_meta(job, status);
    let answer = Answer::Result(tool_result(view, &body.to_string(), true, Some(&meta)));
    Got { answer, to_the_end: false }
}

/// §5.1: the caller's jobs, newest first.
pub fn list(view: &View, registry: &Registry) -> String {
    let jobs = jobs_of(view, registry);
    let message = match jobs.len() {
        0 => "No calls are running in the background, and no results are kept.".to_owned(),
        _ => format!("Your calls, newest first. Read one with {} and its job_id.", view.names.get),
    };
    tool_result(view, &json!({ "message": message, "jobs": jobs }).to_string(), false, None)
}

/// §5.1: the same words for an unknown, a foreign and a malformed id.
pub fn unknown(view: &View, registry: &Registry, id: &str) -> String {
    let message = format!(
        "No job {} is known here. Your own calls are listed below; a job of another server is \
         known to that server's {}.",
        Value::from(shown(id)),
        view.names.get,
    );
    let body = json!({ "message": message, "jobs": jobs_of(view, registry) });
    tool_result(view, &body.to_string(), true, None)
}

fn jobs_of(view: &View, registry: &Registry) -> Vec<Value> {
    registry.list(&view.caller, LISTED).iter().map(summary).collect()
}

fn summary(job: &Arc<Job>) -> Value {
    json!({
        "job_id": job.id.to_string(),
        "tool": &*job.origin.tool,
        "arguments": &*job.origin.arguments,
        "status": job.status().as_str(),
        "age_seconds": job.origin.started.elapsed().as_secs(),
    })
}

/// §5.2: stops a job. The server is told by whoever runs its call.
pub fn cancel(view: &View, registry: &Registry, job: &Arc<Job>) -> String {
    if registry.finish(job, Outcome::Cancelled)
        && let Some(owner) = job.origin.owner.upgrade()
    {
        owner.cancel(job);
    }
    handle::cancelled(view, job)
}

/// How long a poll may wait: what it asks for, within the client's budget (§5.1).
pub fn wait_for(view: &View, arguments: &GetArguments) -> Duration {
    arguments.wait.unwrap_or(view.wait_limit).min(view.wait_limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c70_numbers_as_strings_and_out_of_range_are_taken_junk_is_explained() {
        let wait = |raw: &str| {
            let raw = format!(r#"{{"wait_seconds":{raw}}}"#);
            GetArguments::parse(Some(&raw)).map(|a| a.wait).map_err(|e| e.to_string())
        };
        assert_eq!(wait("\"30\""), Ok(Some(Duration::from_secs(30))));
        assert_eq!(wait("-1"), Ok(Some(Duration::ZERO)));
        assert_eq!(wait("1e9"), Ok(Some(Duration::from_secs(1_000_000_000))));
        assert_eq!(wait("1e300"), Ok(Some(Duration::MAX)));
        assert_eq!(wait("null"), Ok(None));
        let junk = wait("[\"soon\"]").unwrap_err();
        assert_eq!(junk, r#"wait_seconds must be a number of seconds, not ["soon"]"#);
        assert!(GetArguments::parse(Some(r#"{"page":1.5}"#)).is_err());
        assert!(GetArguments::parse(Some(r#"{"envelope":"yes"}"#)).is_err());
        assert!(GetArguments::parse(Some("[1]")).is_err());
    }

    #[test]
    fn c90_the_hints_are_set_and_the_names_are_the_real_ones() {
        let names = Names { get: "x_job_get".into(), cancel: "x_job_cancel".into() };
        let tools: Value = serde_json::from_str(&format!("[{}]", definitions(&names))).unwrap();
        assert_eq!(tools[0]["name"], "x_job_get");
        let hints = |tool: &Value| {
            let a = &tool["annotations"];
            ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
                .map(|hint| a[hint].as_bool().unwrap())
        };
        assert_eq!(hints(&tools[0]), [true, false, true, false]);
        assert_eq!(hints(&tools[1]), [false, true, true, false]);
        assert!(tools[0].get("outputSchema").is_none() && tools[0].get("execution").is_none());
    }
}
