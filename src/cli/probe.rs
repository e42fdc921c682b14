//! Asks a server, for `unhurry check`, what it is called and which tools it has.

use std::fmt;
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
    Loss, MessageOrigin, Outgoing, Server, ServerEnd, ServerObserver, StartError, Supervisor,
};

/// Pages of tools that are read at the most.
const PAGES: usize = 200;
/// The longest that one answer is waited for, whatever `start_timeout` says.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// The `clientInfo` that the server is given.
const NAME: &str = "unhurry-check";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a server says of itself.
pub(crate) struct Description {
    /// `serverInfo.name`
    pub name: String,
    /// the revision that it chose
    pub protocol: String,
    /// the names of its tools
    pub tools: Vec<String>,
}

/// Why a server could not be asked: one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// It can't be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It speaks neither era of MCP.
    #[error("the server refused initialize: {0}")]
    Refused(Value),
    /// It ended, or its connection broke.
    #[error("no answer to {method} came from the server{stray}: {cause}")]
    NoAnswer { method: &'static str, stray: StrayOutput, cause: Arc<str> },
    /// It says nothing.
    #[error("the server has not answered {method} for {limit:?} (upstream.start_timeout){stray}")]
    Silent { method: &'static str, limit: Duration, stray: StrayOutput },
}

/// The first line on the server's stdout that was no JSON-RPC, often its usage; empty where there
/// was none.
#[derive(Clone, Debug, Default)]
pub(crate) struct StrayOutput(Option<String>);

impl fmt::Display for StrayOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(line) => write!(f, "; its stdout has what is no JSON-RPC: {line:?}"),
            None => Ok(()),
        }
    }
}

/// Starts or reaches the server, asks it, and ends it.
///
/// # Errors
/// It can't be started or reached, refuses to be asked, or does not answer.
pub(crate) async fn probe(server: Server, config: &Config) -> Result<Description, ProbeError> {
    let mut probe = Probe::start(server, config)?;
    let description = probe.describe().await;
    probe.upstream.stop().await;
    description
}

/// What comes from the server.
enum Incoming {
    Message(Value),
    /// A line that is no JSON-RPC.
    Stray(String),
    /// No answer will come, for this reason.
    End(Arc<str>),
}

/// Passes on what comes from the server to whoever waits for it.
struct Forwarder(mpsc::UnboundedSender<Incoming>);

impl ServerObserver for Forwarder {
    fn message(&self, parsed: &ParsedLine, _: MessageOrigin) {
        let (ParsedLine::Object { text, .. }
        | ParsedLine::Array { text, .. }
        | ParsedLine::NoJson { text, .. }) = parsed
        else {
            return;
        };
        let incoming = match serde_json::from_str(text) {
            Ok(message) => Incoming::Message(message),
            Err(_) => Incoming::Stray(text.chars().take(200).collect()),
        };
        let _ = self.0.send(incoming);
    }

    fn lost(&self, end: &ServerEnd) {
        let _ = self.0.send(Incoming::End(end.cause.clone()));
    }

    fn request_lost(&self, _: &Id, loss: Loss) {
        let _ = self.0.send(Incoming::End(loss.cause));
    }

    fn renewed(&self) {
        let _ = self.0.send(Incoming::End("the server has forgotten its session".into()));
    }

    fn room(&self) -> Option<Room> {
        None
    }
}

/// What a server answers: its result, or its error.
type Answer = Result<Value, Value>;

/// A client of one server, for as long as it takes to ask.
struct Probe {
    upstream: Arc<Supervisor>,
    /// The supervisor holds it weakly.
    _forwarder: Arc<Forwarder>,
    incoming: mpsc::UnboundedReceiver<Incoming>,
    limit: Duration,
    last_id: u64,
    stray: StrayOutput,
}

impl Probe {
    fn start(server: Server, config: &Config) -> Result<Self, ProbeError> {
        let (sender, incoming) = mpsc::unbounded_channel();
        let forwarder = Arc::new(Forwarder(sender));
        let events: Weak<dyn ServerObserver> = Arc::downgrade(&forwarder) as _;
        let upstream = Supervisor::new(server, config.max_message, events);
        upstream.start()?;
        let limit = config.start_timeout.min(ANSWER_LIMIT);
        let stray = StrayOutput::default();
        Ok(Probe { upstream, _forwarder: forwarder, incoming, limit, last_id: 0, stray })
    }

    async fn describe(&mut self) -> Result<Description, ProbeError> {
        let (name, protocol, meta) = self.initialize().await?;
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
        Ok(Description { name, protocol, tools })
    }

    /// The handshake of the legacy era, or, where the server refuses it, that of the modern one.
    ///
    /// Returns the server's name and revision, and the `_meta` that its requests need.
    async fn initialize(&mut self) -> Result<(String, String, Option<Value>), ProbeError> {
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
                let found = found.map_err(|_| ProbeError::Refused(refusal))?;
                let info = &found["_meta"][SERVER_INFO];
                Ok((text(&info["name"]), MODERN.to_owned(), Some(meta)))
            }
        }
    }

    /// Sends a request and waits for its answer: the result, or the error that the server gave.
    async fn ask(&mut self, method: Method, params: Value) -> Result<Answer, ProbeError> {
        let method = method.as_str();
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let limit = self.limit;
        let answer = timeout(limit, self.answer(id)).await;
        let stray = self.stray.clone();
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) => Err(ProbeError::NoAnswer { method, stray, cause }),
            Err(_) => Err(ProbeError::Silent { method, limit, stray }),
        }
    }

    /// The answer to a request, or why there will be none.
    async fn answer(&mut self, id: u64) -> Result<Answer, Arc<str>> {
        loop {
            match self.incoming.recv().await {
                Some(Incoming::Message(message)) => {
                    if message["id"] == id && message.get("method").is_none() {
                        return Ok(match message.get("error") {
                            Some(error) => Err(error.clone()),
                            None => Ok(message["result"].clone()),
                        });
                    }
                }
                Some(Incoming::Stray(line)) => drop(self.stray.0.get_or_insert(line)),
                Some(Incoming::End(cause)) => return Err(cause),
                None => return Err("it ended".into()),
            }
        }
    }

    fn send(&self, message: &Value) {
        self.upstream.send_if_up(Outgoing::parse(message.to_string().into(), None));
    }
}
