//! Calls over HTTP that go to the background, and clients that hang up.

use std::future::Future;

use serde_json::{Value, json};

use super::{HttpPeer, Response};
use crate::{Answer, Peer, call_params, eventually, until};

impl HttpPeer {
    /// Calls a tool with this `_meta`.
    pub async fn call_with_meta(&self, tool: &str, args: Value, meta: Value) -> Answer {
        let mut params = call_params(tool, args);
        params["_meta"] = meta;
        self.ask("tools/call", params).await
    }

    /// Panics unless an ordinary call works.
    pub async fn assert_works(&self) {
        assert_eq!(self.call("echo", json!({"text": "works"})).await.text(), "works");
    }

    /// Calls a tool under the shortest budget and gets its handle.
    pub async fn defer(&self, tool: &str, args: Value) -> Answer {
        let handle = self.call_with_meta(tool, args, json!({"unhurry/answer_within": 0})).await;
        assert!(handle.is_handle(), "no handle: {}", handle.raw);
        handle
    }

    /// The handle of a call that runs until the test creates `file`.
    pub async fn park(&self, file: &str) -> Answer {
        self.defer("wait_file", until(file)).await
    }

    /// Sends a call and hangs up, unanswered, when `when` is over.
    pub async fn hang_up(&self, tool: &str, args: Value, when: impl Future<Output = ()>) {
        let message = self.request("tools/call", call_params(tool, args));
        tokio::select! {
            response = self.try_post(&message) => {
                panic!("answered: {:?}", response.map(|response| response.status))
            }
            () = when => {}
        }
    }

    /// What `job_get` says of a job at once.
    pub async fn look(&self, job: &str) -> Answer {
        self.call("job_get", json!({"job_id": job, "wait_seconds": 0})).await
    }

    /// What `job_get` says of a job when it has ended.
    pub async fn result_of(&self, job: &str) -> Answer {
        let first = self.call("job_get", json!({"job_id": job})).await;
        self.finish(first).await
    }

    /// The caller's jobs, newest first.
    pub async fn jobs(&self) -> Vec<Value> {
        let list = self.call("job_get", json!({})).await;
        let said: Value = serde_json::from_str(list.text()).unwrap_or_default();
        said["jobs"].as_array().unwrap_or_else(|| panic!("{}", list.raw)).clone()
    }

    /// Waits until the caller has so many jobs; the newest of them.
    pub async fn until_jobs(&self, count: usize) -> Value {
        let found = eventually(|| async {
            let jobs = self.jobs().await;
            (jobs.len() == count).then(|| jobs.into_iter().next().unwrap_or_default())
        });
        match found.await {
            Some(newest) => newest,
            None => panic!("not {count} jobs: {:?}", self.jobs().await),
        }
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
