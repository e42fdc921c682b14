//! One message and what the server answers to it.

use std::str::from_utf8;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{Response, StatusCode, Uri};
use tokio::time::timeout;
use tracing::debug;

use crate::mcp::error_code::{self, METHOD_NOT_FOUND};
use crate::mcp::header::SESSION_ID;
use crate::rpc::id::Id;
use crate::rpc::lines::Line;
use crate::rpc::message::Envelope;
use crate::rpc::parsed_line::ParsedLine;
use crate::rpc::splice::Edits;
use crate::upstream::outgoing::Role;
use crate::upstream::{From, Loss};

use super::incoming::{gather, is_event_stream};
use super::link::Link;
use super::loss;
use super::message::{Message, Session};
use super::pool::{Received, Unsent};
use super::request_body::RequestBody;
use super::stream::{PATIENCE, REFUSAL, Stream, UNNEEDED};
use super::{Spoken, two_ways};

/// How long a stream may stay open after its answer, so that its connection can be used again.
const LINGER: Duration = Duration::from_secs(1);

/// One message on its way, and its answer.
pub struct Exchange {
    pub link: Arc<Link>,
    pub message: Message,
    /// as it was when the message left
    pub session: Arc<Session>,
    /// where messages go in HTTP+SSE
    pub two_ways: Option<Uri>,
    /// tells it from others
    pub token: u64,
}

/// How an exchange ended.
pub enum Outcome {
    /// answered, or there was nothing to answer
    Done,
    /// the answer comes on another stream
    Sent,
    Lost(Loss),
    /// the server does not know the session (404)
    Forgotten,
}

impl Exchange {
    /// Sends the message and handles whatever comes back.
    pub async fn run(self) {
        let outcome = self.converse().await;
        let Exchange { link, message, session, token, .. } = self;
        link.over(message, &session, token, outcome);
    }

    async fn converse(&self) -> Outcome {
        if let Some(address) = &self.two_ways {
            return self.post_two_ways(address).await;
        }
        let remote = &self.link.remote;
        let url = remote.url();
        let mut posted = self.post(url).await;
        // The server has not looked at a message that it sends elsewhere.
        if posted.as_ref().is_ok_and(|response| remote.follows(url, response)) {
            posted = self.post(remote.url()).await;
        }
        let response = match posted {
            Ok(response) => response,
            Err(error) => return self.unsent(&error),
        };
        let opens = matches!(self.message.outgoing.role, Role::Initialize | Role::Discover);
        if !response.status().is_success() {
            return self.refused(response).await;
        }
        if opens {
            self.link.remote.found(Spoken::Streamable);
        }
        if self.message.outgoing.role == Role::Initialize {
            let id = response.headers().get(SESSION_ID).cloned();
            self.link.session_opened(self.token, id);
        }
        if self.message.outgoing.id.is_some() {
            return self.answered(response).await;
        }
        self.accepted(response).await;
        Outcome::Done
    }

    /// Sends the message; waits for the head of the answer.
    async fn post(&self, url: &Uri) -> Result<Response<Received>, Unsent> {
        let Message { outgoing, sent, .. } = &self.message;
        let remote = &self.link.remote;
        let headers = self.message.post_headers(remote.post_base(), &self.session);
        let body = RequestBody::message(outgoing.bytes.clone(), sent.clone());
        let response = remote.post(url, headers, body).await;
        if response.is_ok() {
            sent.met();
        }
        response
    }

    fn unsent(&self, error: &Unsent) -> Outcome {
        let left = self.message.sent.has_left();
        Outcome::Lost(loss::unsent(self.link.remote.address(), error, left))
    }

    /// HTTP+SSE: the answer comes on the one stream that there is.
    async fn post_two_ways(&self, address: &Uri) -> Outcome {
        match self.post(address).await {
            Ok(response) if response.status().is_success() => {
                self.accepted(response).await;
                Outcome::Sent
            }
            Ok(response) => {
                let (head, body) = read_refusal(response, self.link.limit).await;
                self.settled(&head, body)
            }
            Err(error) => self.unsent(&error),
        }
    }

    /// A success that brings nothing.
    async fn accepted(&self, response: Response<Received>) {
        self.link.accepted(&self.message, self.token);
        // To its end, so that the connection can be used again.
        let _ = timeout(LINGER, gather(response.into_body(), UNNEEDED)).await;
    }

    /// A success: the answer is in the body, or on the stream that it is.
    async fn answered(&self, response: Response<Received>) -> Outcome {
        if is_event_stream(&response) {
            return self.read_stream(response).await;
        }
        let (head, body) = response.into_parts();
        match gather(body, self.link.limit).await {
            Ok(Some(line)) => match self.take_up(line, None) {
                None => Outcome::Done,
                Some(rest) => Outcome::Lost(loss::status(self.link.remote.address(), &head, rest)),
            },
            Ok(None) => {
                let nothing = Bytes::new();
                Outcome::Lost(loss::status(self.link.remote.address(), &head, nothing))
            }
            Err(why) => Outcome::Lost(loss::begun(self.broken(&why))),
        }
    }

    /// Anything but a success.
    async fn refused(&self, response: Response<Received>) -> Outcome {
        let (head, body) = read_refusal(response, self.link.limit).await;
        if self.is_forgotten(head.status, body.as_ref()) {
            return Outcome::Forgotten;
        }
        if self.may_be_two_ways(head.status, body.as_ref()) {
            match two_ways::open(self.link.clone(), self.message.outgoing.headers.clone()).await {
                Ok((stream, address)) => {
                    self.link.switch(stream, address.clone());
                    return self.post_two_ways(&address).await;
                }
                Err(loss) => debug!("no HTTP+SSE either: {}", loss.cause),
            }
        }
        self.settled(&head, body)
    }

    /// A refusal that is final: it may be a message all the same.
    fn settled(&self, head: &Parts, body: Option<Line>) -> Outcome {
        let refused = matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let rest = match body {
            Some(line) if !refused && self.message.outgoing.id.is_some() => {
                match self.take_up(line, Some(head.status)) {
                    None => return Outcome::Done,
                    Some(rest) => rest,
                }
            }
            Some(Line::Whole(body)) => body.slice(..body.len().min(UNNEEDED)),
            _ => Bytes::new(),
        };
        Outcome::Lost(loss::status(self.link.remote.address(), head, rest))
    }

    /// Whether the server does not know the session that the message was in.
    fn is_forgotten(&self, status: StatusCode, body: Option<&Line>) -> bool {
        let in_session = self.session.id.is_some() && !self.message.is_modern();
        let is_about_method = || body.is_some_and(|body| self.is_unknown_method(body));
        status == StatusCode::NOT_FOUND
            && in_session
            && self.message.outgoing.role != Role::Initialize
            && !is_about_method()
    }

    /// Whether this refusal is one of a server that speaks HTTP+SSE (protocol §1.3).
    fn may_be_two_ways(&self, status: StatusCode, body: Option<&Line>) -> bool {
        let opens = matches!(self.message.outgoing.role, Role::Initialize | Role::Discover);
        let modern = body.and_then(code_of).is_some_and(|code| error_code::MODERN.contains(&code));
        let statuses =
            [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        opens && statuses.contains(&status) && !modern && self.link.remote.spoken().is_none()
    }

    /// Whether a 404 is about the method, not the session.
    fn is_unknown_method(&self, body: &Line) -> bool {
        let Line::Whole(bytes) = body else { return false };
        let Ok(envelope) = from_utf8(bytes).map(Envelope::parse) else { return false };
        let id = envelope.ok().and_then(|envelope| envelope.id).and_then(Id::parse);
        code_of(body) == Some(METHOD_NOT_FOUND) && id.is_some() && id == self.message.outgoing.id
    }

    /// Hands on a body that is the answer; gives it back where it is none.
    fn take_up(&self, line: Line, status: Option<StatusCode>) -> Option<Bytes> {
        ParsedLine::parse(&line, |heard| match heard {
            _ if self.is_answer(heard) => {
                self.answer(heard, status);
                None
            }
            ParsedLine::TooLong { .. } => {
                self.pass(heard, status);
                // Where its id could not be found, the request must not wait for ever.
                Some(Bytes::from_static(b"longer than max_message"))
            }
            ParsedLine::Object { line, text, envelope } => match self.own_error(text, envelope) {
                Some(error) => {
                    ParsedLine::parse(&error, |error| self.answer(error, status));
                    None
                }
                None => Some((*line).clone()),
            },
            ParsedLine::Array { line, .. } | ParsedLine::NoJson { line, .. } => {
                Some((*line).clone())
            }
        })
    }

    /// An error without an id can be about nothing but this request: with its id.
    fn own_error(&self, text: &str, envelope: &Envelope) -> Option<Line> {
        let id = self.message.outgoing.id.as_ref()?;
        let has_id = envelope.id.is_some_and(|id| id != "null");
        if !envelope.is_json_rpc() || envelope.error.is_none() || has_id {
            return None;
        }
        let mut edits = Edits::new();
        edits.set_member(text, text, "id", &id.to_json());
        Some(Line::Whole(edits.apply(text).into()))
    }

    fn is_answer(&self, heard: &ParsedLine) -> bool {
        self.message.outgoing.id.as_ref().is_some_and(|id| heard.answers(id))
    }

    /// Reads the stream of this request, and that which goes on where it was cut, to the answer.
    async fn read_stream(&self, response: Response<Received>) -> Outcome {
        let (link, session) = (self.link.clone(), self.session.clone());
        let events = &self.link.events;
        let mut stream =
            Stream::new(link, session, self.message.outgoing.headers.clone(), response);
        loop {
            while let Some(event) = stream.next().await {
                let is_message = event.is_message();
                let Some(data) = event.data.filter(|_| is_message) else {
                    if let (Some(_), Some(id)) = (event.id, &self.message.outgoing.id) {
                        events.primed(id, event.retry);
                    }
                    continue;
                };
                if ParsedLine::parse(&data, |heard| self.on_message(heard)) {
                    let _ = timeout(LINGER, self.read_rest(&mut stream)).await;
                    return Outcome::Done;
                }
            }
            if !self.link.waits_for(self.message.outgoing.id.as_ref(), self.token) {
                return Outcome::Done;
            }
            if self.message.is_modern() || !stream.can_resume() {
                return Outcome::Lost(loss::begun(self.broken(stream.why())));
            }
            if let Some(id) = self.message.outgoing.id.as_ref().filter(|_| !stream.broke()) {
                events.paused(id);
            }
            if let Err(why) = stream.reopen(PATIENCE).await {
                return Outcome::Lost(loss::begun(self.broken(&why)));
            }
        }
    }

    async fn read_rest(&self, stream: &mut Stream) {
        while let Some(event) = stream.next().await {
            let is_message = event.is_message();
            if let Some(data) = event.data.filter(|_| is_message) {
                ParsedLine::parse(&data, |heard| self.pass(heard, None));
            }
        }
    }

    /// A message on the stream; whether it was the answer.
    fn on_message(&self, heard: &ParsedLine) -> bool {
        let is_answer = self.is_answer(heard);
        if is_answer {
            self.answer(heard, None)
        } else {
            self.pass(heard, None)
        }
        is_answer
    }

    fn answer(&self, heard: &ParsedLine, status: Option<StatusCode>) {
        if self.message.outgoing.role == Role::Initialize
            && let ParsedLine::Object { envelope, .. } = heard
        {
            self.link.agreed(self.token, envelope);
        }
        self.link.answer_came(self.message.outgoing.id.as_ref(), self.token);
        self.pass(heard, status);
        self.link.open_gate(self.token);
    }

    fn pass(&self, heard: &ParsedLine, status: Option<StatusCode>) {
        self.link
            .events
            .message(heard, From { request: self.message.outgoing.id.as_ref(), status });
    }

    fn broken(&self, why: &str) -> String {
        loss::broken(self.link.remote.address(), why)
    }
}

/// Reads what came with a refusal, as far as it comes in time.
async fn read_refusal(response: Response<Received>, limit: usize) -> (Parts, Option<Line>) {
    let (head, body) = response.into_parts();
    let body = timeout(REFUSAL, gather(body, limit)).await;
    (head, body.ok().and_then(Result::ok).flatten())
}

/// The code of a JSON-RPC error.
fn code_of(body: &Line) -> Option<i32> {
    let Line::Whole(bytes) = body else { return None };
    Envelope::parse(from_utf8(bytes).ok()?).ok()?.error_code()
}
