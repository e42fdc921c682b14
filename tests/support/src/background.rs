//! Calls that go to the background, and what the server and the proxy know of them.

use serde_json::{Value, json};

use super::answer::Answer;
use super::json::path;
use super::{Entry, Peer, eventually};

/// The arguments of a `wait_file` that ends, with the name as its text, once the test creates `file`.
pub fn until(file: &str) -> Value {
    json!({"path": file, "text": file})
}

impl Peer {
    /// Calls a tool under the shortest budget and gets its handle.
    pub async fn defer(&self, tool: &str, args: Value) -> Answer {
        let handle = self.call_with_meta(tool, args, json!({"unhurry/answer_within": 0})).await;
        assert!(handle.is_handle(), "no handle: {}", handle.raw);
        handle
    }

    /// The handle of a call that runs in the background until the test creates `file`.
    pub async fn park(&self, file: &str) -> Answer {
        self.defer("wait_file", until(file)).await
    }

    /// Calls a tool and gets a handle, as the call takes longer than its budget.
    pub async fn slow_call(&self, tool: &str, args: Value) -> Answer {
        let handle = self.call(tool, args).await;
        assert!(handle.is_handle(), "no handle: {}", handle.raw);
        handle
    }

    /// Sends a call that runs until the test creates `file`, and waits until the server has it; its
    /// raw id.
    pub async fn start_until(&self, file: &str) -> String {
        let before = self.calls_of("wait_file").len();
        let id = self.start("wait_file", until(file)).await;
        self.arrived("wait_file", before + 1).await;
        id
    }

    /// Waits for the cancel that the server gets; the raw id in it.
    pub async fn cancelled(&self) -> String {
        let cancel = self.journal_method("notifications/cancelled").await;
        let id = path(&cancel.line, &["params", "requestId"]);
        id.expect("a cancel names a request").to_owned()
    }

    /// Waits until the job of this id is listed with this status.
    pub async fn listed_as(&self, job_id: &str, status: &str) {
        let wanted = |job: &Value| job["job_id"] == job_id && job["status"] == status;
        let listed = || async { self.jobs().await.iter().any(wanted).then_some(()) };
        if eventually(listed).await.is_none() {
            self.fail(&format!("{job_id} is never listed as {status}"));
        }
    }

    /// Waits until so many calls of a tool have reached the server, in all.
    pub async fn arrived(&self, tool: &str, calls: usize) {
        let come = || async { (self.calls_of(tool).len() >= calls).then_some(()) };
        if eventually(come).await.is_none() {
            self.fail(&format!("{calls} calls of {tool} do not reach the server"));
        }
    }

    /// All that the server has received of a method, in messages of their own.
    pub fn received(&self, method: &str) -> Vec<Entry> {
        let entries = self.journal().into_iter();
        entries.filter(|entry| entry.has_method(method)).collect()
    }
}
