//! One message and what the server answers to it.

use std::sync::Arc;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderValue, Response, StatusCode, Uri};
use tokio::time::timeout;
use tracing::debug;

use crate::mcp::error_code::{self, METHOD_NOT_FOUND};
use crate::mcp::header::SESSION_ID;
use crate::rpc::id::Id;
use crate::rpc::line::Line;
use crate::rpc::message::Envelope;
use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::observer::Loss;
use crate::upstream::outgoing::Role;

use super::context::LifeContext;
use super::http_sse;
use super::incoming::{REFUSAL, UNNEEDED, gather, is_event_stream, pass_over};
use super::loss;
use super::pool::{Received, SendError};
use super::queued_message::QueuedMessage;
use super::remote::SpokenTransport;
use super::request_body::RequestBody;
use super::resumable_stream::ResumableStream;
use super::session::ServerSession;

/// Tells one exchange of a life from all others.
pub(crate) type ExchangeNumber = u64;

/// Whoever is told how an exchange goes: the life that it is a part of.
pub(crate) trait ExchangeObserver: Send + Sync {
    /// The server has opened a session, or works without one.
    fn session_opened(&self, number: ExchangeNumber, id: Option<HeaderValue>);
    /// The answer to `initialize` came, which names the revision.
    fn revision_agreed(&self, number: ExchangeNumber, answer: &Envelope);
    /// The server took a message that has no answer.
    fn accepted(&self, message: &QueuedMessage, number: ExchangeNumber);
    /// A request has its answer, which is handed on next.
    fn answered(&self, id: Option<&Id>, number: ExchangeNumber);
    /// What the message held up may leave.
    fn open_gate(&self, number: ExchangeNumber);
    /// Whether somebody waits for the answer to a request.
    fn waits_for(&self, id: Option<&Id>, number: ExchangeNumber) -> bool;
    /// The server speaks HTTP+SSE: from here on messages go to this address, and the server speaks
    /// on this stream.
    fn switched(&self, stream: ResumableStream, address: Uri);
    /// The exchange is over; what becomes of its message depends on how.
    fn over(
        &self,
        message: QueuedMessage,
        session: &ServerSession,
        number: ExchangeNumber,
        outcome: ExchangeOutcome,
    );
}

/// One message on its way, and its answer.
pub(crate) struct PostExchange {
    /// where it goes, and who is told what comes back
    pub context: Arc<LifeContext>,
    /// told how it goes
    pub life: Arc<dyn ExchangeObserver>,
    /// what is sent
    pub message: QueuedMessage,
    /// as it was when the message left
    pub session: Arc<ServerSession>,
    /// where messages go in HTTP+SSE
    pub http_sse: Option<Uri>,
    /// tells it from others
    pub number: ExchangeNumber,
}

/// How an exchange ended.
pub(crate) enum ExchangeOutcome {
    /// answered, or there was nothing to answer
    Done,
    /// the answer comes on another stream
    Sent,
    /// there is no answer
    Lost(Loss),
    /// the server does not know the session (404)
    SessionForgotten,
}

/// What anything but a success means.
enum Refusal {
    /// the exchange is over
    Over(ExchangeOutcome),
    /// a server of HTTP+SSE answers like that
    MaybeHttpSse,
}

impl PostExchange {
    /// Sends the message and handles whatever comes back.
    pub(crate) async fn run(self) {
        let outcome = self.send_and_read().await;
        let PostExchange { life, message, session, number, .. } = self;
        life.over(message, &session, number, outcome);
    }

    async fn send_and_read(&self) -> ExchangeOutcome {
        if let Some(address) = &self.http_sse {
            return self.post_http_sse(address).await;
        }
        match self.post(self.context.remote.url()).await {
            Ok(response) if response.status().is_success() => self.taken(response).await,
            Ok(response) => self.refused(response).await,
            Err(error) => self.unsent(&error),
        }
    }

    /// Sends the message; waits for the head of the answer. The server has not looked at a message
    /// that it sends elsewhere: it is sent there, and from there no further.
    async fn post(&self, url: &Uri) -> Result<Response<Received>, SendError> {
        let mut response = self.post_once(url).await?;
        if let Some(url) = self.context.remote.redirected(url, &response) {
            pass_over(response).await;
            response = self.post_once(&url).await?;
        }
        self.message.progress.note_answer();
        Ok(response)
    }

    async fn post_once(&self, url: &Uri) -> Result<Response<Received>, SendError> {
        let QueuedMessage { outgoing, progress, .. } = &self.message;
        let remote = &self.context.remote;
        let headers = self.message.post_headers(remote.post_base(), &self.session);
        let body = RequestBody::message(outgoing.bytes.clone(), progress.clone());
        remote.post(url, headers, body).await
    }

    fn unsent(&self, error: &SendError) -> ExchangeOutcome {
        let left = self.message.progress.has_left();
        ExchangeOutcome::Lost(loss::unsent(&self.context.remote, error, left))
    }

    /// HTTP+SSE: the answer comes on the one stream that there is.
    async fn post_http_sse(&self, address: &Uri) -> ExchangeOutcome {
        match self.post(address).await {
            Ok(response) if response.status().is_success() => {
                self.accepted(response).await;
                ExchangeOutcome::Sent
            }
            Ok(response) => {
                let (head, body) = read_refusal(response, self.context.limit).await;
                self.settle(&head, body.as_ref())
            }
            Err(error) => self.unsent(&error),
        }
    }

    /// A success.
    async fn taken(&self, response: Response<Received>) -> ExchangeOutcome {
        if self.opens() {
            self.context.remote.note_transport(SpokenTransport::StreamableHttp);
        }
        if self.message.outgoing.role == Role::Initialize {
            let id = response.headers().get(SESSION_ID).cloned();
            self.life.session_opened(self.number, id);
        }
        if self.message.outgoing.id.is_some() {
            return self.answered(response).await;
        }
        self.accepted(response).await;
        ExchangeOutcome::Done
    }

    /// Whether the answer shows which transport the server speaks.
    fn opens(&self) -> bool {
        matches!(self.message.outgoing.role, Role::Initialize | Role::Discover)
    }

    /// A success that brings nothing.
    async fn accepted(&self, response: Response<Received>) {
        self.life.accepted(&self.message, self.number);
        pass_over(response).await;
    }

    /// A success: the answer is in the body, or on the stream that it is.
    async fn answered(&self, response: Response<Received>) -> ExchangeOutcome {
        match is_event_stream(&response) {
            true => self.read_stream(response).await,
            false => self.read_json(response).await,
        }
    }

    /// Anything but a success.
    async fn refused(&self, response: Response<Received>) -> ExchangeOutcome {
        let (head, body) = read_refusal(response, self.context.limit).await;
        match with_parsed(body.as_ref(), |line| self.judge(&head, body.as_ref(), line)) {
            Refusal::Over(outcome) => return outcome,
            Refusal::MaybeHttpSse => {}
        }
        let headers = self.message.outgoing.headers.clone();
        match http_sse::open(self.context.clone(), headers).await {
            Ok((stream, address)) => {
                self.life.switched(stream, address.clone());
                self.post_http_sse(&address).await
            }
            Err(loss) => {
                debug!("no HTTP+SSE either: {}", loss.cause);
                self.settle(&head, body.as_ref())
            }
        }
    }

    /// What a refusal means. `line`: its body, parsed.
    fn judge(&self, head: &Parts, body: Option<&Line>, line: Option<&ParsedLine>) -> Refusal {
        let error = line.and_then(ParsedLine::envelope);
        if self.is_forgotten(head.status, error) {
            Refusal::Over(ExchangeOutcome::SessionForgotten)
        } else if self.may_be_http_sse(head.status, error) {
            Refusal::MaybeHttpSse
        } else {
            Refusal::Over(self.settle_parsed(head, body, line))
        }
    }

    fn settle(&self, head: &Parts, body: Option<&Line>) -> ExchangeOutcome {
        with_parsed(body, |line| self.settle_parsed(head, body, line))
    }

    /// A refusal that is final: it may be a message all the same.
    fn settle_parsed(
        &self,
        head: &Parts,
        body: Option<&Line>,
        line: Option<&ParsedLine>,
    ) -> ExchangeOutcome {
        let refused = matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let rest = match (body, line) {
            (_, Some(line)) if !refused && self.message.outgoing.id.is_some() => {
                match self.take_answer(line, Some(head.status)) {
                    None => return ExchangeOutcome::Done,
                    Some(rest) => rest,
                }
            }
            (Some(Line::Whole(body)), _) => body.slice(..body.len().min(UNNEEDED)),
            _ => Bytes::new(),
        };
        self.no_answer(head, rest)
    }

    /// What came is no answer.
    pub(super) fn no_answer(&self, head: &Parts, rest: Bytes) -> ExchangeOutcome {
        ExchangeOutcome::Lost(loss::status(self.context.remote.address(), head, rest))
    }

    /// Whether the server does not know the session that the message was in.
    fn is_forgotten(&self, status: StatusCode, error: Option<&Envelope>) -> bool {
        let in_session = self.session.id.is_some() && !self.message.is_modern();
        status == StatusCode::NOT_FOUND
            && in_session
            && self.message.outgoing.role != Role::Initialize
            && !error.is_some_and(|error| self.is_unknown_method(error))
    }

    /// Whether a 404 is about the method, not the session.
    fn is_unknown_method(&self, error: &Envelope) -> bool {
        let id = error.id.and_then(Id::parse);
        error.error_code() == Some(METHOD_NOT_FOUND)
            && id.is_some()
            && id == self.message.outgoing.id
    }

    /// Whether this refusal is one of a server that speaks HTTP+SSE (protocol §1.3).
    fn may_be_http_sse(&self, status: StatusCode, error: Option<&Envelope>) -> bool {
        let statuses =
            [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        let is_modern = || {
            let code = error.and_then(Envelope::error_code);
            code.is_some_and(|code| error_code::MODERN.contains(&code))
        };
        self.opens()
            && statuses.contains(&status)
            && self.context.remote.transport().is_none()
            && !is_modern()
    }
}

/// Hands over a body, parsed, if there is one.
fn with_parsed<T>(body: Option<&Line>, f: impl FnOnce(Option<&ParsedLine>) -> T) -> T {
    match body {
        Some(line) => ParsedLine::parse(line, |line| f(Some(line))),
        None => f(None),
    }
}

/// Reads what came with a refusal, as far as it comes in time.
async fn read_refusal(response: Response<Received>, limit: usize) -> (Parts, Option<Line>) {
    let (head, body) = response.into_parts();
    let body = timeout(REFUSAL, gather(body, limit)).await;
    (head, body.ok().and_then(Result::ok).flatten())
}
