//! The tools: their list, and what each does.

use std::fs;
use std::path::Path;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::call::{Call, Stop};
use crate::message::{Outcome, Request};
use crate::script;
use crate::server::Server;
use crate::session::Session;
use support::json::{elements, member, string};

const BUILT_IN: &str = include_str!("tools.json");

/// Answers `tools/list`, in pages if the flags say so. The cursor is the number of the next tool.
pub(crate) fn list(server: &Server, request: &Request) -> Outcome {
    while server.flags.hold_lists.as_deref().is_some_and(Path::exists) {
        thread::sleep(Duration::from_millis(5));
    }
    let text = definitions(server);
    let tools = elements(&text).expect("the tools are a JSON array");
    let cursor = request.param(&["cursor"]).and_then(string);
    let start = match cursor.as_deref().map_or(Ok(0), str::parse) {
        Ok(start) if start <= tools.len() => start,
        _ => return Outcome::error(-32602, "bad cursor"),
    };
    let end = server.flags.page_size.map_or(tools.len(), |size| tools.len().min(start + size));
    let mut members = vec![format!(r#""tools":[{}]"#, tools[start..end].join(","))];
    if end < tools.len() {
        members.push(format!(r#""nextCursor":"{end}""#));
    }
    if request.is_modern() {
        members.push(r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#.into());
    }
    Outcome::Result(format!("{{{}}}", members.join(",")))
}

/// The array of tools as text. Line breaks go: in JSON they can only be white space.
pub(crate) fn definitions(server: &Server) -> String {
    let text = match &server.flags.tools {
        Some(path) => fs::read_to_string(path).expect("the file of tools can be read"),
        None => BUILT_IN.to_owned(),
    };
    text.replace(['\n', '\r'], " ")
}

fn is_listed(server: &Server, tool: &str) -> bool {
    let text = definitions(server);
    let tools = elements(&text).expect("the tools are a JSON array");
    tools
        .iter()
        .any(|definition| member(definition, "name").and_then(string).as_deref() == Some(tool))
}

/// Runs a tool. A tool of the `--tools` file that is none of the built-in ones does what its
/// arguments ask for: `steps` as `script`, `path` as `wait_file`, else as `sleep`.
pub(crate) fn run(session: &Session, call: &Call) -> Result<Outcome, Stop> {
    match call.tool.as_str() {
        "echo" => echo(call),
        "sleep" => sleep(call),
        "structured" => structured(call),
        "fail" => fail(call),
        "rpc_error" => rpc_error(call),
        "progress" => progress(call),
        "big" => big(call),
        "ask" => ask(session, call),
        "wait_file" => wait_file(call),
        "raw" => raw(call),
        "script" => script::run(session, call),
        "exit" => exit(call),
        "close_stdout" => {
            call.wire.cut();
            Ok(Outcome::Silence)
        }
        other if !is_listed(&session.server, other) => Ok(Outcome::error(-32602, "unknown tool")),
        _ if call.args.get("steps").is_some() => script::run(session, call),
        _ if call.args.get("path").is_some() => wait_file(call),
        _ => sleep(call),
    }
}

fn echo(call: &Call) -> Result<Outcome, Stop> {
    Ok(call.says(call.text("text").unwrap_or(&call.raw_args)))
}

fn sleep(call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    Ok(call.says(call.text("text").unwrap_or("slept")))
}

fn structured(call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    let value = json!({"answer": 42, "unit": "none"});
    let block = json!({"type": "text", "text": value.to_string()});
    Ok(Outcome::result(json!({"content": [block], "structuredContent": value}), call.modern))
}

fn fail(call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    let block = json!({"type": "text", "text": call.text("text").unwrap_or("failed")});
    Ok(Outcome::result(json!({"content": [block], "isError": true}), call.modern))
}

fn rpc_error(call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    let code = call.args["code"].as_i64().unwrap_or(-32000);
    let mut error = json!({"code": code, "message": call.text("message").unwrap_or("an error")});
    if let Some(data) = call.args.get("data") {
        error["data"] = data.clone();
    }
    Ok(Outcome::Error(error.to_string()))
}

fn progress(call: &Call) -> Result<Outcome, Stop> {
    let (start, steps) = (Instant::now(), call.number("steps").max(1));
    for step in 1..=steps {
        call.pause_until(start, Duration::from_millis(call.number("ms") * step / steps))?;
        if let Some(token) = &call.token {
            call.wire.line(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step},"total":{steps},"message":"step {step}"}}}}"#
            ));
        }
    }
    Ok(call.says(&format!("{steps} steps")))
}

fn big(call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    let pattern = call.text("pattern").filter(|text| !text.is_empty()).unwrap_or("x");
    let count = call.number("bytes") as usize / pattern.len();
    Ok(call.says(&pattern.repeat(count)))
}

/// A question by elicitation: a request in the legacy eras, `input_required` in the modern one.
fn ask(session: &Session, call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    let message = call.text("message").unwrap_or("Which?");
    let schema = json!({"type": "object", "properties": {"choice": {"type": "string"}}});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    if !call.modern {
        let answer = session.ask(call, None, "elicitation/create", &params.to_string())?;
        return Ok(call.says(&answer));
    }
    Ok(match &call.input_responses {
        Some(responses) => call.says(responses),
        None => Outcome::result(input_required(params), true),
    })
}

fn input_required(params: Value) -> Value {
    let question = json!({"method": "elicitation/create", "params": params});
    json!({"resultType": "input_required", "inputRequests": {"choice": question}, "requestState": "asked"})
}

fn wait_file(call: &Call) -> Result<Outcome, Stop> {
    call.wait_file(Path::new(call.text("path").unwrap_or_default()))?;
    Ok(call.says(call.text("text").unwrap_or("there")))
}

fn raw(call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    Ok(match (call.text("result"), call.text("error")) {
        (Some(result), _) => Outcome::Result(result.to_owned()),
        (None, Some(error)) => Outcome::Error(error.to_owned()),
        (None, None) => Outcome::error(-32602, "raw needs `result` or `error`"),
    })
}

fn exit(call: &Call) -> Result<Outcome, Stop> {
    call.pause_ms()?;
    process::exit(i32::try_from(call.number("code")).unwrap_or(1))
}
