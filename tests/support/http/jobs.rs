//! Jobs as clients over HTTP see them, and clients that hang up.

use serde_json::{Value, json};

use super::{HttpPeer, Response};
use crate::support::{Answer, Peer, call_params, eventually, until};

impl HttpPeer {
    /// `job_get` with these arguments.
    pub async fn job_get(&self, args: Value) -> Answer {
        self.call("job_get", args).await
    }

    /// Waits until the newest job in the list has this status; its id.
    pub async fn newest_becomes(&self, status: &str) -> String {
        let seen = eventually(|| async {
            let jobs = self.jobs().await;
            let newest = jobs.first().filter(|job| job["status"] == status)?;
            newest["job_id"].as_str().map(str::to_owned)
        });
        seen.await.unwrap_or_else(|| panic!("the newest job does not become {status}"))
    }

    /// The stream of a call that has shown progress and runs until the test creates `file`.
    pub async fn stream_until(&self, file: &str) -> Response {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
        let result = r#"{"content":[{"type":"text","text":"done"}]}"#;
        let steps = json!([{"send": note}, {"wait_file": file}, {"result": result}]);
        let mut params = call_params("script", json!({"steps": steps}));
        params["_meta"] = json!({"progressToken": "t"});
        let mut stream = self.open("tools/call", params).await;
        stream.until_method("notifications/progress").await;
        stream
    }
}

impl Peer {
    /// A legacy client with a session of its own, and with this identity where there is one.
    pub async fn legacy_http(&self, identity: Option<&str>) -> HttpPeer {
        let client = self.client_of(identity).await;
        client.initialize().await;
        client
    }

    /// A modern client.
    pub async fn modern_http(&self, identity: Option<&str>) -> HttpPeer {
        let client = self.client_of(identity).await;
        client.become_modern("test-client", json!({}));
        client
    }

    async fn client_of(&self, identity: Option<&str>) -> HttpPeer {
        let client = self.http().await;
        match identity {
            Some(who) => client.with_header("authorization", &format!("Bearer {who}")),
            None => client,
        }
    }

    /// Waits until the server has the call that runs until `file` is there.
    pub async fn has_call_until(&self, file: &str) {
        let path = format!(r#""path":"{file}""#);
        self.journal_wait(|entry| entry.is_call_of("wait_file") && entry.line.contains(&path))
            .await;
    }

    /// The client calls a tool that runs until `file` is there, and hangs up once the server has it.
    pub async fn hung_up(&self, client: &HttpPeer, file: &str) {
        tokio::select! {
            answer = client.call("wait_file", until(file)) => panic!("answered: {}", answer.raw),
            () = self.has_call_until(file) => {}
        }
    }
}
