//! The two cases, as they are run.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use crate::mcp::meta::JOB;
use crate::mcp::method::Method;

use super::client::Client;
use super::error::DemoError;
use super::server;
use super::transcript::Entry;

/// How long the client waits for an answer before it gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// What unhurry is told: less than the client's patience.
pub(crate) const BUDGET: &str = "2s";

/// One case: when what happened, and every message of it.
pub(crate) struct Scene {
    /// When the slow call was sent.
    pub start: Instant,
    /// What the client waited for, one after the other.
    pub waits: Vec<Wait>,
    /// When the server's own answer was there.
    pub answered: Instant,
    pub transcript: Vec<Entry>,
}

/// A call, from the client's side.
pub(crate) struct Wait {
    pub tool: String,
    pub from: Instant,
    pub to: Instant,
    pub end: WaitEnd,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// With a job id, and what to call next.
    Handle,
    /// With the server's own result.
    Result,
    /// Without an answer.
    GaveUp,
}

/// This program, which is also the server and the proxy.
pub(crate) struct Program {
    path: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Program {
    /// The running program, to be started again in this environment.
    ///
    /// # Errors
    /// Its path is not known.
    pub(crate) fn this(environment: Vec<(OsString, OsString)>) -> Result<Self, DemoError> {
        let path = std::env::current_exe().map_err(DemoError::NoProgram)?;
        Ok(Program { path, environment })
    }

    /// The program with these arguments. It finds no configuration, so that every demonstration is
    /// the same.
    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a OsStr>) -> Command {
        let leads_to_config = |name: &OsStr| {
            ["HOME", "XDG_CONFIG_HOME", "APPDATA"].iter().any(|known| name == *known)
                || name.to_string_lossy().starts_with("UNHURRY_")
        };
        let mut command = Command::new(&self.path);
        command.args(arguments).env_clear();
        let kept = self.environment.iter().filter(|(name, _)| !leads_to_config(name));
        command.envs(kept.map(|(name, value)| (name, value)));
        command
    }

    fn server(&self) -> Command {
        self.command([OsStr::new(server::VERB)])
    }

    fn proxy(&self) -> Command {
        let flags = ["--answer-within", BUDGET, "--log-level", "error", "--"].map(OsStr::new);
        let server = [self.path.as_os_str(), OsStr::new(server::VERB)];
        self.command(flags.into_iter().chain(server))
    }
}

fn slow_call() -> Value {
    json!({ "name": "slow_report", "arguments": { "topic": "patience" } })
}

/// The client calls the server itself, and gives up before the answer.
///
/// # Errors
/// The server can't be started, or doesn't do what it should.
pub(crate) async fn without_unhurry(program: &Program) -> Result<Scene, DemoError> {
    let mut client = Client::start("the demo's server", program.server())?;
    client.initialize().await?;
    // It is the same in both cases, and shown once.
    client.transcript.clear();
    client.note("The client calls the slow tool, gives up, and says so, as MCP asks of it.");
    let from = Instant::now();
    let id = client.request(Method::CallTool, slow_call()).await?;
    let end = match timeout(PATIENCE, client.result(id, Method::CallTool)).await {
        Ok(result) => result.map(|_| WaitEnd::Result)?,
        Err(_) => WaitEnd::GaveUp,
    };
    let waits = vec![wait(&slow_call(), from, Instant::now(), end)];
    if end == WaitEnd::GaveUp {
        client.cancel(id).await?;
        client.note("The server is at work and does not hear it. Its answer comes, for nobody.");
        client.result(id, Method::CallTool).await?;
    }
    let answered = Instant::now();
    Ok(Scene { start: from, waits, answered, transcript: client.stop().await? })
}

/// The same client calls the same server through unhurry, and follows what the answers say.
///
/// # Errors
/// The server or the proxy can't be started, or one of them doesn't do what it should.
pub(crate) async fn with_unhurry(program: &Program) -> Result<Scene, DemoError> {
    let mut client = Client::start("the proxy", program.proxy())?;
    client.note("The handshake is the server's own, but for a paragraph of instructions.");
    client.initialize().await?;
    client.note("The list has the server's tools, then job_get and job_cancel.");
    client.ask(Method::ListTools, json!({})).await?;
    client.note("A fast call is answered as without the proxy.");
    let fast = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    client.ask(Method::CallTool, fast).await?;

    client.note("A slow call is answered when its budget ends. The work goes on.");
    let mut waits: Vec<Wait> = Vec::new();
    let mut call = slow_call();
    let start = Instant::now();
    loop {
        let from = Instant::now();
        let result = client.ask(Method::CallTool, call.clone()).await?;
        let done = result["_meta"][JOB]["done"] == true;
        let end = if done { WaitEnd::Result } else { WaitEnd::Handle };
        waits.push(wait(&call, from, Instant::now(), end));
        if done {
            break;
        }
        if waits.len() == 1 {
            client.note("Whoever follows next_action literally gets the result.");
        }
        call = next_call(&result)?;
    }
    client.note("That was the server's own result; only `unhurry/job` in `_meta` is added.");
    let answered = waits.last().map_or(start, |wait| wait.to);
    Ok(Scene { start, waits, answered, transcript: client.stop().await? })
}

fn wait(call: &Value, from: Instant, to: Instant, end: WaitEnd) -> Wait {
    Wait { tool: call["name"].as_str().unwrap_or_default().to_owned(), from, to, end }
}

/// The call that a handle asks for.
fn next_call(handle: &Value) -> Result<Value, DemoError> {
    let next = &handle["structuredContent"]["next_action"];
    match next["tool"].is_string() {
        true => Ok(json!({ "name": next["tool"], "arguments": next["args"] })),
        false => Err(DemoError::NoNextAction),
    }
}
