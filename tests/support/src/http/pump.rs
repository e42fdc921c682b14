//! Streamable HTTP under a `Peer`: every line that it sends is posted, every message that comes on
//! whatever stream is a line that it reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use super::{HttpPeer, Response};
use crate::json::{member, messages, path, string};
use crate::peer::{Sink, Source};
use crate::transcript::Transcript;
use crate::{Answer, Line};

/// Room for what is on its way.
const ROOM: usize = 1 << 20;

/// What a program writes that says, once it listens, at which URL.
#[derive(Clone)]
pub struct Listening(pub Transcript);

impl Listening {
    /// Waits for the URL.
    pub async fn url(&self) -> Option<String> {
        self.0.find(0, |line| url_in(&line.text)).await
    }
}

/// The URL in a line that says `listening on URL`, whatever stands around it.
pub fn url_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("listening on http://")?;
    let is_end = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == ',';
    let rest = rest.split(is_end).next()?;
    Some(format!("http://{rest}"))
}

/// The two ways of a peer to what listens.
pub fn pump(listening: Listening) -> (Sink, Source) {
    let ((to, from_peer), (to_peer, from)) = (duplex(ROOM), duplex(ROOM));
    let (out, mut lines) = unbounded_channel::<String>();
    tokio::spawn(async move {
        let mut to_peer = to_peer;
        while let Some(line) = lines.recv().await {
            if to_peer.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        if let Some(url) = listening.url().await {
            let (http, modern) = (HttpPeer::at(&url), Mutex::default());
            post_all(Arc::new(Pump { http, out, modern }), from_peer).await;
        }
    });
    (Box::new(to), Box::new(from))
}

/// A client at work.
struct Pump {
    http: HttpPeer,
    out: UnboundedSender<String>,
    /// The modern requests under way by raw id.
    modern: Mutex<HashMap<String, AbortHandle>>,
}

/// Posts in order. Only requests are not waited for; an `initialize` is, as the session comes with it.
async fn post_all(pump: Arc<Pump>, lines: DuplexStream) {
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match method_of(&line).as_deref() {
            Some("notifications/initialized") => {
                pump.exchange(&line).await;
                tokio::spawn(read_apart(Arc::clone(&pump)));
            }
            Some("notifications/cancelled") if pump.hangs_up(&line) => {}
            Some("initialize") => pump.exchange(&line).await,
            _ if messages(&line).into_iter().any(is_request) => pump.start(line),
            _ => pump.exchange(&line).await,
        }
    }
    if pump.http.session().is_some() {
        pump.http.delete().await;
    }
}

fn method_of(message: &str) -> Option<String> {
    member(message, "method").and_then(string)
}

fn is_request(message: &str) -> bool {
    member(message, "id").is_some() && member(message, "method").is_some()
}

impl Pump {
    fn start(self: &Arc<Self>, line: String) {
        let id = member(&line, "id").filter(|_| is_modern(&line)).map(str::to_owned);
        let pump = Arc::clone(self);
        let task = tokio::spawn(async move { pump.exchange(&line).await });
        if let Some(id) = id {
            self.modern.lock().expect("no holder panics").insert(id, task.abort_handle());
        }
    }

    /// Cancels a modern request, which over HTTP is done by hanging up; false if it is none.
    fn hangs_up(&self, notification: &str) -> bool {
        let id = path(notification, &["params", "requestId"]).unwrap_or_default();
        let task = self.modern.lock().expect("no holder panics").remove(id);
        task.map(|task| task.abort()).is_some()
    }

    /// Posts a line and passes on what it is answered with. A request that gets no answer gets one
    /// made up here, so that no test waits for it in vain.
    async fn exchange(&self, line: &str) {
        let end = match self.http.try_post(line).await {
            Ok(response) => self.pass_on(line, response).await,
            Err(error) => Some(error),
        };
        if let Some(end) = end.filter(|_| is_request(line)) {
            let (id, words) = (member(line, "id").unwrap_or("null"), Value::from(end));
            let error = format!(r#"{{"code":-32000,"message":{words}}}"#);
            self.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
        }
    }

    /// Passes on all messages; says how it ended if none of them was the answer.
    async fn pass_on(&self, line: &str, mut response: Response) -> Option<String> {
        let mut answered = false;
        while let Some(message) = response.message().await {
            if method_of(line).as_deref() == Some("initialize") {
                self.http.learn(&response, &Answer::new(&message.text));
            }
            answered |= message.method().is_none() && message.id() != Some("null");
            self.write(message.text);
        }
        (!answered).then(|| format!("no answer, status {}", response.status))
    }

    /// A message may stand on several lines. Nobody may be left to read it.
    fn write(&self, message: String) {
        let line =
            if message.contains('\n') { message.replace(['\r', '\n'], " ") } else { message };
        let _ = self.out.send(line);
    }
}

fn is_modern(message: &str) -> bool {
    path(message, &["params", "_meta", "io.modelcontextprotocol/protocolVersion"]).is_some()
}

/// Passes on what belongs to no POST, where the server has a stream for it.
async fn read_apart(pump: Arc<Pump>) {
    let mut stream = pump.http.get_stream().await;
    while stream.is_events() {
        let Some(Line { text, .. }) = stream.message().await else { return };
        pump.write(text);
    }
}
