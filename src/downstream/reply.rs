//! Where an answer goes: to the client's stream, into an HTTP response, or into the array of a
//! batch.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::StatusCode;

use crate::rpc::outbox::Outbox;

use super::http::exchange::Exchange;

/// The way of one answer.
#[derive(Clone)]
pub enum Reply {
    /// a line of its own
    Line(Arc<Outbox>),
    /// the response to a POST
    Http(Arc<Exchange>),
    /// one element of the answer to a batch
    Batch(Arc<Batch>),
}

impl Reply {
    /// Sends the answer, with the HTTP status that the server gave it, if any. `false`: the client
    /// is gone.
    pub fn send(&self, message: &Bytes, status: Option<StatusCode>) -> bool {
        match self {
            Reply::Line(outbox) => outbox.push(message),
            Reply::Http(exchange) => exchange.answer(message, status),
            Reply::Batch(batch) => batch.add(message),
        }
    }

    /// Sends what belongs to the request and comes before its answer: progress, a log line, a
    /// question. `false`: it can't go this way.
    pub fn push(&self, message: &Bytes) -> bool {
        match self {
            Reply::Line(outbox) => outbox.push(message),
            Reply::Http(exchange) => exchange.push(message),
            Reply::Batch(batch) => batch.to.push(message),
        }
    }

    /// Whether an answer would still reach the client.
    pub fn is_open(&self) -> bool {
        match self {
            Reply::Line(outbox) => outbox.is_open(),
            Reply::Http(exchange) => exchange.is_open(),
            Reply::Batch(batch) => batch.to.is_open(),
        }
    }

    /// The HTTP response that the answer goes into, unless it is a part of a batch.
    pub fn exchange(&self) -> Option<&Arc<Exchange>> {
        match self {
            Reply::Http(exchange) => Some(exchange),
            _ => None,
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Reply::Line(_) => "Line",
            Reply::Http(_) => "Http",
            Reply::Batch(_) => "Batch",
        })
    }
}

/// The answers to one array of requests. They leave as one array when the last request that had
/// to be answered is done with, that is when the last [`Reply`] to it is dropped; or earlier, with
/// [`Batch::flush`], after which the rest leaves in arrays of its own.
pub struct Batch {
    answers: Mutex<Answers>,
    to: Reply,
}

#[derive(Default)]
struct Answers {
    gathered: Vec<Bytes>,
    late: bool,
}

impl Answers {
    fn take(&mut self) -> Option<Bytes> {
        let answers = std::mem::take(&mut self.gathered);
        let array = || [b"[".as_slice(), &answers.join(&b","[..]), b"]"].concat();
        (!answers.is_empty()).then(|| array().into())
    }
}

impl Batch {
    pub fn new(to: Reply) -> Arc<Self> {
        Arc::new(Batch { answers: Mutex::default(), to })
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().expect("no panic while the answers are held")
    }

    fn add(&self, message: &Bytes) -> bool {
        let mut answers = self.answers();
        answers.gathered.push(message.clone());
        if answers.late
            && let Some(array) = answers.take()
        {
            self.to.push(&array);
        }
        self.to.is_open()
    }

    /// Sends what is there; what comes later leaves at once.
    pub fn flush(&self) {
        let mut answers = self.answers();
        if let Some(array) = answers.take() {
            // A client that takes no stream gets one array, when all is there.
            answers.late = self.to.push(&array);
            if !answers.late {
                answers.gathered.push(array.slice(1..array.len() - 1));
            }
        } else {
            answers.late = true;
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let rest = self.answers().take();
        match (&self.to, rest) {
            (Reply::Http(exchange), None) => exchange.finish(),
            (to, Some(array)) => drop(to.send(&array, None)),
            (_, None) => {}
        }
    }
}
