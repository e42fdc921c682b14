//! One life of a server at a URL: its beginning, the one stream of HTTP+SSE, and its end.
//!
//! In which order messages leave is in `order.rs`, what exchanges tell in `told.rs`, and what
//! becomes of a session that the server has forgotten in `forgotten.rs`.

mod forgotten;
mod order;
mod state;
mod told;

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::rpc::id::Id;
use crate::rpc::message::Kind;
use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::life::{Life, LifeEnd, LifeKeeper, LifeTerms};
use crate::upstream::observer::{Loss, MessageOrigin};

use super::context::LifeContext;
use super::exchange::{ExchangeNumber, ExchangeObserver};
use super::http_sse;
use super::queued_message::QueuedMessage;
use super::remote::{RemoteServer, SpokenTransport};
use super::request_body::Backlog;

use state::{CONNECTING, HttpLifeState};

/// How long the server has to hear that a session is over.
const GOODBYE: Duration = Duration::from_secs(1);

/// Begins a life of a server. It is connected to once the life runs.
pub(crate) fn begin(remote: &Arc<RemoteServer>, terms: LifeTerms) -> Life {
    let life = HttpLife::new(remote.clone(), terms);
    let stop = Arc::new(Notify::new());
    let run = Box::pin(life.clone().run(stop.clone()));
    Life { sink: life, stop, run }
}

/// One life of a server.
pub(crate) struct HttpLife {
    context: Arc<LifeContext>,
    keeper: Weak<dyn LifeKeeper>,
    /// what has not left
    backlog: Arc<Backlog>,
    me: Weak<HttpLife>,
    state: Mutex<HttpLifeState>,
    /// fired when a message waits
    message_waits: Notify,
    /// fired when the server was found to speak HTTP+SSE
    stream_opened: Notify,
}

impl HttpLife {
    /// Nothing is sent before [`HttpLife::run`].
    fn new(remote: Arc<RemoteServer>, terms: LifeTerms) -> Arc<Self> {
        let LifeTerms { observer, keeper, limit, .. } = terms;
        Arc::new_cyclic(|me| HttpLife {
            context: Arc::new(LifeContext { remote, observer, limit }),
            keeper,
            backlog: Arc::default(),
            me: me.clone(),
            state: Mutex::new(HttpLifeState::new()),
            message_waits: Notify::new(),
            stream_opened: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, HttpLifeState> {
        self.state.lock().expect("no panic while the life is held")
    }

    /// The whole life: until `stop` is fired, or the server is lost as a whole.
    async fn run(self: Arc<Self>, stop: Arc<Notify>) -> LifeEnd {
        let ended = tokio::select! {
            biased;
            () = stop.notified() => None,
            ended = self.live() => Some(ended),
        };
        self.close().await;
        ended.unwrap_or_else(|| {
            let address = self.context.remote.address();
            let cause = format!("the connection to the server at {address} was closed");
            LifeEnd { cause: cause.into(), nothing_sent: false }
        })
    }

    async fn live(&self) -> LifeEnd {
        let remote = &self.context.remote;
        if let Err(error) = remote.connect_ahead().await {
            return LifeEnd { cause: error.to_string().into(), nothing_sent: true };
        }
        if remote.transport() == Some(SpokenTransport::HttpSse) {
            if let Err(loss) = self.open_http_sse().await {
                return self.refused(&loss);
            }
        } else {
            self.open_gate(CONNECTING);
        }
        let stream = loop {
            let stream = self.state().http_sse_stream.take();
            match stream {
                Some(stream) => break stream,
                None => self.stream_opened.notified().await,
            }
        };
        let why = http_sse::read(stream, |line| self.on_message(line)).await;
        let cause = format!("the stream of the server at {} broke: {why}", remote.address());
        LifeEnd { cause: cause.into(), nothing_sent: false }
    }

    /// The stream is opened for the first message: what goes with that may be what opens it.
    async fn open_http_sse(&self) -> Result<(), Loss> {
        let headers = loop {
            let first = self.state().waiting.front().map(|first| first.outgoing.headers.clone());
            match first {
                Some(headers) => break headers,
                None => self.message_waits.notified().await,
            }
        };
        let (stream, address) = http_sse::open(self.context.clone(), headers).await?;
        self.switched(stream, address);
        self.open_gate(CONNECTING);
        Ok(())
    }

    /// The server refuses its stream: whoever waits is told so.
    fn refused(&self, loss: &Loss) -> LifeEnd {
        let waiting: Vec<QueuedMessage> = self.state().waiting.drain(..).collect();
        for id in waiting.iter().filter_map(|message| message.outgoing.id.as_ref()) {
            let Loss { cause, reached, refusal } = loss;
            let loss = Loss { cause: cause.clone(), reached: *reached, refusal: refusal.clone() };
            self.context.observer.request_lost(id, loss);
        }
        LifeEnd { cause: loss.cause.clone(), nothing_sent: true }
    }

    /// A message on the one stream of HTTP+SSE.
    fn on_message(&self, line: &ParsedLine) {
        let number = self.note_answer(line);
        self.context.observer.message(line, MessageOrigin::default());
        if let Some(number) = number {
            self.open_gate(number);
        }
    }

    /// Notes that a request has this as its answer.
    fn note_answer(&self, line: &ParsedLine) -> Option<ExchangeNumber> {
        let envelope = line.envelope()?;
        let id = envelope.id.filter(|_| envelope.kind() == Kind::Response).and_then(Id::parse)?;
        let number = self.state().number_of(&id)?;
        self.revision_agreed(number, envelope);
        self.answered(Some(&id), number);
        Some(number)
    }

    /// Drops all streams, and tells a legacy server that its session is over.
    async fn close(&self) {
        let (mut tasks, session) = {
            let mut state = self.state();
            (state.close(), state.session.clone())
        };
        tasks.shutdown().await;
        if session.id.is_some() {
            let mut headers = self.context.remote.base().clone();
            session.put_into(&mut headers);
            let _ = timeout(GOODBYE, self.context.remote.delete(headers)).await;
        }
    }
}
