//! The tool `script`: steps that run one after the other.

use std::path::PathBuf;
use std::process;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{Call, Stop};
use crate::message::Outcome;
use crate::session::{Session, send};
use support::json::member;

/// One step, written as `{"name": argument}`, with an array for several arguments.
///
/// In texts, `$ID` stands for the raw id of the call, `$TOKEN` for its raw progress token (`null`
/// without one) and `$ANSWER` for the raw result, or error, of the last `request`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// Waits for milliseconds.
    Sleep(u64),
    /// Waits until there is such a file.
    WaitFile(PathBuf),
    /// Writes a line and its end.
    Send(String),
    /// Writes a line that belongs to no call: over HTTP on the stream of a GET, in the modern era on
    /// every subscription (with its raw id for `$SUBSCRIPTION`).
    SendApart(String),
    /// Writes text as it is, without a line end. Over HTTP these are bytes of the stream of events.
    Write(String),
    /// Writes bytes given in hexadecimal digits.
    WriteHex(String),
    /// Writes a text so many times, without a line end.
    Repeat(String, u64),
    /// Writes to stderr, without a line end.
    Stderr(String),
    /// Writes so many bytes of lines to stderr.
    StderrFlood(usize),
    /// Asks the client, and waits for its answer.
    Request(Question),
    /// Answers the call with this raw result; the script goes on.
    Result(String),
    /// Answers the call with this raw error; the script goes on.
    Error(String),
    /// Closes stdout for the reader, and over HTTP the connection of the call; written as the plain
    /// string `"close_stdout"`.
    CloseStdout,
    /// Over HTTP ends the answer to the POST in due form, as servers do that want to be polled; written
    /// as the plain string `"end_stream"`.
    EndStream,
    /// Ends the process.
    Exit(i32),
}

#[derive(Deserialize)]
struct Question {
    method: String,
    params: Option<Box<RawValue>>,
    /// The raw id; one of the server's own if absent.
    id: Option<String>,
}

/// Runs the script in the arguments of `call`. What it answers, it has sent itself.
pub(crate) fn run(session: &Session, call: &Call) -> Result<Outcome, Stop> {
    let steps = member(&call.raw_args, "steps").unwrap_or("[]");
    let steps: Vec<Step> = serde_json::from_str(steps)
        .map_err(|error| Stop(Outcome::error(-32602, &format!("bad steps: {error}"))))?;
    let mut answer = String::from("null");
    for step in steps {
        run_step(session, call, step, &mut answer)?;
    }
    Ok(Outcome::Silence)
}

fn run_step(session: &Session, call: &Call, step: Step, answer: &mut String) -> Result<(), Stop> {
    let token = call.token.as_deref().unwrap_or("null");
    let fill = |text: &str| {
        text.replace("$ID", &call.id).replace("$TOKEN", token).replace("$ANSWER", answer)
    };
    match step {
        Step::Sleep(ms) => call.pause(Duration::from_millis(ms))?,
        Step::WaitFile(path) => call.wait_file(&path)?,
        Step::Send(line) => call.wire.line(&fill(&line)),
        Step::SendApart(line) => session.send_apart(&fill(&line), call.modern),
        Step::Write(text) => call.wire.bytes(fill(&text).as_bytes()),
        Step::WriteHex(digits) => call.wire.bytes(&bytes_of(&digits)?),
        Step::Repeat(text, count) => (0..count).for_each(|_| call.wire.bytes(text.as_bytes())),
        Step::Stderr(text) => eprint!("{}", fill(&text)),
        Step::StderrFlood(bytes) => flood_stderr(bytes),
        Step::Request(question) => {
            let id = question.id.as_deref().map(fill);
            let params = question.params.as_ref().map_or("{}", |params| params.get());
            *answer = session.ask(call, id, &question.method, &fill(params))?;
        }
        Step::Result(raw) => send(&call.wire, &call.id, &Outcome::Result(fill(&raw))),
        Step::Error(raw) => send(&call.wire, &call.id, &Outcome::Error(fill(&raw))),
        Step::CloseStdout => call.wire.cut(),
        Step::EndStream => call.wire.pause(),
        Step::Exit(code) => process::exit(code),
    }
    Ok(())
}

/// Writes lines to stderr, `bytes` bytes in all.
pub(crate) fn flood_stderr(bytes: usize) {
    let line = format!("{}\n", "e".repeat(99));
    let text: String = line.chars().cycle().take(bytes).collect();
    eprint!("{text}");
}

fn bytes_of(digits: &str) -> Result<Vec<u8>, Stop> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap_or("?"));
    pairs
        .map(|pair| u8::from_str_radix(pair, 16))
        .collect::<Result<_, _>>()
        .map_err(|error| Stop(Outcome::error(-32602, &format!("bad hexadecimal: {error}"))))
}
