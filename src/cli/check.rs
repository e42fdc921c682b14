//! `unhurry check`: is the configuration right, does the server start, and what holds for each of
//! its tools?

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::config::{Budget, Command, Config, Duplicates, OnClientCancel, ToolPolicy, Upstream};
use crate::jobs::handle::Names;
use crate::rpc::lines::{Line, Lines};
use crate::upstream::process::{Environment, Pipes, Process};
use crate::upstream::reaper::Reaper;

use super::allow_lists;
use super::{Context, UNAVAILABLE, remote_not_yet};

/// Clients cut or refuse longer names, their own prefix included.
const LONG_NAME: usize = 50;
/// Pages of tools that are read at the most.
const PAGES: usize = 200;
/// The longest that a check waits for one answer, whatever `start_timeout` says.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the server has to end.
const GRACE: Duration = Duration::from_millis(700);

/// Prints the report. Returns the exit code.
pub async fn check(context: Context) -> u8 {
    let Context { config, environment, .. } = context;
    match &config.file {
        Some(file) => println!("config   {}", file.display()),
        None => println!("config   none, the defaults hold"),
    }
    let Upstream::Command(command) = &config.upstream else {
        return remote_not_yet();
    };
    let server = match Server::ask(command, &config, &environment).await {
        Ok(server) => server,
        Err(problem) => {
            eprintln!("unhurry: {problem}");
            return UNAVAILABLE;
        }
    };
    println!("server   {} ({}), {} tools", server.name, server.protocol, server.tools.len());
    let names = names(&config, &server.tools);
    println!("adds     {}, {}", names.get, names.cancel);
    print_tools(&config, &server.tools);
    for warning in warnings(&config, &server.tools, &names, &environment) {
        println!("warning: {warning}");
    }
    0
}

fn names(config: &Config, tools: &[String]) -> Arc<Names> {
    let mut catalog = crate::relay::catalog::Catalog::new(&config.jobs.tool_prefix);
    let tools: Vec<_> = tools.iter().map(|name| json!({ "name": name })).collect();
    catalog.note(&json!({ "tools": tools }).to_string());
    catalog.names()
}

fn print_tools(config: &Config, tools: &[String]) {
    let width = tools.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    if !tools.is_empty() {
        println!("\n{:width$}  {:8}  FROM", "TOOL", "BUDGET");
    }
    let client = config.policy.client(None);
    for name in tools {
        let policy = config.policy.tool(name);
        let (budget, source) = config.policy.budget(&policy, &client, None, None);
        let budget = match budget {
            Budget::After(budget) => shown(budget),
            Budget::Never => "never".to_owned(),
        };
        let line = format!("{name:width$}  {budget:8}  {source}{}", unusual(&policy));
        println!("{line}");
    }
    if !tools.is_empty() {
        println!();
    }
}

/// What differs from the defaults.
fn unusual(policy: &ToolPolicy) -> String {
    let usual = ToolPolicy::default();
    let mut notes = Vec::new();
    let mut note = |differs: bool, text: String| {
        if differs {
            notes.push(text);
        }
    };
    note(
        policy.max_runtime != usual.max_runtime,
        format!("max_runtime {}", shown(policy.max_runtime)),
    );
    note(policy.result_ttl != usual.result_ttl, format!("result_ttl {}", shown(policy.result_ttl)));
    note(
        policy.fetched_ttl != usual.fetched_ttl,
        format!("fetched_ttl {}", shown(policy.fetched_ttl)),
    );
    note(
        policy.join_window != usual.join_window,
        format!("join_window {}", shown(policy.join_window)),
    );
    note(policy.max_concurrent != 0, format!("max_concurrent {}", policy.max_concurrent));
    note(policy.duplicates == Duplicates::Run, "duplicates run".into());
    note(policy.on_client_cancel == OnClientCancel::Cancel, "on_client_cancel cancel".into());
    note(policy.on_client_cancel == OnClientCancel::Detach, "on_client_cancel detach".into());
    note(policy.ask_progress, "ask_progress".into());
    if let Some(expected) = policy.expected {
        notes.push(format!("expected {}", shown(expected)));
    }
    if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) }
}

/// A duration as the config file spells it.
fn shown(duration: Duration) -> String {
    let signed = jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX);
    format!("{signed:#}").replace(' ', "")
}

fn warnings(
    config: &Config,
    tools: &[String],
    names: &Names,
    environment: &Environment,
) -> Vec<String> {
    let all = tools.iter().chain([&names.get, &names.cancel]);
    let long = all.filter(|name| name.chars().count() > LONG_NAME);
    let mut warnings: Vec<_> = long
        .map(|name| {
            format!(
                "the name {name:?} is longer than {LONG_NAME} characters: some clients hide such tools"
            )
        })
        .collect();
    let unused =
        config.policy.tool_patterns().filter(|pattern| !config.policy.applies(pattern, tools));
    warnings
        .extend(unused.map(|pattern| format!("[tools.{pattern:?}] fits no tool of the server")));
    let here = std::env::current_dir().unwrap_or_default();
    warnings.extend(allow_lists::warnings(environment, &here, names));
    warnings
}

/// What a server says of itself.
struct Server {
    name: String,
    protocol: String,
    tools: Vec<String>,
}

impl Server {
    /// Starts the server, asks it, and ends it.
    async fn ask(
        command: &Command,
        config: &Config,
        environment: &Environment,
    ) -> Result<Server, String> {
        let (mut process, pipes) =
            Process::spawn(command, environment).map_err(|error| error.to_string())?;
        // Whatever ends this check, the server does not outlive it.
        let reaper = Reaper::default();
        let _ = reaper.watch(process.id);
        let mut peer = Peer::new(pipes, config);
        let asked = peer.greet_and_list().await;
        let stderr = peer.close().await;
        let status = timeout(GRACE, process.wait()).await;
        process.kill();
        let _ = process.wait().await;
        reaper.forget(process.id);
        asked.map_err(|problem| match status {
            Ok(Ok(status)) => format!("{problem} ({status}){stderr}"),
            _ => format!("{problem}{stderr}"),
        })
    }
}

/// A client of one server, for as long as it takes to ask.
struct Peer {
    stdin: tokio::process::ChildStdin,
    stdout: tokio::process::ChildStdout,
    stderr: tokio::task::JoinHandle<String>,
    lines: Lines,
    patience: Duration,
    asked: u64,
    /// the first line that was no JSON-RPC
    junk: Option<String>,
}

impl Peer {
    fn new(pipes: Pipes, config: &Config) -> Self {
        Peer {
            stdin: pipes.stdin,
            stdout: pipes.stdout,
            stderr: tokio::spawn(tail(pipes.stderr)),
            lines: Lines::new(config.max_message),
            patience: config.start_timeout.min(PATIENCE),
            asked: 0,
            junk: None,
        }
    }

    async fn greet_and_list(&mut self) -> Result<Server, String> {
        let (name, protocol, meta) = self.greet().await?;
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let mut params = serde_json::Map::new();
            if let Some(meta) = &meta {
                params.insert("_meta".into(), meta.clone());
            }
            if let Some(cursor) = cursor.take() {
                params.insert("cursor".into(), cursor);
            }
            // A server without tools is no fault.
            let Ok(page) = self.ask("tools/list", params.into()).await? else { break };
            let listed = page["tools"].as_array().cloned().unwrap_or_default();
            tools.extend(listed.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned));
            match page.get("nextCursor") {
                Some(next) if next.is_string() => cursor = Some(next.clone()),
                _ => break,
            }
        }
        Ok(Server { name, protocol, tools })
    }

    /// The handshake of the legacy era, or, where the server refuses it, that of the modern one.
    async fn greet(&mut self) -> Result<(String, String, Option<Value>), String> {
        let me = json!({ "name": "unhurry-check", "version": env!("CARGO_PKG_VERSION") });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": me });
        let text = |value: &Value| value.as_str().unwrap_or("unnamed").to_owned();
        match self.ask("initialize", params).await? {
            Ok(greeting) => {
                let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                self.send(&note).await;
                let name = text(&greeting["serverInfo"]["name"]);
                Ok((name, text(&greeting["protocolVersion"]), None))
            }
            Err(refusal) => {
                let protocol = "2026-07-28";
                let meta: Value = serde_json::from_str(&crate::rpc::params::modern_meta(
                    protocol,
                    "unhurry-check",
                    env!("CARGO_PKG_VERSION"),
                ))
                .expect("made by us");
                let found = self.ask("server/discover", json!({ "_meta": meta })).await?;
                let found =
                    found.map_err(|_| format!("the server refused initialize: {refusal}"))?;
                let info = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
                Ok((text(&info["name"]), protocol.to_owned(), Some(meta)))
            }
        }
    }

    /// Sends a request and waits for its answer: the result, or the error that the server gave.
    async fn ask(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>, String> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let patience = self.patience;
        match timeout(patience, self.answer(id)).await {
            Ok(answer) => {
                answer.map_err(|problem| format!("{problem} before it answered {method}"))
            }
            Err(_) => Err(format!(
                "the server has not answered {method} for {} (upstream.start_timeout){}",
                shown(patience),
                self.said()
            )),
        }
    }

    async fn answer(&mut self, id: u64) -> Result<Result<Value, Value>, String> {
        loop {
            while let Some(line) = self.lines.next_line() {
                let Line::Whole(line) = line else { continue };
                let Ok(message) = serde_json::from_slice::<Value>(&line) else {
                    let start = || String::from_utf8_lossy(&line).chars().take(200).collect();
                    self.junk.get_or_insert_with(start);
                    continue;
                };
                if message["id"] == id && message.get("method").is_none() {
                    return Ok(match message.get("error") {
                        Some(error) => Err(error.clone()),
                        None => Ok(message["result"].clone()),
                    });
                }
            }
            if self.lines.fill(&mut self.stdout).await.unwrap_or(0) == 0 {
                return Err(format!("the server ended{}", self.said()));
            }
        }
    }

    /// What the server printed to stdout that is no JSON-RPC: often its usage.
    fn said(&self) -> String {
        match &self.junk {
            Some(first) => format!("; its stdout has what is no JSON-RPC: {first:?}"),
            None => String::new(),
        }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        // A broken pipe shows as the end of stdout, with better words.
        let _ = self.stdin.write_all(line.as_bytes()).await;
    }

    async fn close(self) -> String {
        drop(self.stdin);
        drop(self.stdout);
        let mut stderr = self.stderr;
        match timeout(GRACE, &mut stderr).await {
            Ok(Ok(tail)) if !tail.is_empty() => format!("; its stderr ended with:\n{tail}"),
            _ => String::new(),
        }
    }
}

/// The last lines of a server's stderr.
async fn tail(mut stderr: tokio::process::ChildStderr) -> String {
    const KEPT: usize = 10;
    let mut lines = Lines::new(8 << 10);
    let mut kept = std::collections::VecDeque::new();
    while lines.fill(&mut stderr).await.unwrap_or(0) > 0 {
        while let Some(line) = lines.next_line() {
            if let Line::Whole(line) = line {
                kept.push_back(String::from_utf8_lossy(&line).into_owned());
            }
            if kept.len() > KEPT {
                kept.pop_front();
            }
        }
    }
    Vec::from(kept).join("\n")
}
