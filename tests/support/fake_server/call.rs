//! A running `tools/call`: what it was given, and how it is stopped.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::message::{Outcome, Request};
use crate::wire::Wire;
use support::json::string;

/// How often a file is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// What ends a tool early: its cancel (no answer), or arguments it cannot use.
pub(crate) struct Stop(pub Outcome);

/// A call in progress.
pub(crate) struct Call {
    pub id: String,
    pub tool: String,
    /// The progress token, as raw JSON.
    pub token: Option<String>,
    /// The arguments as they came.
    pub raw_args: String,
    /// The arguments as a value; null where no value can hold them.
    pub args: Value,
    /// The answers to the questions of an earlier call of this era, as raw JSON.
    pub input_responses: Option<String>,
    pub modern: bool,
    /// The way to whoever called.
    pub wire: Arc<dyn Wire>,
    cancelled: Mutex<bool>,
    cancel: Condvar,
}

impl Call {
    pub(crate) fn new(request: &Request, wire: Arc<dyn Wire>) -> Self {
        let raw_args = request.param(&["arguments"]).unwrap_or("{}").to_owned();
        Self {
            id: request.id.clone(),
            tool: request.param(&["name"]).and_then(string).unwrap_or_default(),
            token: request.param(&["_meta", "progressToken"]).map(str::to_owned),
            args: serde_json::from_str(&raw_args).unwrap_or_default(),
            raw_args,
            input_responses: request.param(&["inputResponses"]).map(str::to_owned),
            modern: request.is_modern(),
            wire,
            cancelled: Mutex::new(false),
            cancel: Condvar::new(),
        }
    }

    /// Stops the call at its next pause, unless its argument `ignore_cancel` is true.
    pub(crate) fn cancel(&self) {
        *self.cancelled.lock().expect("no holder panics") = true;
        self.cancel.notify_all();
    }

    /// Waits; an `Err` is the cancel.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), Stop> {
        if self.args["ignore_cancel"] == true {
            std::thread::sleep(time);
            return Ok(());
        }
        let guard = self.cancelled.lock().expect("no holder panics");
        let (cancelled, _) = self
            .cancel
            .wait_timeout_while(guard, time, |cancelled| !*cancelled)
            .expect("no holder panics");
        if *cancelled { Err(Stop(Outcome::Silence)) } else { Ok(()) }
    }

    /// Waits as long as the argument `ms` says.
    pub(crate) fn pause_ms(&self) -> Result<(), Stop> {
        self.pause(Duration::from_millis(self.number("ms")))
    }

    /// Waits until there is such a file.
    pub(crate) fn wait_file(&self, path: &Path) -> Result<(), Stop> {
        self.until(|| path.exists().then_some(()))
    }

    /// Waits until `look` finds something.
    pub(crate) fn until<T>(&self, look: impl Fn() -> Option<T>) -> Result<T, Stop> {
        loop {
            match look() {
                Some(found) => return Ok(found),
                None => self.pause(LOOK)?,
            }
        }
    }

    /// An argument that is a number, else 0.
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.args[key].as_u64().unwrap_or(0)
    }

    /// An argument that is a string.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.args[key].as_str()
    }

    /// A result of one block of text.
    pub(crate) fn says(&self, text: &str) -> Outcome {
        Outcome::text(text, self.modern)
    }

    /// Waits until it is `since` after `start`, for tools that spread their work.
    pub(crate) fn pause_until(&self, start: Instant, since: Duration) -> Result<(), Stop> {
        self.pause(since.saturating_sub(start.elapsed()))
    }
}
