//! Arrays of messages, legal under 2025-03-26 alone (contract §1.1): each element is treated by
//! itself, the answers go back as one array.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tracing::warn;

use crate::downstream::{Answer, Batch, Reply};
use crate::mcp::compose::error_line;
use crate::mcp::error_code::INVALID_REQUEST;
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::relay::session::Session;
use crate::relay::state::Due;
use crate::rpc::message::{Envelope, Kind, Message};
use crate::rpc::object::elements;
use crate::rpc::parsed_line::excerpt;
use crate::upstream::{Headers, MessageOrigin, Outgoing};

impl Session {
    /// Whether the client may send arrays.
    pub(crate) fn takes_batches(&self) -> bool {
        self.state().client.info.sends_batches()
    }

    /// An array of messages of the client; `to` is where the array of answers goes.
    pub(crate) fn client_batch(
        self: &Arc<Self>,
        line: &Bytes,
        text: &str,
        to: &Reply,
        headers: &Headers,
    ) {
        let elements = elements(text).unwrap_or_default();
        let legal = self.state().client.info.sends_batches();
        if elements.is_empty() && !text.ends_with(']') {
            return warn!("skipped an array of the client that is no JSON");
        }
        if !legal || elements.is_empty() {
            // The server answers an illegal array, as it would without the proxy.
            return self.upstream.send_if_up(Outgoing::parse(line.clone(), headers.clone()));
        }
        let elements = elements.into_iter().map(|text| (text, Envelope::parse(text).ok()));
        self.batch_elements(line, elements, to.clone(), headers);
    }

    /// The elements of an array that the client may send, each with its envelope if it has one.
    pub(crate) fn batch_elements<'a>(
        self: &Arc<Self>,
        line: &Bytes,
        elements: impl IntoIterator<Item = (&'a str, Option<Envelope<'a>>)>,
        to: Reply,
        headers: &Headers,
    ) {
        let batch = Batch::new(to);
        self.limit_batch(&batch);
        for (element, envelope) in elements {
            let reply: Reply = batch.clone();
            match envelope {
                Some(envelope) if envelope.kind() != Kind::Unknown => {
                    let part = line.slice_ref(element.as_bytes());
                    self.batch_element(&Message::new(&part, element, envelope), reply, headers);
                }
                _ => {
                    let error = "an element of the batch is no JSON-RPC message";
                    let line = error_line("null", INVALID_REQUEST, error);
                    reply.send(&Answer::error(&line, INVALID_REQUEST));
                }
            }
        }
    }

    /// Adds the deadline at which the array of answers leaves with what is there (§1.1): the
    /// client's budget, and a little more, so that the handles of its calls are in it.
    fn limit_batch(&self, batch: &Arc<Batch>) {
        const MARGIN: Duration = Duration::from_millis(50);
        let mut state = self.state();
        let Some(budget) = self.budget_of_client(&state.client.info) else { return };
        let at = Instant::now() + budget + MARGIN;
        self.add_deadline(&mut state, at, Due::Batch(Arc::downgrade(batch)));
    }

    /// One message of a batch.
    fn batch_element(self: &Arc<Self>, message: &Message, reply: Reply, headers: &Headers) {
        if Method::of(&message.envelope) == Some(Method::Initialize) {
            let error = "initialize must not be part of a batch";
            let line = error_line(message.id(), INVALID_REQUEST, error);
            reply.send(&Answer::error(&line, INVALID_REQUEST));
        } else {
            let params = Params::parse(message.envelope.params);
            self.client_message(message, &params, reply, headers);
        }
    }

    /// An array of the server: messages, or a log line that begins with a bracket.
    pub(super) fn server_batch(&self, line: &Bytes, text: &str, from: &MessageOrigin) {
        let elements = elements(text).unwrap_or_default();
        // A log line may be a JSON array too.
        if !elements.iter().any(|element| Envelope::parse(element).is_ok_and(|e| e.is_message())) {
            return warn!("skipped a line of the server that is no JSON-RPC: {}", excerpt(text));
        }
        if !self.state().client.info.sends_batches() {
            self.client.notify(line);
            return;
        }
        for element in elements {
            match Envelope::parse(element) {
                Ok(envelope) if envelope.is_message() => {
                    let part = line.slice_ref(element.as_bytes());
                    self.server_message(&Message::new(&part, element, envelope), from);
                }
                _ => warn!("skipped an element of a server's batch that is no JSON-RPC"),
            }
        }
    }
}
