//! What one client has open: its calls, and the questions it was asked.

use std::collections::HashMap;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use crate::call::{Call, Stop};
use crate::message::{Outcome, Request};
use crate::server::{CRASH, Server};
use crate::tools;
use crate::wire::Wire;
use support::json::{Object, member, string};

/// All that the threads of one client share.
pub(crate) struct Session {
    pub server: Arc<Server>,
    /// Where the messages go that belong to no request.
    pub apart: Arc<dyn Wire>,
    /// The running calls by raw id.
    calls: Mutex<HashMap<String, Arc<Call>>>,
    /// The questions to the client by raw id, with their raw answers.
    questions: Mutex<HashMap<String, Option<String>>>,
    asked: AtomicU64,
}

impl Session {
    pub(crate) fn new(server: Arc<Server>, apart: Arc<dyn Wire>) -> Self {
        Self {
            server,
            apart,
            calls: Mutex::default(),
            questions: Mutex::default(),
            asked: AtomicU64::new(0),
        }
    }

    /// Takes a message; what it is answered with goes to `wire`.
    pub(crate) fn receive(self: &Arc<Self>, message: &str, wire: &Arc<dyn Wire>) {
        let journal = &self.server.journal;
        let Some(object) = Object::parse(message) else {
            return journal.event("unreadable", json!({"message": message}));
        };
        match (Request::of(&object), object.get("method").and_then(string), object.get("id")) {
            (Some(request), ..) => self.request(&request, wire),
            (None, Some(method), _) => {
                self.notification(&method, object.get("params").unwrap_or("{}"));
            }
            (None, None, Some(id)) => self.answered(id, &object),
            (None, None, None) => journal.event("unreadable", json!({"message": message})),
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

    /// Cancels all that runs.
    pub(crate) fn cancel_all(&self) {
        self.calls.lock().expect("no holder panics").values().for_each(|call| call.cancel());
    }

    fn request(self: &Arc<Self>, request: &Request, wire: &Arc<dyn Wire>) {
        if request.method == "tools/call" {
            return self.call(request, wire);
        }
        let outcome = self.server.outcome(request, wire);
        send(wire, &request.id, &outcome);
    }

    /// Runs a tool in a thread of its own, or here and now with `--block`.
    fn call(self: &Arc<Self>, request: &Request, wire: &Arc<dyn Wire>) {
        if self.server.is_to_crash() {
            process::exit(CRASH);
        }
        if let Some(refusal) = self.server.refusal(request) {
            return send(wire, &request.id, &refusal);
        }
        wire.begin();
        let call = Arc::new(Call::new(request, Arc::clone(wire)));
        self.calls.lock().expect("no holder panics").insert(call.id.clone(), Arc::clone(&call));
        let session = Arc::clone(self);
        let work = move || session.finish(&call);
        if self.server.flags.block {
            work();
        } else {
            thread::spawn(work);
        }
    }

    fn finish(&self, call: &Call) {
        let outcome = tools::run(self, call).unwrap_or_else(|Stop(outcome)| outcome);
        send(&call.wire, &call.id, &outcome);
        call.wire.end();
        self.calls.lock().expect("no holder panics").remove(&call.id);
        self.server.journal.event("call_ended", json!({"id": call.id, "tool": call.tool}));
    }

    /// Asks the client and waits for the raw result, or error, of its answer.
    pub(crate) fn ask(
        &self,
        call: &Call,
        id: Option<String>,
        method: &str,
        params: &str,
    ) -> Result<String, Stop> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let id = id.unwrap_or_else(|| format!("\"fake-{number}\""));
        self.questions.lock().expect("no holder panics").insert(id.clone(), None);
        let wire = if self.server.flags.questions_apart { &self.apart } else { &call.wire };
        wire.line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        call.until(|| self.questions.lock().expect("no holder panics").get(&id).cloned().flatten())
    }

    fn answered(&self, id: &str, object: &Object) {
        let answer = object.get("result").or(object.get("error")).unwrap_or("null");
        match self.questions.lock().expect("no holder panics").get_mut(id) {
            Some(place) => *place = Some(answer.to_owned()),
            None => self.server.journal.event("unasked", json!({"id": id})),
        }
    }

    /// Writes a notification that belongs to no call: once in a legacy session; to a modern client on
    /// each of its subscriptions, whose raw id takes the place of `$SUBSCRIPTION`.
    pub(crate) fn send_apart(&self, line: &str, modern: bool) {
        if !modern {
            return self.apart.line(line);
        }
        for (id, wire) in self.server.subscriptions.lock().expect("no holder panics").iter() {
            wire.line(&line.replace("$SUBSCRIPTION", id));
        }
    }
}

/// Writes the answer to a request, if it has one.
pub(crate) fn send(wire: &Arc<dyn Wire>, id: &str, outcome: &Outcome) {
    if let Some(line) = outcome.response(id) {
        wire.answer(&line);
    }
}
