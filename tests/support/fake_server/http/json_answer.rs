//! An answer to a POST that is one JSON text.

use std::sync::{Arc, Mutex};

use crate::http::reply::Reply;
use crate::http::status;
use crate::wire::Wire;

/// The answer, which waits for all that belongs into it. Other messages go apart.
pub(crate) struct JsonAnswer {
    reply: Arc<Reply>,
    apart: Arc<dyn Wire>,
    /// The length of the array to answer with, where one was posted.
    batch: Option<usize>,
    /// Whether errors of the protocol are told by the status.
    modern: bool,
    answers: Mutex<Vec<String>>,
}

impl JsonAnswer {
    pub(crate) fn new(
        reply: Arc<Reply>,
        apart: Arc<dyn Wire>,
        batch: Option<usize>,
        modern: bool,
    ) -> Self {
        Self { reply, apart, batch, modern, answers: Mutex::default() }
    }
}

impl Wire for JsonAnswer {
    fn line(&self, line: &str) {
        self.apart.line(line);
    }

    fn bytes(&self, bytes: &[u8]) {
        self.apart.bytes(bytes);
    }

    fn answer(&self, line: &str) {
        let mut answers = self.answers.lock().expect("no holder panics");
        answers.push(line.to_owned());
        match self.batch {
            Some(length) if answers.len() == length => {
                self.reply.json(200, &format!("[{}]", answers.join(",")));
            }
            Some(_) => {}
            None => {
                self.reply.json(if self.modern { status::of_response(line) } else { 200 }, line)
            }
        }
    }

    fn end(&self) {
        if self.batch.is_none() {
            self.reply.whole(202, "");
        }
    }

    fn cut(&self) {
        self.reply.cut();
    }
}
