//! A plain MCP client over stdio: it knows nothing of unhurry.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout};

use crate::mcp::method::Method;
use crate::mcp::revision::NEWEST_LEGACY;

use super::error::DemoError;
use super::transcript::{Direction, Entry};

/// The longest that an answer is waited for, where the scene sets no limit of its own.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A client, the process it talks with, and what they said.
pub(crate) struct Client {
    /// What the process is called in errors.
    peer: &'static str,
    process: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    last_id: u64,
    pub transcript: Vec<Entry>,
}

impl Client {
    /// Starts the process. It ends with the client.
    ///
    /// # Errors
    /// It can't be started.
    pub(crate) fn start(peer: &'static str, mut command: Command) -> Result<Self, DemoError> {
        let spawned =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut process = spawned.map_err(|cause| DemoError::Start {
            program: command.as_std().get_program().into(),
            cause,
        })?;
        let stdin = process.stdin.take().expect("piped above");
        let stdout = BufReader::new(process.stdout.take().expect("piped above")).lines();
        Ok(Client { peer, process, stdin, stdout, last_id: 0, transcript: Vec::new() })
    }

    /// Adds a sentence to the transcript.
    pub(crate) fn note(&mut self, text: &'static str) {
        self.transcript.push(Entry::Note(text));
    }

    /// The handshake of MCP.
    ///
    /// # Errors
    /// There is no answer, or a refusal.
    pub(crate) async fn initialize(&mut self) -> Result<(), DemoError> {
        let client_info = json!({ "name": "demo-client", "version": "1" });
        let params = json!({
            "protocolVersion": NEWEST_LEGACY, "capabilities": {}, "clientInfo": client_info
        });
        self.ask(Method::Initialize, params).await?;
        self.send(json!({ "jsonrpc": "2.0", "method": Method::Initialized.as_str() })).await
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// There is no answer, or a refusal.
    pub(crate) async fn ask(&mut self, method: Method, params: Value) -> Result<Value, DemoError> {
        let id = self.request(method, params).await?;
        self.result(id, method).await
    }

    /// Sends a request, and returns its id.
    ///
    /// # Errors
    /// The pipe is broken.
    pub(crate) async fn request(
        &mut self,
        method: Method,
        params: Value,
    ) -> Result<u64, DemoError> {
        self.last_id += 1;
        let id = self.last_id;
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": method.as_str(), "params": params });
        self.send(request).await?;
        Ok(id)
    }

    /// Says that an answer is no longer waited for.
    ///
    /// # Errors
    /// The pipe is broken.
    pub(crate) async fn cancel(&mut self, id: u64) -> Result<(), DemoError> {
        let params = json!({ "requestId": id, "reason": "timed out" });
        let method = Method::Cancelled.as_str();
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    async fn send(&mut self, message: Value) -> Result<(), DemoError> {
        let line = message.to_string();
        let sent = self.stdin.write_all(format!("{line}\n").as_bytes()).await;
        sent.map_err(|cause| DemoError::Pipe { peer: self.peer, cause })?;
        self.transcript.push(Entry::Message {
            direction: Direction::Sent,
            at: Instant::now(),
            line,
        });
        Ok(())
    }

    /// Waits for the result of a request.
    ///
    /// # Errors
    /// There is none in 30 s, it can't be read, or the request was refused.
    pub(crate) async fn result(&mut self, id: u64, method: Method) -> Result<Value, DemoError> {
        let (peer, method, limit) = (self.peer, method.as_str(), ANSWER_LIMIT);
        match timeout(limit, self.answer(id)).await {
            Ok(Ok(Some(mut answer))) => match answer.get("error") {
                Some(error) => Err(DemoError::Refused { peer, method, refusal: error.to_string() }),
                None => Ok(answer["result"].take()),
            },
            Ok(Ok(None)) => Err(DemoError::Ended { peer, method }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(DemoError::Silent { peer, method, limit }),
        }
    }

    /// The answer to a request; `None` where the process ends without one.
    async fn answer(&mut self, id: u64) -> Result<Option<Value>, DemoError> {
        let peer = self.peer;
        loop {
            let line = self.stdout.next_line().await;
            let line = line.map_err(|cause| DemoError::Pipe { peer, cause })?;
            let Some(line) = line else { return Ok(None) };
            let message: Value =
                serde_json::from_str(&line).map_err(|cause| DemoError::NoJson { peer, cause })?;
            let at = Instant::now();
            self.transcript.push(Entry::Message { direction: Direction::Received, at, line });
            if message["id"] == id && message.get("method").is_none() {
                return Ok(Some(message));
            }
        }
    }

    /// Waits for the end of the process, which comes by itself once its stdin is closed, and returns
    /// the transcript.
    ///
    /// # Errors
    /// The end can't be waited for.
    pub(crate) async fn stop(self) -> Result<Vec<Entry>, DemoError> {
        let Client { peer, mut process, stdin, transcript, .. } = self;
        drop(stdin);
        match timeout(ANSWER_LIMIT, process.wait()).await {
            Ok(Err(cause)) => Err(DemoError::Pipe { peer, cause }),
            // A process that stays is ended as it is dropped.
            Ok(Ok(_)) | Err(_) => Ok(transcript),
        }
    }
}
