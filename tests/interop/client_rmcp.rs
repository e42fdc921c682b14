//! The Rust SDK: both eras.
//!
//!     client-rmcp ERA STEPS.json COMMAND ARGS…
//!
//! Prints one line of JSON for each check: what a program behind the SDK sees. run.mjs judges.

// Sampling is deprecated since 2026-07-28, but legacy servers go on asking for it.
#![allow(deprecated)]

use std::{
    collections::HashSet,
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService},
    transport::TokioChildProcess,
};
use serde_json::{Map, Value, json};

/// The user and the model at the client's side, and what the SDK tells the program in passing.
#[derive(Clone, Default)]
struct User(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The time that user and model take.
    delay: Duration,
    /// Progress by token: this SDK gives every request one, and hands all progress to one place.
    progress: Vec<ProgressToken>,
}

impl User {
    async fn think(&self) {
        let delay = self.0.lock().unwrap().delay;
        tokio::time::sleep(delay).await;
    }
}

impl ClientHandler for User {
    async fn create_elicitation(
        &self,
        _params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.think().await;
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ada"})))
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.think().await;
        Ok(from_json(json!({
            "role": "assistant", "content": {"type": "text", "text": "forty-two"},
            "model": "interop-model", "stopReason": "endTurn",
        })))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.0.lock().unwrap().progress.push(params.progress_token);
    }

    fn get_info(&self) -> ClientConfig {
        from_json(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {"form": {}}, "sampling": {}},
            "clientInfo": {"name": "unhurry-interop", "version": "1.0.0"},
        }))
    }
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a literal in this file fits its type")
}

fn to_json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("the SDK's own types are JSON")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().ok_or("usage: client-rmcp ERA STEPS.json COMMAND ARGS…");
    let (era, steps_file, command) = (word()?, word()?, word()?);
    let steps: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(steps_file)?)?;
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match era.as_str() {
        "modern" => ClientLifecycleMode::Discover { preferred_versions: modern },
        "auto" => ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None },
        _ => ClientLifecycleMode::Initialize,
    };

    let mut child = tokio::process::Command::new(command);
    child.args(words);
    let user = User::default();
    let client =
        user.clone().serve_with_lifecycle(TokioChildProcess::new(child)?, lifecycle).await?;
    let peer = to_json(client.peer_info().as_deref());
    println!(
        "{}",
        json!({"check": "connect", "protocol": peer["protocolVersion"],
            "server": peer["serverInfo"], "instructions": peer["instructions"]})
    );
    println!("{}", json!({"check": "list", "tools": client.list_all_tools().await?}));

    for step in &steps {
        println!("{}", run_step(&client, &user, step).await);
    }
    client.cancel().await?;
    Ok(())
}

async fn run_step(client: &RunningService<RoleClient, User>, user: &User, step: &Value) -> Value {
    *user.0.lock().unwrap() = State {
        delay: Duration::from_secs_f64(step["answer_after"].as_f64().unwrap_or(0.0)),
        progress: Vec::new(),
    };
    let timeout = step["timeout"].as_f64().map(Duration::from_secs_f64);
    let mut polls: Vec<Value> = Vec::new();
    let mut before = None;
    let tokens_seen = || user.0.lock().unwrap().progress.clone();

    let mut answer = call(client, step["tool"].clone(), step["arguments"].clone(), timeout).await;
    // What a program does with a handle: it calls what next_action says until the job is done.
    while let Ok(result) = &answer {
        let job = &result["_meta"]["unhurry/job"];
        if job["done"] != json!(false) || polls.len() >= 30 {
            break;
        }
        before.get_or_insert_with(tokens_seen);
        let next = &result["structuredContent"]["next_action"];
        let (tool, args) = (next["tool"].clone(), next["args"].clone());
        polls.push(json!({"tool": tool, "args": args, "status": job["status"]}));
        answer = call(client, tool, args, timeout).await;
    }

    let before = before.unwrap_or_else(tokens_seen);
    // A token seen before the handle belongs to the call itself; polls have tokens of their own.
    let of_the_call: HashSet<_> = before.iter().collect();
    let after = tokens_seen().iter().filter(|token| of_the_call.contains(token)).count();
    let mut line = json!({
        "check": step["check"], "polls": polls,
        "progress": {"before": before.len(), "after": after - before.len()},
    });
    match answer {
        Ok(result) => line["result"] = result,
        Err(error) => line["error"] = json!({"message": error.to_string()}),
    }
    line
}

async fn call(
    client: &RunningService<RoleClient, User>,
    tool: Value,
    arguments: Value,
    timeout: Option<Duration>,
) -> Result<Value, Box<dyn Error>> {
    let name = tool.as_str().ok_or("the tool's name is no string")?.to_owned();
    let arguments: Map<String, Value> = serde_json::from_value(arguments)?;
    let params = CallToolRequestParams::new(name).with_arguments(arguments);
    let Some(timeout) = timeout else {
        return Ok(to_json(client.call_tool(params).await?));
    };
    // The SDK's own time-out is there for single requests only.
    let request = CallToolRequest::new(params);
    let options = PeerRequestOptions::with_timeout(timeout);
    let handle = client.send_cancellable_request(request.into(), options).await?;
    Ok(to_json(handle.await_response().await?))
}
