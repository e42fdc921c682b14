//! Answers that are no answers: what a test wants to go wrong.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use crate::http::reply::Reply;
use crate::http::request::HttpRequest;
use support::json::{member, string};

/// Something that goes wrong with a request, given as JSON to `--fault` or to `/control/fault`.
///
/// A fault with neither a status nor one of the last two members only delays.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    /// Which requests: a method of HTTP (`POST`), a path (`/mcp`), both (`POST /mcp`), a method of
    /// JSON-RPC (`tools/call`), or `*` for all.
    on: String,
    /// How many times; always if absent.
    times: Option<u64>,
    /// Waits before all else, in milliseconds.
    #[serde(default)]
    delay_ms: u64,
    /// Answers with this status, these headers and this body.
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    /// Closes the connection without an answer.
    #[serde(default)]
    drop: bool,
    /// Answers with headers that never end.
    #[serde(default)]
    endless_headers: bool,
}

/// The faults to come.
pub(crate) struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        Self(Mutex::new(faults.to_vec()))
    }

    pub(crate) fn add(&self, fault: Fault) {
        self.0.lock().expect("no holder panics").push(fault);
    }

    /// Does to a request what the first fault for it says; whether that was its answer.
    pub(crate) fn meet(&self, request: &HttpRequest, reply: &Reply) -> bool {
        let Some(fault) = self.take(request) else { return false };
        thread::sleep(Duration::from_millis(fault.delay_ms));
        if fault.drop {
            reply.cut();
        } else if fault.endless_headers {
            reply.endless_headers();
        } else if let Some(status) = fault.status {
            fault.headers.iter().for_each(|(name, value)| reply.header(name, value));
            reply.whole(status, &fault.body);
        }
        reply.has_ended()
    }

    fn take(&self, request: &HttpRequest) -> Option<Fault> {
        let HttpRequest { method, path, .. } = request;
        let mut names = vec!["*".into(), method.clone(), path.clone(), format!("{method} {path}")];
        names.extend(request.messages().into_iter().filter_map(method_of));
        let mut faults = self.0.lock().expect("no holder panics");
        let mut left = faults.iter_mut().filter(|fault| fault.times != Some(0));
        let fault = left.find(|fault| names.contains(&fault.on))?;
        fault.times = fault.times.map(|times| times - 1);
        Some(fault.clone())
    }
}

fn method_of(message: &str) -> Option<String> {
    member(message, "method").and_then(string)
}
