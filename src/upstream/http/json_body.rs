//! A body of JSON: one document, or several, each of which is taken as it comes.

use std::mem::replace;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use memchr::memchr;

use crate::rpc::documents::{self, Documents};
use crate::rpc::line::Line;
use crate::rpc::message_buffer::MessageBuffer;
use crate::upstream::observer::ServerObserver;

use super::pool::Received;
use super::root_cause::root_cause;

/// A body of JSON that is being read.
pub(crate) struct JsonBody {
    body: Received,
    limit: usize,
    /// it does not say how long it is: what comes may be all for a long time
    is_live: bool,
    read: ReadSoFar,
    ended: bool,
}

/// What has been read and not handed over.
enum ReadSoFar {
    /// one document, as far as is known: it is not looked into before the end
    One(MessageBuffer),
    Several(Documents),
}

impl JsonBody {
    /// `limit`: the longest document in bytes (`max_message`).
    pub(crate) fn new(body: Received, limit: usize) -> Self {
        let size = body.size_hint();
        let is_live = size.exact().is_none();
        // What is live is bounded here: what is behind an overlong document must still be found.
        let buffer = MessageBuffer::new(if is_live { usize::MAX } else { limit }, size.lower());
        let read = ReadSoFar::One(buffer);
        JsonBody { body, limit, is_live, read, ended: false }
    }

    /// Whether what was handed over is the whole body.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.read, ReadSoFar::One(_))
    }

    /// The next document; `None` at the end. While the way to the client is full, nothing is read.
    ///
    /// # Errors
    /// A part of a sentence: why there was no end.
    pub(crate) async fn next(
        &mut self,
        observer: &dyn ServerObserver,
    ) -> Result<Option<Line>, String> {
        loop {
            if let ReadSoFar::Several(documents) = &mut self.read {
                if let Some(document) = documents.next_document() {
                    return Ok(Some(document));
                }
                if let Some(room) = observer.room() {
                    room.await;
                }
            }
            if self.ended {
                return Ok(self.last());
            }
            match self.body.frame().await {
                // Trailers mean nothing in MCP.
                Some(frame) => {
                    if let Ok(data) = frame.map_err(|error| root_cause(&error))?.into_data() {
                        self.add(data);
                    }
                }
                None => self.ended = true,
            }
        }
    }

    /// Takes the whole body, which is no document, for several.
    pub(crate) fn divide(&mut self, whole: Bytes) {
        let mut documents = Documents::new(self.limit);
        documents.feed(whole);
        self.read = ReadSoFar::Several(documents);
    }

    fn last(&mut self) -> Option<Line> {
        match &mut self.read {
            ReadSoFar::Several(documents) => documents.last_document(),
            ReadSoFar::One(buffer) => replace(buffer, MessageBuffer::new(0, 0)).finish(),
        }
    }

    fn add(&mut self, data: Bytes) {
        match &mut self.read {
            ReadSoFar::Several(documents) => documents.feed(data),
            ReadSoFar::One(buffer) => {
                let may_end = self.is_live && memchr(b'\n', &data).is_some();
                buffer.add(data);
                if may_end || (self.is_live && buffer.len() > self.limit) {
                    self.look();
                }
            }
        }
    }

    /// With a line end in it a body that has not ended may be several documents, or one that is
    /// written on several lines. That is found out once it is there, so that a document on one line,
    /// which is the usual one, is not looked through for its end.
    fn look(&mut self) {
        let ReadSoFar::One(buffer) = &mut self.read else { return };
        if let Some(read) = buffer.take_if(documents::begins) {
            self.divide(read);
        } else if buffer.len() > self.limit {
            let read = buffer.take_if(|_| true).unwrap_or_default();
            *buffer = MessageBuffer::new(self.limit, 0);
            buffer.add(read);
            self.is_live = false;
        }
    }
}
