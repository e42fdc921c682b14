//! Messages as lines: cutting a byte stream at line ends with a bound on memory (contract §9).

use std::io;
use std::pin::pin;
use std::str::from_utf8;

use bytes::{Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::line::Line;
use super::oversized::Oversized;

/// The least that one read asks for; it is more within a longer line.
const READ: usize = 64 << 10;
/// The byte order mark that some writers put before UTF-8.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How much is read ahead while `each_line` waits for room.
const AHEAD: usize = 4 << 20;

/// A message as one line: a line end inside JSON text is always white space.
pub(crate) fn one_line(message: &Bytes) -> Bytes {
    let space = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    message.iter().map(space).collect()
}

/// Calls `f` with a line and its text, in which invalid UTF-8 is replaced, since it would kill the
/// other side's reader (contract §1.1).
pub(crate) fn with_valid_utf8<T>(line: &Bytes, f: impl FnOnce(&Bytes, &str) -> T) -> T {
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
    /// how much of the buffer holds no line end
    scanned: usize,
    limit: usize,
    /// the line that comes, where it is above the limit
    oversized: Option<Oversized>,
    at_start: bool,
}

impl Lines {
    /// `limit`: the longest line in bytes (`max_message`).
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit, oversized: None, at_start: true }
    }

    /// Reads what is there, at least one byte. 0: the end of the stream.
    ///
    /// # Errors
    /// The stream can't be read.
    pub(crate) async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        self.buffer.reserve(READ.max(self.buffer.len().min(self.limit)));
        from.read_buf(&mut self.buffer).await
    }

    /// How many bytes were read and not returned as lines.
    fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The next complete line. Empty lines are skipped.
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
                // The buffer has grown for a long line: gives the memory back.
                self.buffer = BytesMut::new();
            }
            if let Some(oversized) = self.oversized.take() {
                return Some(oversized.finish(&line));
            }
            if line.len() > self.limit {
                return Some(Oversized::begin(line.freeze()).finish(&[]));
            }
            let line = self.trim(line.freeze());
            if !line.is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// At the end of the stream: a last line without a line end.
    pub(crate) fn last_line(&mut self) -> Option<Line> {
        let rest = self.buffer.split();
        self.scanned = 0;
        if let Some(oversized) = self.oversized.take() {
            return Some(oversized.finish(&rest));
        }
        let line = self.trim(rest.freeze());
        (!line.is_empty()).then_some(Line::Whole(line))
    }

    /// Drops what has come of a line above the limit, but for its two ends.
    fn bound(&mut self) {
        match &mut self.oversized {
            Some(oversized) => {
                oversized.add(&self.buffer);
                self.buffer.clear();
                self.scanned = 0;
            }
            None if self.buffer.len() > self.limit => {
                let begun = std::mem::take(&mut self.buffer).freeze();
                self.oversized = Some(Oversized::begin(begun));
                self.scanned = 0;
            }
            None => {}
        }
    }

    /// Without white space at its ends, and without a byte order mark at the start of the stream.
    fn trim(&mut self, mut line: Bytes) -> Bytes {
        if std::mem::take(&mut self.at_start) && line.starts_with(BOM) {
            line = line.slice(BOM.len()..);
        }
        let kept = line.trim_ascii();
        if kept.len() == line.len() { line } else { line.slice_ref(kept) }
    }
}

/// Reads a stream to its end and calls `on_line` with each line. Between reads it waits where
/// `room` returns a future; meanwhile it reads ahead a little, so that the end of the stream is
/// seen.
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

/// A message that will be kept for a while: a small one is copied, so that it does not hold the
/// whole read buffer that it is a slice of.
pub(crate) fn compact(bytes: &Bytes) -> Bytes {
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
