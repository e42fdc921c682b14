//! The life of a link as a whole: its beginning, the one stream of HTTP+SSE, and its end.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Uri};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::rpc::id::Id;
use crate::rpc::message::Kind;
use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::{From, Loss};

use super::link::Link;
use super::message::Message;
use super::request_body::RequestBody;
use super::state::{CONNECTING, Token};
use super::stream::Stream;
use super::{Spoken, two_ways};

/// How long the server has to hear that a session is over.
const GOODBYE: Duration = Duration::from_secs(1);

/// How a life ended.
pub struct Ended {
    /// one sentence
    pub cause: Arc<str>,
    /// nothing was sent
    pub untouched: bool,
}

impl Link {
    /// The whole life: until `stop` is fired, or the server is lost as a whole.
    pub async fn run(self: Arc<Self>, stop: Arc<Notify>) -> Ended {
        let ended = tokio::select! {
            biased;
            () = stop.notified() => None,
            ended = self.live() => Some(ended),
        };
        self.close().await;
        ended.unwrap_or_else(|| {
            let address = self.remote.address();
            let cause = format!("the connection to the server at {address} was closed");
            Ended { cause: cause.into(), untouched: false }
        })
    }

    async fn live(self: &Arc<Self>) -> Ended {
        if let Err(cause) = self.remote.warm_up().await {
            return Ended { cause: cause.into(), untouched: true };
        }
        if self.remote.spoken() == Some(Spoken::TwoWays) {
            if let Err(loss) = self.open_two_ways().await {
                return self.refused(&loss);
            }
        } else {
            self.open_gate(CONNECTING);
        }
        let stream = loop {
            let stream = self.state().stream.take();
            match stream {
                Some(stream) => break stream,
                None => self.switched.notified().await,
            }
        };
        let cause = two_ways::read(self, stream).await;
        Ended { cause: cause.into(), untouched: false }
    }

    /// The stream is opened for the first message: what goes with that may be what opens it.
    async fn open_two_ways(self: &Arc<Self>) -> Result<(), Loss> {
        let headers = loop {
            let first =
                self.state().waiting.front().map(|message| message.outgoing.headers.clone());
            match first {
                Some(headers) => break headers,
                None => self.asked.notified().await,
            }
        };
        let (stream, address) = two_ways::open(self.clone(), headers).await?;
        self.switch(stream, address);
        self.open_gate(CONNECTING);
        Ok(())
    }

    /// From here on messages go to this address, and the server speaks on this stream.
    pub(super) fn switch(&self, stream: Stream, address: Uri) {
        self.remote.found(Spoken::TwoWays);
        let mut state = self.state();
        state.two_ways = Some(address);
        state.stream = Some(stream);
        drop(state);
        self.switched.notify_one();
    }

    /// The server refuses its stream, and so whoever waits.
    fn refused(&self, loss: &Loss) -> Ended {
        let waiting: Vec<Message> = self.state().waiting.drain(..).collect();
        for id in waiting.iter().filter_map(|message| message.outgoing.id.as_ref()) {
            let Loss { cause, reached, refusal } = loss;
            let loss = Loss { cause: cause.clone(), reached: *reached, refusal: refusal.clone() };
            self.events.request_lost(id, loss);
        }
        Ended { cause: loss.cause.clone(), untouched: true }
    }

    /// A message on the one stream of HTTP+SSE.
    pub(super) fn heard(&self, heard: &ParsedLine) {
        let token = self.note_answer(heard);
        self.events.message(heard, From::default());
        if let Some(token) = token {
            self.open_gate(token);
        }
    }

    /// The request that this is the answer to has it.
    fn note_answer(&self, heard: &ParsedLine) -> Option<Token> {
        let ParsedLine::Object { envelope, .. } = heard else { return None };
        let id = envelope.id.filter(|_| envelope.kind() == Kind::Response).and_then(Id::parse)?;
        let token = self.state().token_of(&id)?;
        self.agreed(token, envelope);
        self.answer_came(Some(&id), token);
        Some(token)
    }

    /// Drops all streams, and tells a legacy server that its session is over.
    async fn close(&self) {
        let (mut tasks, session) = {
            let mut state = self.state();
            (state.close(), state.session.clone())
        };
        tasks.shutdown().await;
        if session.id.is_some() {
            let mut headers = self.remote.base().clone();
            session.put_into(&mut headers);
            let url = self.remote.url();
            let goodbye = self.remote.send(Method::DELETE, url, headers, RequestBody::default());
            let _ = timeout(GOODBYE, goodbye).await;
        }
    }
}
