//! The answer to one message: in a body, or on a stream that may be cut and is resumed.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::time::timeout;

use crate::rpc::documents;
use crate::rpc::line::Line;
use crate::rpc::message::Envelope;
use crate::rpc::parsed_line::ParsedLine;
use crate::rpc::splice::Edits;
use crate::upstream::observer::MessageOrigin;
use crate::upstream::outgoing::Role;

use super::exchange::{ExchangeOutcome, PostExchange};
use super::incoming::LINGER;
use super::json_body::JsonBody;
use super::loss;
use super::pool::Received;
use super::resumable_stream::ResumableStream;

/// How long a stream is tried to be resumed where the server can't be reached: after that it has
/// lost the answer.
const RESUME_FOR: Duration = Duration::from_secs(60);

/// What a document of a body was.
enum Taken {
    Answer,
    /// another message, which was handed on
    Message,
    /// no document: it may be several
    Several(Bytes),
    Other(Bytes),
}

impl PostExchange {
    /// Hands on a body that is the answer; gives it back where it is none.
    pub(super) fn take_answer(
        &self,
        line: &ParsedLine,
        status: Option<StatusCode>,
    ) -> Option<Bytes> {
        match line {
            _ if self.is_answer(line) => {
                self.hand_on_answer(line, status);
                None
            }
            ParsedLine::TooLong { .. } => {
                self.hand_on(line, status);
                // Where its id could not be found, the request must not wait for ever.
                Some(Bytes::from_static(b"longer than max_message"))
            }
            ParsedLine::Object { line, text, envelope } => match self.own_error(text, envelope) {
                Some(error) => {
                    ParsedLine::parse(&error, |error| self.hand_on_answer(error, status));
                    None
                }
                None => Some((*line).clone()),
            },
            ParsedLine::Array { line, .. } | ParsedLine::NoJson { line, .. } => {
                Some((*line).clone())
            }
        }
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

    fn is_answer(&self, line: &ParsedLine) -> bool {
        self.message.outgoing.id.as_ref().is_some_and(|id| line.answers(id))
    }

    /// Reads a body of JSON: the answer alone, or documents, each as if it were an event.
    pub(super) async fn read_json(&self, response: Response<Received>) -> ExchangeOutcome {
        let (head, body) = response.into_parts();
        let mut body = JsonBody::new(body, self.context.limit);
        let (mut rest, mut handed_on) = (Bytes::new(), false);
        loop {
            let document = match body.next(&*self.context.observer).await {
                Ok(Some(document)) => document,
                Ok(None) => break,
                Err(why) => return ExchangeOutcome::Lost(loss::begun(self.broken(&why))),
            };
            let is_whole = body.is_whole();
            match ParsedLine::parse(&document, |line| self.take_document(line, is_whole)) {
                Taken::Answer => {
                    let _ = timeout(LINGER, self.read_rest_of_json(&mut body)).await;
                    return ExchangeOutcome::Done;
                }
                Taken::Message => handed_on = true,
                Taken::Several(whole) => body.divide(whole),
                Taken::Other(other) => rest = other,
            }
        }
        if handed_on && rest.is_empty() {
            return ExchangeOutcome::Lost(loss::begun(self.broken("the stream ended")));
        }
        self.no_answer(&head, rest)
    }

    /// One document of a body; `is_whole`: it is all of it, as far as is known.
    fn take_document(&self, line: &ParsedLine, is_whole: bool) -> Taken {
        let Some(rest) = self.take_answer(line, None) else { return Taken::Answer };
        match line {
            ParsedLine::NoJson { line, .. } | ParsedLine::Array { line, .. }
                if is_whole && documents::begins(line) =>
            {
                Taken::Several((*line).clone())
            }
            ParsedLine::Object { envelope, .. } if !is_whole && envelope.is_message() => {
                self.hand_on(line, None);
                Taken::Message
            }
            _ => Taken::Other(rest),
        }
    }

    async fn read_rest_of_json(&self, body: &mut JsonBody) {
        while let Ok(Some(document)) = body.next(&*self.context.observer).await {
            ParsedLine::parse(&document, |line| self.hand_on(line, None));
        }
    }

    /// Reads the stream of this request, and that which goes on where it was cut, to the answer.
    pub(super) async fn read_stream(&self, response: Response<Received>) -> ExchangeOutcome {
        let id = self.message.outgoing.id.as_ref();
        let headers = self.message.outgoing.headers.clone();
        let (context, session) = (self.context.clone(), self.session.clone());
        let mut stream = ResumableStream::new(context, session, headers, response);
        loop {
            if self.read_to_answer(&mut stream).await || !self.life.waits_for(id, self.number) {
                return ExchangeOutcome::Done;
            }
            if self.message.is_modern() || !stream.can_resume() {
                return ExchangeOutcome::Lost(loss::begun(self.broken(stream.why())));
            }
            if let Some(id) = id.filter(|_| !stream.broke()) {
                self.context.observer.paused(id);
            }
            if let Err(why) = stream.reopen(RESUME_FOR).await {
                return ExchangeOutcome::Lost(loss::begun(self.broken(&why)));
            }
        }
    }

    /// Reads one connection of the stream; whether the answer came on it.
    async fn read_to_answer(&self, stream: &mut ResumableStream) -> bool {
        while let Some(event) = stream.next().await {
            let is_message = event.is_message();
            let Some(data) = event.data.filter(|_| is_message) else {
                if let (Some(_), Some(id)) = (event.id, &self.message.outgoing.id) {
                    self.context.observer.primed(id, event.retry);
                }
                continue;
            };
            if ParsedLine::parse(&data, |line| self.on_message(line)) {
                let _ = timeout(LINGER, self.read_rest(stream)).await;
                return true;
            }
        }
        false
    }

    async fn read_rest(&self, stream: &mut ResumableStream) {
        while let Some(event) = stream.next().await {
            let is_message = event.is_message();
            if let Some(data) = event.data.filter(|_| is_message) {
                ParsedLine::parse(&data, |line| self.hand_on(line, None));
            }
        }
    }

    /// A message on the stream; whether it was the answer.
    fn on_message(&self, line: &ParsedLine) -> bool {
        let is_answer = self.is_answer(line);
        if is_answer {
            self.hand_on_answer(line, None);
        } else {
            self.hand_on(line, None);
        }
        is_answer
    }

    fn hand_on_answer(&self, line: &ParsedLine, status: Option<StatusCode>) {
        if self.message.outgoing.role == Role::Initialize
            && let Some(envelope) = line.envelope()
        {
            self.life.revision_agreed(self.number, envelope);
        }
        self.life.answered(self.message.outgoing.id.as_ref(), self.number);
        self.hand_on(line, status);
        self.life.open_gate(self.number);
    }

    fn hand_on(&self, line: &ParsedLine, status: Option<StatusCode>) {
        let origin = MessageOrigin { request: self.message.outgoing.id.as_ref(), status };
        self.context.observer.message(line, origin);
    }

    /// A connection that ended too early, as a sentence.
    pub(super) fn broken(&self, why: &str) -> String {
        loss::broken(self.context.remote.address(), why)
    }
}
