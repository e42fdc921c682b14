//! The answers to an array of requests (2025-03-26).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::reply::{Answer, Reply, Responder};

/// The answers to one array of requests. They leave as one array when the last request that had
/// to be answered is done with, that is when the last [`Reply`] to it is dropped; or earlier, with
/// [`Batch::flush`], after which the rest leaves in arrays of its own.
pub(crate) struct Batch {
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
    /// The answers to an array whose own answer goes to `to`.
    pub(crate) fn new(to: Reply) -> Arc<Self> {
        Arc::new(Batch { answers: Mutex::default(), to })
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().expect("no panic while the answers are held")
    }

    /// Sends what is there; what comes later leaves at once.
    pub(crate) fn flush(&self) {
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

/// The way back of one element. It has no stream of its own, and no HTTP status.
impl Responder for Batch {
    fn send(&self, answer: &Answer) -> bool {
        let mut answers = self.answers();
        answers.gathered.push(answer.line.clone());
        if answers.late
            && let Some(array) = answers.take()
        {
            self.to.push(&array);
        }
        self.to.is_open()
    }

    fn push(&self, message: &Bytes) -> bool {
        self.to.push(message)
    }

    fn is_open(&self) -> bool {
        self.to.is_open()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Batch")
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        match self.answers().take() {
            Some(array) => drop(self.to.send(&Answer::array(&array))),
            None => self.to.finish(),
        }
    }
}
