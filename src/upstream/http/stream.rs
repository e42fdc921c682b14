//! A stream of events that may be cut, and is opened again where it ended (protocol §6.2).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};

use crate::mcp::header::LAST_EVENT_ID;
use crate::rpc::lines::Line;
use crate::rpc::sse::{Event, Events};
use crate::upstream::{Headers, Loss};

use super::connect::root;
use super::incoming::{gather, is_event_stream};
use super::link::Link;
use super::loss;
use super::message::{Session, with_headers};
use super::pool::Received;

/// How long to wait before a stream is opened again, where the server does not say.
const RETRY: Duration = Duration::from_secs(1);
/// However often it failed.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// However long the server says: jobs don't run for longer, by default.
const LONGEST_WISH: Duration = Duration::from_secs(3600);
/// A server that can't be reached for so long has lost the stream.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long a refusal may take to be read, and how much of it is.
pub const REFUSAL: Duration = Duration::from_secs(10);
pub const UNNEEDED: usize = 64 << 10;

/// A stream of events of the server.
pub struct Stream {
    link: Arc<Link>,
    session: Arc<Session>,
    /// of the message whose stream it is; they go with it when it is opened again
    headers: Headers,
    body: Received,
    events: Events,
    /// where it can be resumed
    last_id: Option<HeaderValue>,
    /// as the server said
    retry: Option<Duration>,
    /// how often in a row it was opened, or not, without an event
    in_vain: u32,
    /// why its connection ended
    why: String,
    /// it did not end by itself
    broke: bool,
    /// how the server refused to open it again
    pub refused: Option<StatusCode>,
}

impl Stream {
    /// The stream that an answer begins.
    pub fn new(
        link: Arc<Link>,
        session: Arc<Session>,
        headers: Headers,
        response: Response<Received>,
    ) -> Self {
        let events = Events::new(link.limit);
        let (last_id, retry, body) = (None, None, response.into_body());
        let (why, refused) = (String::new(), None);
        Stream {
            link,
            session,
            headers,
            body,
            events,
            last_id,
            retry,
            in_vain: 0,
            why,
            broke: false,
            refused,
        }
    }

    /// Opens the stream on which the server speaks by itself.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn open(
        link: Arc<Link>,
        session: Arc<Session>,
        headers: Headers,
    ) -> Result<Self, Loss> {
        let mut all = with_headers(link.remote.base(), &headers);
        session.put_into(&mut all);
        let address = link.remote.address();
        let response = link.remote.listen(all).await;
        let response = response.map_err(|error| loss::unsent(address, &error, false))?;
        if response.status().is_success() && is_event_stream(&response) {
            return Ok(Stream::new(link, session, headers, response));
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
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.next_event() {
                return Some(self.noted(event));
            }
            if let Some(room) = self.link.events.room() {
                room.await;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.events.feed(data);
                    }
                }
                Some(Err(error)) => {
                    self.why = root(&error);
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
        self.in_vain = 0;
        if let Some(id) = &event.id {
            self.last_id =
                HeaderValue::from_maybe_shared(id.clone()).ok().filter(|id| !id.is_empty());
        }
        self.retry = event.retry.or(self.retry);
        event
    }

    /// Whether it can be resumed without a loss.
    pub fn can_resume(&self) -> bool {
        self.last_id.is_some()
    }

    /// Why the connection ended: a part of a sentence.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Whether its connection broke; else the server has closed it.
    pub fn broke(&self) -> bool {
        self.broke
    }

    /// Opens it again, as soon as the server wants that; tries for `patience` where the server
    /// can't be reached.
    ///
    /// # Errors
    /// A part of a sentence: why that is no use.
    pub async fn reopen(&mut self, patience: Duration) -> Result<(), String> {
        let since = Instant::now();
        loop {
            sleep(self.pause()).await;
            self.in_vain += 1;
            let mut headers = with_headers(self.link.remote.base(), &self.headers);
            self.session.put_into(&mut headers);
            if let Some(id) = &self.last_id {
                headers.insert(LAST_EVENT_ID, id.clone());
            }
            let why = match self.link.remote.listen(headers).await {
                Ok(response) if response.status().is_success() && is_event_stream(&response) => {
                    self.broke = false;
                    self.body = response.into_body();
                    self.events = Events::new(self.link.limit);
                    return Ok(());
                }
                Ok(response) => {
                    let why = format!("it answered HTTP {} to a GET", response.status());
                    if !may_pass(response.status()) {
                        self.refused = Some(response.status());
                        return Err(why);
                    }
                    why
                }
                Err(error) => error.to_string(),
            };
            if since.elapsed() >= patience {
                return Err(why);
            }
        }
    }

    /// The session that it is a part of.
    pub fn session(&self) -> &Session {
        &self.session
    }

    fn pause(&self) -> Duration {
        let growing = RETRY.saturating_mul(1 << self.in_vain.min(6)).min(LONGEST_RETRY);
        match self.retry {
            Some(retry) if self.in_vain <= 2 => retry.min(LONGEST_WISH),
            Some(retry) => retry.min(LONGEST_WISH).max(growing / 4),
            None => growing,
        }
    }
}

/// Whether a refusal is one of the moment.
fn may_pass(status: StatusCode) -> bool {
    let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    status.is_server_error() || passing.contains(&status)
}
