//! Open sessions, and the jobs in them.

use serde_json::{Value, json};

use super::{Answer, Peer, Setup, eventually};

impl Peer {
    /// The proxy with `options` in front of the fake server, and an open session of 2025-11-25.
    pub async fn open(options: &[&str]) -> Self {
        Self::opened(Setup::proxied().options(options)).await
    }

    /// The same with this config file.
    pub async fn open_with(toml: &str) -> Self {
        Self::opened(Setup::proxied().config(toml)).await
    }

    /// The proxy in front of the fake server with these flags, and an open session of 2025-11-25.
    pub async fn open_to(flags: &[&str]) -> Self {
        Self::opened(Setup::proxied().flags(flags)).await
    }

    /// A peer with an open session of 2025-11-25.
    pub async fn opened(setup: Setup) -> Self {
        let peer = setup.spawn();
        peer.initialize().await;
        peer
    }

    /// A peer with an open session of 2025-11-25, in which the tools are known.
    pub async fn opened_and_listed(setup: Setup) -> Self {
        let peer = Self::opened(setup).await;
        peer.ask("tools/list", json!({})).await.result();
        peer
    }

    /// A client of 2026-07-28 in front of a server that speaks nothing else.
    pub fn opened_modern(setup: Setup) -> Self {
        let peer = setup.flags(&["--modern"]).spawn();
        peer.become_modern("test-client", json!({}));
        peer
    }

    /// Panics unless an ordinary call works.
    pub async fn assert_works(&self) {
        assert_eq!(self.call("echo", json!({"text": "works"})).await.text(), "works");
    }

    /// The arguments of a `wait_file` that ends when `create(gate)` opens its gate.
    pub fn gate(&self, gate: &str) -> Value {
        json!({"path": self.path(gate), "text": format!("{gate} is open")})
    }

    /// A call that ends when `create(gate)` opens its gate; the answer must be its handle.
    pub async fn job(&self, gate: &str) -> Answer {
        let answer = self.call("wait_file", self.gate(gate)).await;
        if !answer.is_handle() {
            self.fail(&format!("no handle: {}", answer.raw));
        }
        answer
    }

    /// `job_get` with these arguments.
    pub async fn job_get(&self, args: Value) -> Answer {
        self.call("job_get", args).await
    }

    /// What `job_get` says of a job at once.
    pub async fn look(&self, job: &str) -> Answer {
        self.job_get(json!({"job_id": job, "wait_seconds": 0})).await
    }

    /// `job_cancel` of a job.
    pub async fn job_cancel(&self, job: &str) -> Answer {
        self.call("job_cancel", json!({"job_id": job})).await
    }

    /// The caller's jobs, as `job_get` lists them.
    pub async fn jobs(&self) -> Vec<Value> {
        let list = self.job_get(json!({})).await;
        let text: Value = serde_json::from_str(list.text()).unwrap_or_default();
        text["jobs"].as_array().unwrap_or_else(|| self.fail("no list")).clone()
    }

    /// Waits until the list shows the newest job with this status.
    pub async fn newest_becomes(&self, status: &str) {
        let seen =
            eventually(|| async { (self.jobs().await[0]["status"] == status).then_some(()) });
        if seen.await.is_none() {
            self.fail(&format!("the newest job does not become {status}"));
        }
    }

    /// How many notifications of this method reached the fake server.
    pub fn told(&self, method: &str) -> usize {
        self.received(method).len()
    }

    /// The tool of this name, as it is listed.
    pub async fn listed(&self, name: &str) -> Value {
        let list = self.ask("tools/list", json!({})).await;
        let tools = list.result()["tools"].as_array().cloned().unwrap_or_default();
        let found = tools.into_iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| self.fail(&format!("no tool {name}")))
    }
}

/// Panics unless `structuredContent` is absent or says the same as the first text (C14).
pub fn assert_text_says_all(answer: &Answer) {
    let structured = answer.structured();
    let text: Value = serde_json::from_str(answer.text()).unwrap_or_default();
    assert!(structured.is_null() || *structured == text, "{}", answer.raw);
}
