//! The server: what it says of itself, and its answers to all that is no call.

use std::process;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::flags::Flags;
use crate::journal::Journal;
use crate::message::{Outcome, Request};
use crate::tools;
use crate::wire::Wire;
use support::json::{path, string};

pub(crate) const MODERN: &str = "2026-07-28";
/// The exit code of a process that was told to crash.
pub(crate) const CRASH: i32 = 3;

/// A subscription of a modern client: its raw id, and the way to it.
type Subscription = (String, Arc<dyn Wire>);

/// All that the sessions share.
pub(crate) struct Server {
    pub flags: Flags,
    pub journal: Journal,
    /// The open subscriptions of modern clients.
    pub subscriptions: Mutex<Vec<Subscription>>,
    /// Which process this is, counted from 1, with `--state-file`.
    process_number: u64,
}

impl Server {
    pub(crate) fn new(flags: Flags, journal: Journal, process_number: u64) -> Self {
        Self { flags, journal, subscriptions: Mutex::default(), process_number }
    }

    /// Whether this process is to crash at a `tools/call`.
    pub(crate) fn is_to_crash(&self) -> bool {
        self.process_number <= self.flags.crash_first
    }

    /// The answer to a request that is no call; what else it is answered with goes to `wire`.
    pub(crate) fn outcome(&self, request: &Request, wire: &Arc<dyn Wire>) -> Outcome {
        let fixed = self.flags.answer.iter().find(|(method, _)| *method == request.method);
        if let Some((_, raw)) = fixed {
            return Outcome::Result(raw.clone());
        }
        if self.flags.unanswered.contains(&request.method) {
            return Outcome::Silence;
        }
        if let Some(refusal) = self.refusal(request) {
            return refusal;
        }
        let empty = |members: Value| Outcome::result(members, request.is_modern());
        match request.method.as_str() {
            "initialize" => self.greet(|| self.initialized(request)),
            "server/discover" => self.greet(|| self.discovered()),
            "tools/list" if !self.flags.no_tools => tools::list(self, request),
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                empty(json!({}))
            }
            "resources/list" => empty(json!({"resources": []})),
            "resources/templates/list" => empty(json!({"resourceTemplates": []})),
            "prompts/list" => empty(json!({"prompts": []})),
            "subscriptions/listen" if request.is_modern() => self.listen(request, wire),
            "x/echo_params" => Outcome::Result(request.params.clone()),
            "x/raw" => raw_answer(request),
            _ => Outcome::error(-32601, "Method not found"),
        }
    }

    /// The error for a request of an era that this server does not speak.
    pub(crate) fn refusal(&self, request: &Request) -> Option<Outcome> {
        let Flags { modern, dual, .. } = self.flags;
        if request.method == "server/discover" && self.flags.discover_dies {
            process::exit(CRASH);
        }
        if modern && !request.is_modern() {
            let requested = request.param(&["protocolVersion"]).and_then(string);
            let data = json!({"supported": [MODERN], "requested": requested});
            let error =
                json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
            return Some(Outcome::Error(error.to_string()));
        }
        let unknown = !modern && !dual && request.method == "server/discover";
        unknown.then(|| Outcome::error(-32601, "Method not found"))
    }

    /// The answer to an opening, as late as the flags say.
    fn greet(&self, answer: impl Fn() -> Outcome) -> Outcome {
        if self.flags.silent {
            return Outcome::Silence;
        }
        thread::sleep(Duration::from_millis(self.flags.slow_start));
        answer()
    }

    fn initialized(&self, request: &Request) -> Outcome {
        let asked_for = request.param(&["protocolVersion"]).and_then(string);
        let version = self.flags.protocol.clone().or(asked_for);
        let mut result = self.introduction();
        result["protocolVersion"] = version.unwrap_or_else(|| "2025-11-25".into()).into();
        result["serverInfo"] = server_info();
        Outcome::Result(result.to_string())
    }

    fn discovered(&self) -> Outcome {
        let mut result = self.introduction();
        result["supportedVersions"] = json!([MODERN]);
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server_info()});
        Outcome::result(result, true)
    }

    /// The capabilities and the instructions, which every opening is answered with.
    fn introduction(&self) -> Value {
        let mut capabilities =
            json!({"logging": {}, "prompts": {}, "resources": {"subscribe": true}});
        if !self.flags.no_tools {
            capabilities["tools"] = json!({"listChanged": true});
        }
        if let Some(raw) = &self.flags.capabilities {
            capabilities = serde_json::from_str(raw).expect("--capabilities is JSON");
        }
        let mut result = json!({"capabilities": capabilities});
        if let Some(instructions) = &self.flags.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        result
    }

    /// Acknowledges a subscription, which stays open.
    fn listen(&self, request: &Request, wire: &Arc<dyn Wire>) -> Outcome {
        let (id, wanted) = (&request.id, request.param(&["notifications"]).unwrap_or("{}"));
        let subscription = (id.clone(), Arc::clone(wire));
        self.subscriptions.lock().expect("no holder panics").push(subscription);
        wire.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{wanted},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ));
        Outcome::Silence
    }
}

fn server_info() -> Value {
    json!({"name": "fake-server", "version": "1.0.0"})
}

/// `x/raw {result | error}`: answers with exactly this JSON text.
fn raw_answer(request: &Request) -> Outcome {
    let text = |key: &str| path(&request.params, &[key]).and_then(string);
    match (text("result"), text("error")) {
        (Some(result), _) => Outcome::Result(result),
        (None, Some(error)) => Outcome::Error(error),
        (None, None) => Outcome::error(-32602, "x/raw needs `result` or `error`"),
    }
}
