//! Who reads what goes back to an HTTP client, in its name.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::responder::HttpResponder;
use super::response_event::ResponseEvent;

/// The reader of what goes back. Where it is dropped before the end, the client has gone.
pub(crate) struct ResponseReader {
    responder: Arc<HttpResponder>,
    number: u64,
    delivered: bool,
}

impl ResponseReader {
    /// Begins to read; who read before stops.
    pub(crate) fn new(responder: &Arc<HttpResponder>) -> Self {
        let number = responder.state().begin_reading();
        ResponseReader { responder: responder.clone(), number, delivered: false }
    }

    /// What is read.
    pub(crate) fn responder(&self) -> &Arc<HttpResponder> {
        &self.responder
    }

    /// The next event; `None` at the end, or where somebody else reads now.
    pub(crate) fn poll_event(&mut self, context: &mut Context) -> Poll<Option<ResponseEvent>> {
        let mut state = self.responder.state();
        if state.reader != self.number {
            return Poll::Ready(None);
        }
        if let Some(event) = state.pop() {
            return Poll::Ready(Some(event));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.wait(context);
        Poll::Pending
    }

    /// Waits for the first event, which stays where it is.
    pub(crate) async fn first_event(&mut self) {
        poll_fn(|context| {
            let mut state = self.responder.state();
            if state.ended || state.first().is_some() {
                return Poll::Ready(());
            }
            state.wait(context);
            Poll::Pending
        })
        .await;
    }

    /// The last event, where nothing else comes; `None` where there is none.
    pub(crate) fn take_last(&mut self) -> Option<ResponseEvent> {
        self.responder.state().pop()
    }

    /// All of it has left.
    pub(crate) fn mark_delivered(&mut self) {
        self.delivered = true;
    }

    /// Whether the answer was given, and nothing is left of it here.
    pub(crate) fn is_at_end(&self) -> bool {
        let state = self.responder.state();
        state.ended && state.first().is_none()
    }

    /// Whether a stream of events is needed; from then on it is one. `accepts_json`: an answer alone
    /// needs none.
    pub(crate) fn needs_event_stream(&self, accepts_json: bool) -> bool {
        let mut state = self.responder.state();
        let is_plain = state.ended
            && match state.first() {
                Some(ResponseEvent::Message(_) | ResponseEvent::Prime(_)) => false,
                Some(ResponseEvent::Refusal(_)) => true,
                Some(ResponseEvent::Answer(_) | ResponseEvent::Pause) | None => accepts_json,
            };
        state.is_event_stream |= !is_plain;
        !is_plain
    }
}

impl Drop for ResponseReader {
    fn drop(&mut self) {
        let mut state = self.responder.state();
        if state.reader != self.number {
            return;
        }
        state.reader = 0;
        drop(state);
        if let Some(observer) = self.responder.observer.upgrade() {
            observer.response_closed(&self.responder, self.delivered);
        }
    }
}
