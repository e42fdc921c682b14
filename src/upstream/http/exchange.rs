//! One message and what the server answers to it.

use std::str::from_utf8;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;
use tracing::warn;

use crate::rpc::lines::{Gathered, Line};
use crate::rpc::message::{Envelope, Id, Kind};
use crate::rpc::object::{Members, elements};
use crate::rpc::splice::Edits;
use crate::upstream::{From, Loss};

use super::connect::root;
use super::link::Link;
use super::loss;
use super::message::{Message, Role, SESSION, Session};
use super::outgoing::Outgoing;
use super::stream::{PATIENCE, Stream, is_event_stream};

/// How long a stream may stay open after its answer, so that its connection can be used again.
const LINGER: Duration = Duration::from_secs(1);
/// How long a refusal may take to be read.
const REFUSAL: Duration = Duration::from_secs(10);
/// So much of an answer that nobody needs is read.
const UNNEEDED: usize = 64 << 10;

/// One message on its way, and its answer.
pub struct Exchange {
    pub link: Arc<Link>,
    pub message: Message,
    /// as it was when the message left
    pub session: Arc<Session>,
    /// tells it from others
    pub token: u64,
}

/// How an exchange ended.
pub enum Outcome {
    /// answered, or there was nothing to answer
    Done,
    Lost(Loss),
    /// the server does not know the session (404)
    Forgotten,
}

impl Exchange {
    /// Sends the message and handles whatever comes back.
    pub async fn run(self) {
        let outcome = self.converse().await;
        let Exchange { link, message, session, token } = self;
        link.over(message, &session, token, outcome);
    }

    async fn converse(&self) -> Outcome {
        let Message { bytes, sent, .. } = &self.message;
        let remote = &self.link.remote;
        let headers = self.message.post_headers(remote.base(), &self.session);
        let body = Outgoing::message(bytes.clone(), sent.clone());
        let response = match remote.post(headers, body).await {
            Ok(response) => response,
            Err(error) => {
                return Outcome::Lost(loss::unsent(remote.address(), &error, sent.has_left()));
            }
        };
        sent.met();
        match response.status() {
            status if !status.is_success() => self.refused(response).await,
            _ if self.message.role == Role::Initialize => {
                let id = response.headers().get(SESSION).cloned();
                self.link.session_opened(self.token, id);
                self.answered(response).await
            }
            _ if self.message.id.is_some() => self.answered(response).await,
            _ => {
                self.link.accepted(&self.message, self.token);
                let _ = timeout(LINGER, gather(response.into_body(), UNNEEDED)).await;
                Outcome::Done
            }
        }
    }

    /// A success: the answer is in the body, or on the stream that it is.
    async fn answered(&self, response: Response<Incoming>) -> Outcome {
        if is_event_stream(&response) {
            return self.read_stream(response).await;
        }
        let (head, body) = response.into_parts();
        match gather(body, self.link.limit).await {
            Ok(line) => match line.and_then(|line| self.take_up(line, None)) {
                None => Outcome::Done,
                Some(rest) => Outcome::Lost(loss::status(self.link.remote.address(), &head, rest)),
            },
            Err(why) => Outcome::Lost(loss::begun(self.broken(&why))),
        }
    }

    /// Anything but a success. It may still be a message.
    async fn refused(&self, response: Response<Incoming>) -> Outcome {
        let (head, body) = response.into_parts();
        let status = head.status;
        let body = timeout(REFUSAL, gather(body, self.link.limit)).await;
        let body = body.ok().and_then(Result::ok).flatten();
        let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let had_session = self.session.id.is_some() && self.message.modern.is_none();
        let forgotten = status == StatusCode::NOT_FOUND
            && had_session
            && self.message.role != Role::Initialize
            && !body.as_ref().is_some_and(|body| self.is_unknown_method(body));
        if forgotten {
            return Outcome::Forgotten;
        }
        let rest = match body {
            Some(line) if !refused && self.message.id.is_some() => {
                match self.take_up(line, Some(status)) {
                    None => return Outcome::Done,
                    Some(rest) => rest,
                }
            }
            Some(Line::Whole(body)) => body.slice(..body.len().min(UNNEEDED)),
            _ => Bytes::new(),
        };
        Outcome::Lost(loss::status(self.link.remote.address(), &head, rest))
    }

    /// Whether a 404 is about the method, not the session.
    fn is_unknown_method(&self, body: &Line) -> bool {
        let Line::Whole(body) = body else { return false };
        let Ok(text) = from_utf8(body) else { return false };
        let Ok(envelope) = Envelope::parse(text) else { return false };
        let code = envelope.error.and_then(Members::parse).and_then(|error| error.get("code"));
        let id = envelope.id.and_then(Id::parse);
        code == Some("-32601") && id.is_some() && id == self.message.id
    }

    /// Hands on a body that is the answer; gives it back where it is none.
    fn take_up(&self, line: Line, status: Option<StatusCode>) -> Option<Bytes> {
        let Line::Whole(bytes) = line else {
            self.pass(line, status);
            // Where its id could not be found, the request must not wait for ever.
            return Some(Bytes::from_static(b"longer than max_message"));
        };
        match self.as_answer(&bytes) {
            Some(answer) => {
                self.answer(Line::Whole(answer), status);
                None
            }
            None => Some(bytes),
        }
    }

    /// The body as the answer to this request; an error without an id can be about nothing else.
    fn as_answer(&self, bytes: &Bytes) -> Option<Bytes> {
        let id = self.message.id.as_ref()?;
        let text = String::from_utf8_lossy(bytes);
        if answers(&text, id) {
            return Some(bytes.clone());
        }
        let envelope = Envelope::parse(&text).ok()?;
        if envelope.error.is_none() || envelope.id.is_some_and(|id| id != "null") {
            return None;
        }
        let mut edits = Edits::new();
        edits.set_member(&text, &text, "id", &id.to_json());
        Some(edits.apply(&text).into())
    }

    /// Reads the stream of this request, and that which goes on where it was cut, to the answer.
    async fn read_stream(&self, response: Response<Incoming>) -> Outcome {
        let (link, session) = (self.link.clone(), self.session.clone());
        let mut stream = Stream::new(link, session, self.message.headers.clone(), response);
        loop {
            while let Some(event) = stream.next().await {
                let is_message = event.is_message();
                let Some(data) = event.data.filter(|_| is_message) else { continue };
                if self.on_message(data) {
                    let _ = timeout(LINGER, self.read_rest(&mut stream)).await;
                    return Outcome::Done;
                }
            }
            if !self.link.waits_for(self.message.id.as_ref(), self.token) {
                return Outcome::Done;
            }
            if self.message.modern.is_some() || !stream.can_resume() {
                return Outcome::Lost(loss::begun(self.broken(stream.why())));
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
                self.pass(data, None);
            }
        }
    }

    /// A message on the stream; whether it was the answer.
    fn on_message(&self, line: Line) -> bool {
        let Some(id) = &self.message.id else { return false };
        let is_answer = match &line {
            Line::Whole(bytes) => answers(&String::from_utf8_lossy(bytes), id),
            Line::TooLong { .. } => false,
        };
        if is_answer {
            self.answer(line, None)
        } else {
            self.pass(line, None)
        }
        is_answer
    }

    fn answer(&self, line: Line, status: Option<StatusCode>) {
        if self.message.role == Role::Initialize
            && let Line::Whole(bytes) = &line
        {
            self.link.agreed(self.token, &String::from_utf8_lossy(bytes));
        }
        self.link.answer_came(self.message.id.as_ref(), self.token);
        self.pass(line, status);
        self.link.open_gate(self.token);
    }

    fn pass(&self, line: Line, status: Option<StatusCode>) {
        self.link.events.message(line, From { request: self.message.id.as_ref(), status });
    }

    fn broken(&self, why: &str) -> String {
        loss::broken(self.link.remote.address(), why)
    }
}

/// Whether a text is, or holds, the answer to a request.
fn answers(text: &str, id: &Id) -> bool {
    if text.starts_with('[') {
        return elements(text).is_some_and(|all| all.iter().any(|one| answers(one, id)));
    }
    let Ok(envelope) = Envelope::parse(text) else { return false };
    envelope.kind() == Kind::Response && envelope.id.is_some_and(|raw| id.is_written(raw))
}

/// Reads a body. The error is a part of a sentence.
async fn gather(mut body: Incoming, limit: usize) -> Result<Option<Line>, String> {
    let mut gathered = Gathered::new(limit);
    while let Some(frame) = body.frame().await {
        match frame.map_err(|error| root(&error))?.into_data() {
            Ok(data) => gathered.add(data),
            Err(_) => warn!("the server sent trailers, which mean nothing in MCP"),
        }
    }
    Ok(gathered.finish())
}
