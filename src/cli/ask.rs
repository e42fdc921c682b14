//! A short talk with the server, for `unhurry check`: what it is called, and which tools it has.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::config::Config;
use crate::mcp::meta::{SERVER_INFO, modern_meta};
use crate::mcp::method::Method;
use crate::mcp::revision::{MODERN, NEWEST_LEGACY};
use crate::rpc::id::Id;
use crate::rpc::outbox::Room;
use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::{
    Loss, MessageOrigin, Outgoing, Server, ServerEnd, ServerObserver, Supervisor,
};

/// Pages of tools that are read at the most.
const PAGES: usize = 200;
/// The longest that one answer is waited for, whatever `start_timeout` says.
const PATIENCE: Duration = Duration::from_secs(60);
/// How we call ourselves.
const NAME: &str = "unhurry-check";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a server says of itself.
pub struct Answers {
    pub name: String,
    pub protocol: String,
    pub tools: Vec<String>,
}

impl Answers {
    /// Starts or reaches the server, asks it, and ends it. The error is one sentence.
    pub async fn ask(server: Server, config: &Config) -> Result<Self, String> {
        let mut peer = Peer::new(server, config)?;
        let answers = peer.greet_and_list().await;
        peer.upstream.stop().await;
        answers
    }
}

/// What comes from the server.
enum News {
    Message(Value),
    /// a line that is no JSON-RPC
    Junk(String),
    /// no answer will come
    End(Arc<str>),
}

/// Passes on what comes from the server.
struct Ears(mpsc::UnboundedSender<News>);

impl ServerObserver for Ears {
    fn message(&self, heard: &ParsedLine, _: MessageOrigin) {
        let (ParsedLine::Object { text, .. }
        | ParsedLine::Array { text, .. }
        | ParsedLine::NoJson { text, .. }) = heard
        else {
            return;
        };
        let news = match serde_json::from_str(text) {
            Ok(message) => News::Message(message),
            Err(_) => News::Junk(text.chars().take(200).collect()),
        };
        let _ = self.0.send(news);
    }

    fn lost(&self, end: &ServerEnd) {
        let _ = self.0.send(News::End(end.cause.clone()));
    }

    fn request_lost(&self, _: &Id, loss: Loss) {
        let _ = self.0.send(News::End(loss.cause));
    }

    fn renewed(&self) {
        let _ = self.0.send(News::End("the server has forgotten its session".into()));
    }

    fn room(&self) -> Option<Room> {
        None
    }
}

/// A client of one server, for as long as it takes to ask.
struct Peer {
    upstream: Arc<Supervisor>,
    _ears: Arc<Ears>,
    news: mpsc::UnboundedReceiver<News>,
    patience: Duration,
    asked: u64,
    /// the first line that was no JSON-RPC
    junk: Option<String>,
}

impl Peer {
    fn new(server: Server, config: &Config) -> Result<Self, String> {
        let (sender, news) = mpsc::unbounded_channel();
        let ears = Arc::new(Ears(sender));
        let events: Weak<dyn ServerObserver> = Arc::downgrade(&ears) as _;
        let upstream = Supervisor::new(server, config.max_message, events);
        upstream.start().map_err(|error| error.to_string())?;
        let patience = config.start_timeout.min(PATIENCE);
        Ok(Peer { upstream, _ears: ears, news, patience, asked: 0, junk: None })
    }

    async fn greet_and_list(&mut self) -> Result<Answers, String> {
        let (name, protocol, meta) = self.greet().await?;
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let mut params = serde_json::Map::new();
            params.extend(meta.iter().map(|meta| ("_meta".to_owned(), meta.clone())));
            params.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
            // A server without tools is no fault.
            let Ok(page) = self.ask(Method::ListTools, params.into()).await? else { break };
            let listed = page["tools"].as_array().cloned().unwrap_or_default();
            tools.extend(listed.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned));
            match page.get("nextCursor") {
                Some(next) if next.is_string() => cursor = Some(next.clone()),
                _ => break,
            }
        }
        Ok(Answers { name, protocol, tools })
    }

    /// The handshake of the legacy era, or, where the server refuses it, that of the modern one.
    async fn greet(&mut self) -> Result<(String, String, Option<Value>), String> {
        let me = json!({ "name": NAME, "version": VERSION });
        let params =
            json!({ "protocolVersion": NEWEST_LEGACY, "capabilities": {}, "clientInfo": me });
        let text = |value: &Value| value.as_str().unwrap_or("unnamed").to_owned();
        match self.ask(Method::Initialize, params).await? {
            Ok(greeting) => {
                self.send(&json!({ "jsonrpc": "2.0", "method": Method::Initialized.as_str() }));
                let name = text(&greeting["serverInfo"]["name"]);
                Ok((name, text(&greeting["protocolVersion"]), None))
            }
            Err(refusal) => {
                let meta = modern_meta(MODERN, NAME, VERSION);
                let meta: Value = serde_json::from_str(&meta).expect("made by us");
                let found = self.ask(Method::Discover, json!({ "_meta": meta })).await?;
                let found =
                    found.map_err(|_| format!("the server refused initialize: {refusal}"))?;
                let info = &found["_meta"][SERVER_INFO];
                Ok((text(&info["name"]), MODERN.to_owned(), Some(meta)))
            }
        }
    }

    /// Sends a request and waits for its answer: the result, or the error that the server gave.
    async fn ask(&mut self, method: Method, params: Value) -> Result<Result<Value, Value>, String> {
        let method = method.as_str();
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let patience = self.patience;
        match timeout(patience, self.answer(id)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) => {
                Err(format!("no answer to {method} came from the server{}: {cause}", self.said()))
            }
            Err(_) => Err(format!(
                "the server has not answered {method} for {patience:?} (upstream.start_timeout){}",
                self.said()
            )),
        }
    }

    async fn answer(&mut self, id: u64) -> Result<Result<Value, Value>, Arc<str>> {
        loop {
            match self.news.recv().await {
                Some(News::Message(message)) => {
                    if message["id"] == id && message.get("method").is_none() {
                        return Ok(match message.get("error") {
                            Some(error) => Err(error.clone()),
                            None => Ok(message["result"].clone()),
                        });
                    }
                }
                Some(News::Junk(line)) => drop(self.junk.get_or_insert(line)),
                Some(News::End(cause)) => return Err(cause),
                None => return Err("it ended".into()),
            }
        }
    }

    /// What the server printed to stdout that is no JSON-RPC: often its usage.
    fn said(&self) -> String {
        match &self.junk {
            Some(first) => format!("; its stdout has what is no JSON-RPC: {first:?}"),
            None => String::new(),
        }
    }

    fn send(&self, message: &Value) {
        self.upstream.send_if_up(Outgoing::parse(message.to_string().into(), None));
    }
}
