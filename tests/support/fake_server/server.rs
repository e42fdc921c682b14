//! The server: reads lines, answers requests, keeps track of calls and questions.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, stdin};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::{Call, Stop};
use crate::flags::Flags;
use crate::journal::Journal;
use crate::json::{Object, member, messages, path, string};
use crate::message::{Outcome, Request};
use crate::output::Output;
use crate::tools;

const MODERN: &str = "2026-07-28";
/// The exit code of a process that was told to crash.
const CRASH: i32 = 3;

/// All that the threads share.
pub struct Server {
    pub flags: Flags,
    pub output: Output,
    pub journal: Journal,
    /// Which process this is, counted from 1, with `--state-file`.
    process_number: u64,
    /// The running calls by raw id.
    calls: Mutex<HashMap<String, Arc<Call>>>,
    /// The questions to the client by raw id, with their raw answers.
    questions: Mutex<HashMap<String, Option<String>>>,
    asked: AtomicU64,
}

impl Server {
    pub fn new(flags: Flags, journal: Journal, process_number: u64) -> Self {
        Self {
            output: Output::new(&flags),
            flags,
            journal,
            process_number,
            calls: Mutex::default(),
            questions: Mutex::default(),
            asked: AtomicU64::new(0),
        }
    }

    /// Reads until stdin ends. Then the process ends too, whatever still runs.
    pub fn serve(self: &Arc<Self>) {
        let mut input = BufReader::new(stdin().lock());
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let received = line.strip_suffix(b"\n").unwrap_or(&line);
            self.journal.line(received);
            for message in messages(&String::from_utf8_lossy(received)) {
                self.receive(message);
            }
            line.clear();
        }
        self.journal.event("eof", json!({}));
    }

    fn receive(self: &Arc<Self>, message: &str) {
        let Some(object) = Object::parse(message) else {
            self.journal.event("unreadable", json!({"message": message}));
            return;
        };
        let params = object.get("params").unwrap_or("{}");
        match (object.get("method").and_then(string), object.get("id")) {
            (Some(method), Some(id)) => {
                self.request(Request { id: id.into(), method, params: params.into() });
            }
            (Some(method), None) => self.notification(&method, params),
            (None, Some(id)) => self.answered(id, &object),
            (None, None) => self.journal.event("unreadable", json!({"message": message})),
        }
    }

    fn notification(&self, method: &str, params: &str) {
        let cancelled = (method == "notifications/cancelled").then(|| member(params, "requestId"));
        if let Some(id) = cancelled.flatten()
            && let Some(call) = self.calls.lock().expect("no holder panics").get(id)
        {
            call.cancel();
        }
    }

    fn request(self: &Arc<Self>, request: Request) {
        if request.method == "tools/call" {
            return self.call(&request);
        }
        let outcome = self.outcome(&request);
        self.send(&request.id, &outcome);
    }

    /// Writes the answer to a request, if it has one.
    pub fn send(&self, id: &str, outcome: &Outcome) {
        if let Some(line) = outcome.response(id) {
            self.output.line(&line);
        }
    }

    fn outcome(&self, request: &Request) -> Outcome {
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
            "subscriptions/listen" if request.is_modern() => self.listen(request),
            "x/echo_params" => Outcome::Result(request.params.clone()),
            "x/raw" => raw_answer(request),
            _ => Outcome::error(-32601, "Method not found"),
        }
    }

    /// The error for a request of an era that this server does not speak.
    fn refusal(&self, request: &Request) -> Option<Outcome> {
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
    fn listen(&self, request: &Request) -> Outcome {
        let (id, wanted) = (&request.id, request.param(&["notifications"]).unwrap_or("{}"));
        self.output.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{wanted},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ));
        Outcome::Silence
    }

    /// Runs a tool in a thread of its own, or here and now with `--block`.
    fn call(self: &Arc<Self>, request: &Request) {
        if self.process_number <= self.flags.crash_first {
            process::exit(CRASH);
        }
        if let Some(refusal) = self.refusal(request) {
            return self.send(&request.id, &refusal);
        }
        let call = Arc::new(Call::new(request));
        self.calls.lock().expect("no holder panics").insert(call.id.clone(), Arc::clone(&call));
        let server = Arc::clone(self);
        let work = move || server.finish(&call);
        if self.flags.block {
            work();
        } else {
            thread::spawn(work);
        }
    }

    fn finish(&self, call: &Call) {
        let outcome = tools::run(self, call).unwrap_or_else(|Stop(outcome)| outcome);
        self.send(&call.id, &outcome);
        self.calls.lock().expect("no holder panics").remove(&call.id);
        self.journal.event("call_ended", json!({"id": call.id, "tool": call.tool}));
    }

    /// Asks the client and waits for the raw result, or error, of its answer.
    pub fn ask(
        &self,
        call: &Call,
        id: Option<String>,
        method: &str,
        params: &str,
    ) -> Result<String, Stop> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let id = id.unwrap_or_else(|| format!("\"fake-{number}\""));
        self.questions.lock().expect("no holder panics").insert(id.clone(), None);
        let ask = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.output.line(&ask);
        call.until(|| self.questions.lock().expect("no holder panics").get(&id).cloned().flatten())
    }

    fn answered(&self, id: &str, object: &Object) {
        let answer = object.get("result").or(object.get("error")).unwrap_or("null");
        match self.questions.lock().expect("no holder panics").get_mut(id) {
            Some(place) => *place = Some(answer.to_owned()),
            None => self.journal.event("unasked", json!({"id": id})),
        }
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
