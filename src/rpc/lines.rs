//! Messages as lines: cutting a byte stream at line ends with a bound on memory (contract §9).

use std::io;
use std::pin::pin;
use std::str::from_utf8;

use bytes::{Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What the reader asks for at once; longer lines make it ask for more.
const READ: usize = 64 << 10;
/// How much of each end of an overlong line is kept, so that its id can still be found.
const KEPT: usize = 4 << 10;

/// The mark that some writers begin UTF-8 with.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How much is read while there is no room for it.
const AHEAD: usize = 4 << 20;

/// One line without its line end.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// a whole line
    Whole(Bytes),
    /// a line above the limit, thrown away but for its two ends
    TooLong { head: Bytes, tail: Bytes, length: u64 },
}

/// A message as one line: a line end inside JSON text is always white space.
pub(crate) fn one_line(message: &Bytes) -> Bytes {
    let space = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    message.iter().map(space).collect()
}

/// Hands over a line with its text. Invalid UTF-8 would kill the other side's reader; it alone is
/// replaced (contract §1.1).
pub(crate) fn with_text<T>(line: &Bytes, f: impl FnOnce(&Bytes, &str) -> T) -> T {
    match from_utf8(line) {
        Ok(text) => f(line, text),
        Err(_) => {
            let valid: Bytes = String::from_utf8_lossy(line).into_owned().into();
            f(&valid, from_utf8(&valid).unwrap_or_default())
        }
    }
}

/// Cuts lines out of a byte stream. No byte is scanned twice, and no more than the limit is kept.
pub(crate) struct Lines {
    buffer: BytesMut,
    scanned: usize,
    limit: usize,
    skipping: Option<Skipped>,
    at_start: bool,
}

/// A message above the limit, as far as it is kept.
pub(super) struct Skipped {
    head: Bytes,
    tail: BytesMut,
    length: u64,
}

impl Lines {
    /// `limit`: the longest line in bytes (`max_message`).
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit, skipping: None, at_start: true }
    }

    /// Reads what is there, waiting for the first byte. 0 is the end of the stream.
    pub(crate) async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        self.buffer.reserve(READ.max(self.buffer.len().min(self.limit)));
        from.read_buf(&mut self.buffer).await
    }

    /// Bytes that were read and not handed over.
    fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The next line that is complete. Empty lines are passed over.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(found) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.bound();
                return None;
            };
            let end = self.scanned + found;
            let mut line = self.buffer.split_to(end + 1);
            line.truncate(end);
            self.scanned = 0;
            if line.len() > READ && self.buffer.is_empty() {
                // A long line grew the buffer; what is left of it must not be held for ever.
                self.buffer = BytesMut::new();
            }
            if let Some(skipped) = self.skipping.take() {
                return Some(skipped.finish(&line));
            }
            if line.len() > self.limit {
                return Some(Skipped::begin(line.freeze()).finish(&[]));
            }
            let line = self.trim(line.freeze());
            if !line.is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// The rest at the end of the stream: a last line without a line end.
    pub(crate) fn last_line(&mut self) -> Option<Line> {
        let rest = self.buffer.split();
        self.scanned = 0;
        if let Some(skipped) = self.skipping.take() {
            return Some(skipped.finish(&rest));
        }
        let line = self.trim(rest.freeze());
        (!line.is_empty()).then_some(Line::Whole(line))
    }

    /// Gives up on a line that outgrew the limit.
    fn bound(&mut self) {
        match &mut self.skipping {
            Some(skipped) => {
                skipped.add(&self.buffer);
                self.buffer.clear();
                self.scanned = 0;
            }
            None if self.buffer.len() > self.limit => {
                let begun = std::mem::take(&mut self.buffer).freeze();
                self.skipping = Some(Skipped::begin(begun));
                self.scanned = 0;
            }
            None => {}
        }
    }

    fn trim(&mut self, mut line: Bytes) -> Bytes {
        if std::mem::take(&mut self.at_start) && line.starts_with(BOM) {
            line = line.slice(BOM.len()..);
        }
        let kept = line.trim_ascii();
        if kept.len() == line.len() { line } else { line.slice_ref(kept) }
    }
}

impl Skipped {
    pub(super) fn begin(line: Bytes) -> Self {
        let head = Bytes::copy_from_slice(&line[..KEPT.min(line.len())]);
        let mut skipped = Skipped { head, tail: BytesMut::new(), length: 0 };
        skipped.add(&line);
        skipped
    }

    pub(super) fn add(&mut self, more: &[u8]) {
        self.length += more.len() as u64;
        self.tail.extend_from_slice(&more[more.len().saturating_sub(KEPT)..]);
        if self.tail.len() > KEPT {
            let _ = self.tail.split_to(self.tail.len() - KEPT);
        }
    }

    pub(super) fn finish(mut self, rest: &[u8]) -> Line {
        self.add(rest);
        Line::TooLong { head: self.head, tail: self.tail.freeze(), length: self.length }
    }
}

/// Reads a stream to its end: hands over each line, and waits between reads where `room` gives
/// something to wait for. Some is read meanwhile, so that an end behind it is seen.
pub(crate) async fn each_line<F: Future<Output = ()>>(
    mut from: impl AsyncRead + Unpin,
    limit: usize,
    mut on_line: impl FnMut(Line),
    room: impl Fn() -> Option<F>,
) {
    let mut lines = Lines::new(limit);
    let mut open = true;
    while open {
        open = lines.fill(&mut from).await.is_ok_and(|n| n > 0);
        while let Some(line) = lines.next_line() {
            on_line(line);
        }
        let Some(room) = room() else { continue };
        let mut room = pin!(room);
        while open {
            tokio::select! {
                biased;
                () = &mut room => break,
                read = lines.fill(&mut from), if lines.buffered() < AHEAD => {
                    open = read.is_ok_and(|n| n > 0);
                }
            }
        }
    }
    while let Some(line) = lines.next_line().or_else(|| lines.last_line()) {
        on_line(line);
    }
}

/// Gathers one message that comes in pieces, with a bound on memory.
pub(crate) struct Gathered {
    limit: usize,
    expected: usize,
    first: Bytes,
    more: BytesMut,
    skipped: Option<Skipped>,
}

impl Gathered {
    /// `limit`: the longest message in bytes (`max_message`). `expected`: how long the message says
    /// that it is, 0 where it does not.
    pub(crate) fn new(limit: usize, expected: u64) -> Self {
        let expected = usize::try_from(expected).map_or(limit, |expected| expected.min(limit));
        Gathered { limit, expected, first: Bytes::new(), more: BytesMut::new(), skipped: None }
    }

    /// How much was gathered.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    /// Takes out what was gathered, if that is what it begins as.
    pub(crate) fn take_if(&mut self, begins: impl Fn(&[u8]) -> bool) -> Option<Bytes> {
        let read = if self.more.is_empty() { &self.first[..] } else { &self.more[..] };
        let text = read.strip_prefix(BOM).unwrap_or(read);
        if self.skipped.is_some() || !begins(text) {
            return None;
        }
        let mark = read.len() - text.len();
        let first = std::mem::take(&mut self.first);
        let read = if self.more.is_empty() { first } else { self.more.split().freeze() };
        Some(read.slice(mark..))
    }

    /// Adds a piece. A message of one piece is not copied; a piece that others follow is not held,
    /// so that the buffer which it is a part of can be used again.
    pub(crate) fn add(&mut self, piece: Bytes) {
        let is_first = self.first.is_empty() && self.more.is_empty();
        if let Some(skipped) = &mut self.skipped {
            skipped.add(&piece);
        } else if is_first && (self.expected..=self.limit).contains(&piece.len()) {
            self.first = piece;
        } else {
            if self.more.is_empty() {
                // Room alone: it takes no memory before it is written to.
                self.more.reserve(self.expected.max(self.first.len() + piece.len()));
                self.more.extend_from_slice(&self.first);
            }
            self.more.extend_from_slice(&piece);
            if self.more.len() > self.limit {
                self.skipped = Some(Skipped::begin(std::mem::take(&mut self.more).freeze()));
            }
        }
    }

    /// The message; `None` where there is nothing but white space.
    pub(crate) fn finish(self) -> Option<Line> {
        if let Some(skipped) = self.skipped {
            return Some(skipped.finish(&[]));
        }
        let whole = if self.more.is_empty() { self.first } else { self.more.freeze() };
        let whole = whole.strip_prefix(BOM).map_or(whole.clone(), |rest| whole.slice_ref(rest));
        let line = whole.slice_ref(whole.trim_ascii());
        (!line.is_empty()).then_some(Line::Whole(line))
    }
}

/// A message kept for longer than its turn: a small one is copied, so that it does not hold the
/// whole read buffer that it is a slice of.
pub(crate) fn keep(bytes: &Bytes) -> Bytes {
    if bytes.len() < READ / 2 { Bytes::copy_from_slice(bytes) } else { bytes.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn cut(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        for mut chunk in chunks.iter().copied() {
            while lines.fill(&mut chunk).await.unwrap() > 0 {
                while let Some(line) = lines.next_line() {
                    out.push(line);
                }
            }
        }
        out.extend(lines.last_line());
        out
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[tokio::test]
    async fn crlf_bom_single_bytes_and_a_last_line_s9() {
        let chunks: &[&[u8]] = &[b"\xEF\xBB\xBFa\r\n", b"\n", b"b", b"c", b"\n", b"end"];
        assert_eq!(cut(100, chunks).await, [whole("a"), whole("bc"), whole("end")]);
    }

    #[tokio::test]
    async fn c32_a_line_above_the_limit_is_dropped_and_the_next_one_read() {
        let long = vec![b'x'; 50_000];
        let mut stream = b"{\"id\":1".to_vec();
        for _ in 0..10 {
            stream.extend_from_slice(&long);
        }
        stream.extend_from_slice(b"end}\ngood\n");
        let lines = cut(1000, &[&stream]).await;
        let Line::TooLong { head, tail, length } = &lines[0] else { panic!("{lines:?}") };
        assert!(head.starts_with(b"{\"id\":1") && tail.ends_with(b"end}"));
        assert_eq!(*length, 500_011);
        assert_eq!(lines[1], whole("good"));
    }
}
