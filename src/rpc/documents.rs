//! JSON documents one behind the other: each is cut off where it ends, with a bound on memory.
//!
//! Where a document ends is told by its brackets alone; whether it is JSON is for its reader.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use memchr::{memchr, memchr2};

use super::line::Line;
use super::oversized::Oversized;

/// Cuts documents out of a byte stream. No byte is scanned twice, and no more than the limit and one
/// read is kept.
pub(crate) struct Documents {
    limit: usize,
    buffer: BytesMut,
    scanned: usize,
    place: Place,
    /// brackets that are open
    depth: usize,
    oversized: Option<Oversized>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy)]
enum Place {
    Between,
    Document,
    String,
    Escape,
    /// a line that is no document
    Other,
}

/// Whether this may be the beginning of a document.
pub(crate) fn begins(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

impl Documents {
    /// `limit`: the longest document in bytes (`max_message`).
    pub(crate) fn new(limit: usize) -> Self {
        let (buffer, place) = (BytesMut::new(), Place::Between);
        Documents { limit, buffer, scanned: 0, place, depth: 0, oversized: None }
    }

    /// Takes up what was read; all documents that it ends must be taken before more is.
    pub(crate) fn feed(&mut self, read: Bytes) {
        if self.buffer.is_empty() {
            // No copy where nobody else holds the read.
            self.buffer = BytesMut::from(read);
        } else {
            self.buffer.put(read);
        }
    }

    /// The next document that is complete, or a line that is none.
    pub(crate) fn next_document(&mut self) -> Option<Line> {
        let Some(end) = self.scan() else {
            self.bound();
            return None;
        };
        let document = self.buffer.split_to(end).freeze();
        self.scanned = 0;
        Some(match self.oversized.take() {
            Some(oversized) => oversized.finish(&document),
            None if document.len() > self.limit => Oversized::begin(document).finish(&[]),
            None => Line::Whole(document.slice_ref(document.trim_ascii())),
        })
    }

    /// The rest at the end of the stream: a document without an end.
    pub(crate) fn last_document(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        if let Some(oversized) = self.oversized.take() {
            return Some(oversized.finish(&rest));
        }
        let rest = rest.slice_ref(rest.trim_ascii());
        (!rest.is_empty()).then_some(Line::Whole(rest))
    }

    /// The end of the document that begins the buffer.
    fn scan(&mut self) -> Option<usize> {
        while self.scanned < self.buffer.len() {
            match self.place {
                Place::Between => self.begin(),
                Place::Document => {
                    if self.bracket() {
                        return Some(self.scanned);
                    }
                }
                Place::String => match self.find(|rest| memchr2(b'"', b'\\', rest)) {
                    Some(b'"') => self.place = Place::Document,
                    Some(_) => self.place = Place::Escape,
                    None => {}
                },
                Place::Escape => {
                    self.scanned += 1;
                    self.place = Place::String;
                }
                Place::Other => {
                    if self.find(|rest| memchr(b'\n', rest)).is_some() {
                        self.place = Place::Between;
                        return Some(self.scanned);
                    }
                }
            }
        }
        None
    }

    /// Passes over white space, and looks at what comes then.
    fn begin(&mut self) {
        let space = self.buffer.len() - self.buffer.trim_ascii_start().len();
        self.buffer.advance(space);
        self.place = match self.buffer.first() {
            Some(b'{' | b'[') => Place::Document,
            Some(_) => Place::Other,
            None => Place::Between,
        };
    }

    /// Goes on to the next bracket or string; whether the document ends there.
    fn bracket(&mut self) -> bool {
        let is_structure = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
        match self.find(|rest| rest.iter().position(is_structure)) {
            Some(b'"') => self.place = Place::String,
            Some(b'{' | b'[') => self.depth += 1,
            Some(_) => self.depth -= 1,
            None => return false,
        }
        if self.depth == 0 {
            self.place = Place::Between;
        }
        self.depth == 0
    }

    /// Goes on to behind the byte that is found, or to the end.
    fn find(&mut self, at: impl Fn(&[u8]) -> Option<usize>) -> Option<u8> {
        let rest = &self.buffer[self.scanned..];
        let found = at(rest);
        let byte = found.map(|at| rest[at]);
        self.scanned += found.map_or(rest.len(), |at| at + 1);
        byte
    }

    /// Gives up on a document that outgrew the limit.
    fn bound(&mut self) {
        match &mut self.oversized {
            Some(oversized) => oversized.add(&self.buffer),
            None if self.buffer.len() > self.limit => {
                let begun = std::mem::take(&mut self.buffer).freeze();
                self.oversized = Some(Oversized::begin(begun));
            }
            None => return,
        }
        self.buffer.clear();
        self.scanned = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut documents = Documents::new(limit);
        let mut out = Vec::new();
        for chunk in chunks {
            documents.feed(Bytes::copy_from_slice(chunk));
            out.extend(std::iter::from_fn(|| documents.next_document()));
        }
        out.extend(documents.last_document());
        out
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn k4_documents_end_with_their_brackets_however_they_come() {
        let stream: &[u8] =
            b" {\"a\":\"}\\\"]\\\\\"}\r\n\n{\n  \"b\": [1,\n {}]\n}\nlog: {\n[{}][]{\"c";
        let expected = [
            whole("{\"a\":\"}\\\"]\\\\\"}"),
            whole("{\n  \"b\": [1,\n {}]\n}"),
            whole("log: {"),
            whole("[{}]"),
            whole("[]"),
            whole("{\"c"),
        ];
        for size in [1, 2, 7, 1000] {
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            assert_eq!(cut(100, &chunks), expected, "{size}");
        }
    }

    #[test]
    fn k4_a_document_above_the_limit_is_dropped_and_the_next_one_read() {
        let long = [b"{\"id\":1,\"x\":\"".as_slice(), &[b'{'; 50_000], b"\"}\n{\"id\":2}"].concat();
        for size in [1, 999, 100_000] {
            let chunks: Vec<&[u8]> = long.chunks(size).collect();
            let documents = cut(1000, &chunks);
            let Line::TooLong { head, tail, length } = &documents[0] else {
                panic!("{documents:?}")
            };
            assert!(head.starts_with(b"{\"id\":1") && tail.ends_with(b"{\"}"));
            assert_eq!(*length, 50_015);
            assert_eq!(documents[1..], [whole("{\"id\":2}")]);
        }
    }
}
