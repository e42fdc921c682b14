//! A stream of events that may be cut, and is opened again where it ended (protocol §6.2).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};

use crate::mcp::header::LAST_EVENT_ID;
use crate::rpc::line::Line;
use crate::rpc::sse::{Event, Events};
use crate::upstream::observer::Loss;
use crate::upstream::outgoing::Headers;

use super::context::LifeContext;
use super::headers::with_headers;
use super::incoming::{REFUSAL, UNNEEDED, gather, is_event_stream};
use super::loss;
use super::pool::Received;
use super::root_cause::root_cause;
use super::session::ServerSession;

/// How long to wait before a stream is opened again, where the server does not say.
const RETRY: Duration = Duration::from_secs(1);
/// The longest pause, however often that failed.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// The longest pause that a server may ask for: jobs don't run for longer, by default.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);
/// A stream of events of the server.
pub(crate) struct ResumableStream {
    context: Arc<LifeContext>,
    session: Arc<ServerSession>,
    /// of the message whose stream it is; they go with it when it is opened again
    headers: Headers,
    body: Received,
    events: Events,
    /// where it can be resumed
    last_id: Option<HeaderValue>,
    /// as the server said
    retry: Option<Duration>,
    /// how often it was tried to be opened again since the last event
    attempts: u32,
    /// why its connection ended
    why: String,
    /// its connection broke; else the server has closed it
    broke: bool,
    /// how the server refused to open it again
    pub refused: Option<StatusCode>,
}

impl ResumableStream {
    /// The stream that an answer begins.
    pub(crate) fn new(
        context: Arc<LifeContext>,
        session: Arc<ServerSession>,
        headers: Headers,
        response: Response<Received>,
    ) -> Self {
        let events = Events::new(context.limit);
        let (last_id, retry, body) = (None, None, response.into_body());
        let (why, refused) = (String::new(), None);
        ResumableStream {
            context,
            session,
            headers,
            body,
            events,
            last_id,
            retry,
            attempts: 0,
            why,
            broke: false,
            refused,
        }
    }

    /// Opens the stream on which the server speaks by itself.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn open(
        context: Arc<LifeContext>,
        session: Arc<ServerSession>,
        headers: Headers,
    ) -> Result<Self, Loss> {
        let mut all = with_headers(context.remote.base(), &headers);
        session.put_into(&mut all);
        let address = context.remote.address();
        let response = context.remote.get_stream(all).await;
        let response = response.map_err(|error| loss::unsent(&context.remote, &error, false))?;
        if response.status().is_success() && is_event_stream(&response) {
            return Ok(ResumableStream::new(context, session, headers, response));
        }
        let (head, body) = response.into_parts();
        let body = match timeout(REFUSAL, gather(body, UNNEEDED)).await {
            Ok(Ok(Some(Line::Whole(body)))) => body,
            _ => Bytes::new(),
        };
        Err(loss::status(address, &head, body))
    }

    /// The next event; `None` at the end of the connection. While the way to the client is full,
    /// nothing is read.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.next_event() {
                return Some(self.noted(event));
            }
            if let Some(room) = self.context.observer.room() {
                room.await;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.events.feed(data);
                    }
                }
                Some(Err(error)) => {
                    self.why = root_cause(&error);
                    self.broke = true;
                    return None;
                }
                None => {
                    "the stream ended".clone_into(&mut self.why);
                    let last = self.events.last_event();
                    return last.map(|event| self.noted(event));
                }
            }
        }
    }

    fn noted(&mut self, event: Event) -> Event {
        self.attempts = 0;
        if let Some(id) = &event.id {
            self.last_id =
                HeaderValue::from_maybe_shared(id.clone()).ok().filter(|id| !id.is_empty());
        }
        self.retry = event.retry.or(self.retry);
        event
    }

    /// Whether it can be resumed without a loss.
    pub(crate) fn can_resume(&self) -> bool {
        self.last_id.is_some()
    }

    /// Why the connection ended: a part of a sentence.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// Whether its connection broke; else the server has closed it.
    pub(crate) fn broke(&self) -> bool {
        self.broke
    }

    /// Opens it again, as soon as the server wants that. `give_up_after`: for how long that is tried
    /// where the server can't be reached.
    ///
    /// # Errors
    /// A part of a sentence: why that is no use.
    pub(crate) async fn reopen(&mut self, give_up_after: Duration) -> Result<(), String> {
        let since = Instant::now();
        loop {
            sleep(self.pause()).await;
            self.attempts += 1;
            let mut headers = with_headers(self.context.remote.base(), &self.headers);
            self.session.put_into(&mut headers);
            if let Some(id) = &self.last_id {
                headers.insert(LAST_EVENT_ID, id.clone());
            }
            let why = match self.context.remote.get_stream(headers).await {
                Ok(response) if response.status().is_success() && is_event_stream(&response) => {
                    self.broke = false;
                    self.body = response.into_body();
                    self.events = Events::new(self.context.limit);
                    return Ok(());
                }
                Ok(response) => {
                    let why = format!("it answered HTTP {} to a GET", response.status());
                    if !is_temporary(response.status()) {
                        self.refused = Some(response.status());
                        return Err(why);
                    }
                    why
                }
                Err(error) => error.to_string(),
            };
            if since.elapsed() >= give_up_after {
                return Err(why);
            }
        }
    }

    fn pause(&self) -> Duration {
        let growing = RETRY.saturating_mul(1 << self.attempts.min(6)).min(LONGEST_RETRY);
        match self.retry {
            Some(retry) if self.attempts <= 2 => retry.min(LONGEST_ASKED),
            Some(retry) => retry.min(LONGEST_ASKED).max(growing / 4),
            None => growing,
        }
    }
}

/// Whether the server may answer otherwise later.
fn is_temporary(status: StatusCode) -> bool {
    let temporary = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    status.is_server_error() || temporary.contains(&status)
}
