//! Streamable HTTP under a `Peer`: every line that it sends is posted, every message that comes on
//! whatever stream is a line that it reads.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{HttpPeer, Response};
use crate::support::json::{member, messages, string};
use crate::support::peer::{Sink, Source};
use crate::support::transcript::Transcript;
use crate::support::{Answer, Line};

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
    let (sender, mut lines) = unbounded_channel::<String>();
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
            post_all(Arc::new(HttpPeer::at(&url)), from_peer, sender).await;
        }
    });
    (Box::new(to), Box::new(from))
}

/// Posts in order. Only requests are not waited for; an `initialize` is, as the session comes with it.
async fn post_all(http: Arc<HttpPeer>, lines: DuplexStream, out: UnboundedSender<String>) {
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let method = member(&line, "method").and_then(string);
        match method.as_deref() {
            Some("initialize") => exchange(&http, &line, &out).await,
            Some("notifications/initialized") => {
                exchange(&http, &line, &out).await;
                tokio::spawn(read_apart(Arc::clone(&http), out.clone()));
            }
            _ if messages(&line).into_iter().any(is_request) => {
                let (http, out) = (Arc::clone(&http), out.clone());
                tokio::spawn(async move { exchange(&http, &line, &out).await });
            }
            _ => exchange(&http, &line, &out).await,
        }
    }
    if http.session().is_some() {
        http.delete().await;
    }
}

fn is_request(message: &str) -> bool {
    member(message, "id").is_some() && member(message, "method").is_some()
}

/// Posts a line and passes on what it is answered with. A request that gets no answer gets one made
/// up here, so that no test waits for it in vain.
async fn exchange(http: &HttpPeer, line: &str, out: &UnboundedSender<String>) {
    let mut response = http.post(line).await;
    let mut answered = false;
    while let Some(message) = response.message().await {
        if member(line, "method") == Some("\"initialize\"") {
            http.learn(&response, &Answer::new(&message.text));
        }
        answered |= message.method().is_none() && message.id() != Some("null");
        let _ = out.send(message.text);
    }
    if !answered && is_request(line) {
        let _ = out.send(no_answer(line, &response));
    }
}

fn no_answer(request: &str, response: &Response) -> String {
    let (id, status) = (member(request, "id").unwrap_or("null"), response.status);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no answer, status {status}"}}}}"#
    )
}

/// Passes on what belongs to no POST, where the server has a stream for it.
async fn read_apart(http: Arc<HttpPeer>, out: UnboundedSender<String>) {
    let mut stream = http.get_stream().await;
    while stream.is_events() {
        let Some(Line { text, .. }) = stream.message().await else { return };
        let _ = out.send(text);
    }
}
