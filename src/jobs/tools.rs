//! Our two tools, `job_get` and `job_cancel`: definitions, arguments, answers (contract §5).

use std::borrow::Cow;
use std::time::Duration;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::mcp::meta::with_job;
use crate::rpc::object::Members;
use crate::rpc::string::string;

use super::handle::{self, JobAnswer, JobToolNames, View, job_meta, tool_result};
use super::live::Job;
use super::pages::{Pages, text_block};
use super::record::Outcome;
use super::registry::Registry;
use super::wording;

/// The most jobs that a list names (§5.1).
pub(crate) const LISTED: usize = 20;

/// The definitions of our tools as raw JSON, `job_get` first.
pub(crate) fn definitions(names: &JobToolNames) -> String {
    let json = |tool: &Tool| serde_json::to_string(tool).expect("a plain struct");
    format!("{},{}", json(&get_definition(&names.get)), json(&cancel_definition(&names.cancel)))
}

fn get_definition(name: &str) -> Tool {
    let properties = json!({
        "job_id": { "type": "string", "description": wording::GET_JOB_ID },
        "wait_seconds": { "type": "number", "description": wording::GET_WAIT_SECONDS },
        "page": { "type": "integer", "description": wording::GET_PAGE },
        "envelope": { "type": "boolean", "description": wording::GET_ENVELOPE },
        "seq": { "type": "integer", "description": wording::GET_SEQ },
    });
    let annotations = ToolAnnotations::with_title(wording::GET_TITLE)
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    Tool::new(name.to_owned(), wording::GET_DESCRIPTION, schema(properties, &[]))
        .with_annotations(annotations)
}

fn cancel_definition(name: &str) -> Tool {
    let properties =
        json!({ "job_id": { "type": "string", "description": wording::CANCEL_JOB_ID } });
    let annotations = ToolAnnotations::with_title(wording::CANCEL_TITLE)
        .read_only(false)
        .destructive(true)
        .idempotent(true)
        .open_world(false);
    Tool::new(name.to_owned(), wording::CANCEL_DESCRIPTION, schema(properties, &["job_id"]))
        .with_annotations(annotations)
}

/// The `inputSchema` of one of our tools.
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
pub(crate) struct GetArguments<'a> {
    /// `None`: list the jobs
    pub job_id: Option<Cow<'a, str>>,
    /// at least zero; the upper limit is the client's budget
    pub wait: Option<Duration>,
    pub page: Option<i64>,
    pub envelope: bool,
}

impl<'a> GetArguments<'a> {
    /// Reads the raw `arguments`. Models write numbers and booleans as strings, so these are
    /// taken too; `null` counts as absent.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(crate) fn parse(raw: Option<&'a str>) -> Result<Self, String> {
        let Some(raw) = present(raw) else { return Ok(Self::default()) };
        let members = Members::parse(raw).ok_or_else(|| wording::arguments_no_object(raw))?;
        let member = |key| present(members.get(key));
        Ok(GetArguments {
            job_id: member("job_id").map(text_or_raw),
            wait: member("wait_seconds").map(wait).transpose()?,
            page: member("page").map(page).transpose()?,
            envelope: member("envelope").map(boolean).transpose()?.unwrap_or(false),
        })
    }
}

/// The `job_id` of `job_cancel`.
///
/// # Errors
/// A sentence for the model: it is missing.
pub(crate) fn cancel_id(raw: Option<&str>) -> Result<Cow<'_, str>, String> {
    let id = present(raw).and_then(Members::parse).and_then(|m| present(m.get("job_id")));
    id.map(text_or_raw).ok_or_else(wording::no_job_id)
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
    let seconds = number(raw).ok_or_else(|| wording::bad_wait_seconds(raw))?;
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
}

fn page(raw: &str) -> Result<i64, String> {
    let bad = || wording::bad_page(raw);
    let number = number(raw).ok_or_else(bad)?;
    if number.fract() == 0.0 { Ok(number as i64) } else { Err(bad()) }
}

fn boolean(raw: &str) -> Result<bool, String> {
    match &*text_or_raw(raw) {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(wording::bad_envelope(raw)),
    }
}

/// An answer about a job.
pub(crate) struct Rendered {
    pub answer: JobAnswer,
    /// the caller has the whole result with it, so that `fetched_ttl` begins
    pub completes_fetch: bool,
}

/// How `job_get` shows a job.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Form {
    /// which page of a long result; `None`: the first
    pub page: Option<i64>,
    pub envelope: bool,
    /// a handle says that the call joined an equal one (§7)
    pub joined: bool,
}

/// §5.1: the answer about a job: a handle, a question of the server, or the end.
pub(crate) fn get(view: &View, registry: &Registry, job: &Job, form: Form) -> Rendered {
    if form.envelope {
        let answer = JobAnswer::Result(handle::envelope(view, job));
        return Rendered { answer, completes_fetch: job.is_done() };
    }
    if let Some(asked) = job.question() {
        return Rendered { answer: handle::question(job, &asked), completes_fetch: false };
    }
    let Some(end) = &job.record.end else {
        let answer = JobAnswer::Result(handle::handle(view, registry, job, form.joined));
        return Rendered { answer, completes_fetch: false };
    };
    let page = form.page.unwrap_or(1);
    if let Some(Outcome::Result(result)) = &end.outcome {
        let result = handle::servers_result(view, result);
        if let Some(pages) = Pages::cut(&result, view.page_bytes) {
            return one_page(view, job, &pages, page);
        }
    }
    if page != 1 {
        return no_such_page(view, job, page, 1);
    }
    Rendered { answer: handle::ended(view, job, end), completes_fetch: true }
}

fn one_page(view: &View, job: &Job, pages: &Pages, page: i64) -> Rendered {
    let count = pages.count();
    let Some(number) = usize::try_from(page).ok().filter(|n| (1..=count).contains(n)) else {
        return no_such_page(view, job, page, count);
    };
    let last = number == count;
    let next = json!({
        "message": wording::page(job, number, count, &view.names.get),
        "job_id": job.id().to_string(),
        "page": number,
        "pages": count,
        "next_action": {
            "tool": view.names.get,
            "args": { "job_id": job.id().to_string(), "page": number + 1 },
        },
    });
    let trailer = (!last).then(|| text_block(&next.to_string()));
    let mut meta = json!({
        "job_id": job.id().to_string(),
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
    let answer = JobAnswer::Result(with_job(&result, &meta.to_string()));
    Rendered { answer, completes_fetch: last }
}

fn no_such_page(view: &View, job: &Job, page: i64, count: usize) -> Rendered {
    let status = job.status();
    let body = json!({
        "message": wording::no_such_page(page, count),
        "job_id": job.id().to_string(),
        "pages": count,
    });
    let meta = job_meta(job, status);
    let answer = JobAnswer::Result(tool_result(view, &body.to_string(), true, Some(&meta)));
    Rendered { answer, completes_fetch: false }
}

/// §5.1: the caller's jobs, newest first.
pub(crate) fn list(view: &View, jobs: &[Job]) -> String {
    let body = json!({
        "message": wording::listed(jobs.len(), &view.names.get),
        "jobs": summaries(jobs),
    });
    tool_result(view, &body.to_string(), false, None)
}

/// §5.1: the same words for an unknown, a foreign and a malformed id. `jobs`: the caller's own.
pub(crate) fn unknown(view: &View, id: &str, jobs: &[Job]) -> String {
    let body = json!({
        "message": wording::unknown_job(id, &view.names.get),
        "jobs": summaries(jobs),
    });
    tool_result(view, &body.to_string(), true, None)
}

fn summaries(jobs: &[Job]) -> Vec<Value> {
    jobs.iter().map(summary).collect()
}

fn summary(job: &Job) -> Value {
    json!({
        "job_id": job.id().to_string(),
        "tool": &**job.tool(),
        "arguments": &*job.record.arguments,
        "status": job.status().as_str(),
        "age_seconds": job.age().as_secs(),
    })
}

/// How long a poll may wait: what it asks for, within the client's budget (§5.1).
pub(crate) fn wait_for(view: &View, arguments: &GetArguments) -> Duration {
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
        let names = JobToolNames { get: "x_job_get".into(), cancel: "x_job_cancel".into() };
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
