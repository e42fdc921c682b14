//! Where an answer goes: to the client's stream, or into the array of a batch.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use crate::rpc::outbox::Outbox;

/// The way of one answer.
#[derive(Clone)]
pub enum Reply {
    /// a line of its own
    Line(Arc<Outbox>),
    /// one element of the answer to a batch
    Batch(Arc<Batch>),
}

impl Reply {
    /// Sends the answer. `false`: the client is gone.
    pub fn send(&self, message: &Bytes) -> bool {
        match self {
            Reply::Line(outbox) => outbox.push(message),
            Reply::Batch(batch) => batch.add(message),
        }
    }

    /// Whether an answer would still reach the client.
    pub fn is_open(&self) -> bool {
        match self {
            Reply::Line(outbox) => outbox.is_open(),
            Reply::Batch(batch) => batch.outbox.is_open(),
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Reply::Line(_) => "Line",
            Reply::Batch(_) => "Batch",
        })
    }
}

/// The answers to one array of requests. They leave as one array when the last request that had
/// to be answered is done with, that is when the last [`Reply`] to it is dropped; or earlier, with
/// [`Batch::flush`], after which the rest leaves in arrays of its own.
pub struct Batch {
    answers: Mutex<Answers>,
    outbox: Arc<Outbox>,
}

#[derive(Default)]
struct Answers {
    gathered: Vec<Bytes>,
    late: bool,
}

impl Answers {
    fn send(&mut self, outbox: &Outbox) {
        let answers = std::mem::take(&mut self.gathered);
        if !answers.is_empty() {
            let array = [b"[".as_slice(), &answers.join(&b","[..]), b"]"].concat();
            outbox.push(&array.into());
        }
    }
}

impl Batch {
    pub fn new(outbox: Arc<Outbox>) -> Arc<Self> {
        Arc::new(Batch { answers: Mutex::default(), outbox })
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().expect("no panic while the answers are held")
    }

    fn add(&self, message: &Bytes) -> bool {
        let mut answers = self.answers();
        answers.gathered.push(message.clone());
        if answers.late {
            answers.send(&self.outbox);
        }
        self.outbox.is_open()
    }

    /// Sends what is there; what comes later leaves at once.
    pub fn flush(&self) {
        let mut answers = self.answers();
        answers.late = true;
        answers.send(&self.outbox);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.answers().send(&self.outbox);
    }
}
