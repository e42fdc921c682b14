//! Server-sent events: an event stream cut into events, with a bound on memory.
//!
//! The format is that of the HTML standard; MCP carries one message in the data of an event.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::{memchr, memchr2};

use super::line::Line;
use super::lines::BOM;
use super::oversized::Oversized;

/// The longest line of another field than `data`; the rest of a longer one is skipped.
const OTHER_LINE: usize = 8 << 10;
/// A buffer that has grown above this size is given back when it is empty.
const HELD: usize = 64 << 10;

/// One event. Events without a known field are skipped.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    /// `event`; `None` stands for `message`
    pub name: Option<Bytes>,
    /// `data`, the lines joined by LF; `None` where there is none, or only empty lines
    pub data: Option<Line>,
    /// `id`, from which a stream can be resumed; empty: it can't be resumed
    pub id: Option<Bytes>,
    /// `retry`: how long to wait before the stream is opened again
    pub retry: Option<Duration>,
}

impl Event {
    /// Whether its data is a message.
    pub(crate) fn is_message(&self) -> bool {
        self.name.as_deref().is_none_or(|name| name == b"message")
    }
}

/// Cuts events out of a byte stream. No more is kept than the limit and one read.
pub(crate) struct Events {
    limit: usize,
    buffer: BytesMut,
    /// how much of the buffer holds no line end
    scanned: usize,
    at_start: bool,
    /// the last line ended with CR: an LF right behind it is a part of its end
    after_cr: bool,
    /// the line that comes is too long: nothing of it is kept
    dropping: bool,
    event: Event,
    data: Data,
}

/// The data of the event, as far as it has come.
#[derive(Default)]
enum Data {
    #[default]
    None,
    /// one line, a slice of what was read
    Line(Bytes),
    /// several lines, joined by LF
    Lines(BytesMut),
    /// data above the limit; `in_line`: more of its last line comes
    TooLong { oversized: Oversized, in_line: bool },
}

impl Events {
    /// `limit`: the longest data of an event in bytes (`max_message`).
    pub(crate) fn new(limit: usize) -> Self {
        Events {
            limit,
            buffer: BytesMut::new(),
            scanned: 0,
            at_start: true,
            after_cr: false,
            dropping: false,
            event: Event::default(),
            data: Data::None,
        }
    }

    /// Adds what was read. All complete events must be taken with `next_event` before more is
    /// added.
    pub(crate) fn feed(&mut self, read: Bytes) {
        if self.buffer.is_empty() {
            // No copy where nobody else holds the read.
            self.buffer = BytesMut::from(read);
        } else {
            self.buffer.put(read);
        }
    }

    /// The next event that is complete.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        while let Some(line) = self.line() {
            if !line.is_empty() {
                self.field(line);
            } else if let Some(event) = self.dispatch() {
                return Some(event);
            }
        }
        None
    }

    /// At the end of the stream: an event whose last line is complete, but which no empty line
    /// ended.
    pub(crate) fn last_event(&mut self) -> Option<Event> {
        if self.buffer.is_empty() { self.dispatch() } else { None }
    }

    /// The next complete line, without its end.
    fn line(&mut self) -> Option<Bytes> {
        self.skip_marks();
        let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            self.bound();
            return None;
        };
        let end = self.scanned + found;
        self.scanned = 0;
        let mut line = self.buffer.split_to(end + 1);
        self.after_cr = line[end] == b'\r';
        line.truncate(end);
        if self.buffer.is_empty() && line.len() > HELD {
            self.buffer = BytesMut::new();
        }
        let mut line = line.freeze();
        if std::mem::take(&mut self.dropping) {
            if let Data::TooLong { oversized, in_line } = &mut self.data
                && std::mem::take(in_line)
            {
                oversized.add(&line);
            }
            // The line counts as a comment: its beginning is gone, and it must not count as empty.
            line = Bytes::from_static(b":");
        }
        Some(line)
    }

    /// Skips the byte order mark at the start of a stream, and the LF of a CR LF.
    fn skip_marks(&mut self) {
        if self.at_start && self.buffer.len() >= BOM.len() {
            self.at_start = false;
            if self.buffer.starts_with(BOM) {
                let _ = self.buffer.split_to(BOM.len());
                self.scanned = 0;
            }
        }
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                let _ = self.buffer.split_to(1);
            }
        }
    }

    /// Drops what has come of a line that is too long, but for the two ends of data.
    fn bound(&mut self) {
        let is_data = self.buffer.starts_with(b"data:");
        let limit = if is_data && !self.dropping { self.room() } else { OTHER_LINE };
        if self.buffer.len() <= limit {
            return;
        }
        let begun = std::mem::take(&mut self.buffer).freeze();
        self.scanned = 0;
        if std::mem::replace(&mut self.dropping, true) {
            if let Data::TooLong { oversized, in_line: true } = &mut self.data {
                oversized.add(&begun);
            }
        } else if is_data {
            self.too_long(value(&begun, b"data:".len() - 1), true);
        }
    }

    /// How long a line of data may be before it is too much.
    fn room(&self) -> usize {
        let before = match &self.data {
            Data::None | Data::TooLong { .. } => 0,
            Data::Line(line) => line.len(),
            Data::Lines(lines) => lines.len(),
        };
        b"data: \n".len() + self.limit.saturating_sub(before)
    }

    /// Adds a line of the event.
    fn field(&mut self, line: Bytes) {
        let colon = memchr(b':', &line).unwrap_or(line.len());
        match &line[..colon] {
            b"data" => self.add_data(value(&line, colon)),
            b"event" if line.len() <= OTHER_LINE => self.event.name = Some(value(&line, colon)),
            b"id" if line.len() <= OTHER_LINE && memchr(0, &line).is_none() => {
                self.event.id = Some(value(&line, colon));
            }
            b"retry" => self.event.retry = milliseconds(&value(&line, colon)).or(self.event.retry),
            _ => {}
        }
    }

    fn add_data(&mut self, more: Bytes) {
        if let Data::TooLong { oversized, .. } = &mut self.data {
            oversized.add(b"\n");
            return oversized.add(&more);
        }
        if more.len() + b"data: \n".len() > self.room() {
            return self.too_long(more, false);
        }
        self.data = match std::mem::take(&mut self.data) {
            Data::None => Data::Line(more),
            Data::Line(first) => {
                let mut lines = BytesMut::with_capacity(first.len() + 1 + more.len());
                lines.put(first);
                Data::Lines(joined(lines, &more))
            }
            Data::Lines(lines) => Data::Lines(joined(lines, &more)),
            long @ Data::TooLong { .. } => long,
        };
    }

    /// The data is above the limit with `more`; `in_line`: more of this line comes.
    fn too_long(&mut self, more: Bytes, in_line: bool) {
        let before = match std::mem::take(&mut self.data) {
            Data::None => None,
            Data::Line(line) => Some(Oversized::begin(line)),
            Data::Lines(lines) => Some(Oversized::begin(lines.freeze())),
            Data::TooLong { oversized, .. } => Some(oversized),
        };
        let oversized = match before {
            None => Oversized::begin(more),
            Some(mut oversized) => {
                oversized.add(b"\n");
                oversized.add(&more);
                oversized
            }
        };
        self.data = Data::TooLong { oversized, in_line };
    }

    /// The event that an empty line ends.
    fn dispatch(&mut self) -> Option<Event> {
        let mut event = std::mem::take(&mut self.event);
        event.data = match std::mem::take(&mut self.data) {
            Data::None => None,
            Data::Line(line) => (!line.is_empty()).then_some(Line::Whole(line)),
            Data::Lines(lines) => Some(Line::Whole(lines.freeze())),
            Data::TooLong { oversized, .. } => Some(oversized.finish(&[])),
        };
        (event != Event::default()).then_some(event)
    }
}

/// Adds a line of data.
fn joined(mut lines: BytesMut, more: &[u8]) -> BytesMut {
    lines.put_u8(b'\n');
    lines.put(more);
    lines
}

/// What stands behind the colon, without the one space that may follow it.
fn value(line: &Bytes, colon: usize) -> Bytes {
    let start = (colon + 1).min(line.len());
    let space = usize::from(line.get(start) == Some(&b' '));
    line.slice(start + space..)
}

fn milliseconds(digits: &[u8]) -> Option<Duration> {
    let digits = std::str::from_utf8(digits).ok()?;
    let all = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| all).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limit: usize, chunks: &[&[u8]]) -> Vec<Event> {
        let mut events = Events::new(limit);
        let mut out = Vec::new();
        for chunk in chunks {
            events.feed(Bytes::copy_from_slice(chunk));
            out.extend(std::iter::from_fn(|| events.next_event()));
        }
        out.extend(events.last_event());
        out
    }

    fn data(text: &str) -> Event {
        let data = Some(Line::Whole(Bytes::copy_from_slice(text.as_bytes())));
        Event { data, ..Event::default() }
    }

    #[test]
    fn fields_comments_and_events_without_data() {
        let stream: &[u8] = b"\xEF\xBB\xBF: hello\nid: 1\nretry: 250\ndata:\n\n\
            event: message\ndata: a\ndata:b\n\ndata\n\nunknown: 1\n\nretry: x\nid: 2\n\n";
        let id = |id: &'static str| Some(Bytes::from_static(id.as_bytes()));
        let retry = Some(Duration::from_millis(250));
        let expected = [
            Event { id: id("1"), retry, ..Event::default() },
            Event { name: id("message"), ..data("a\nb") },
            Event { id: id("2"), ..Event::default() },
        ];
        assert_eq!(cut(100, &[stream]), expected);
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(cut(100, &single), expected);
        assert!(expected.iter().all(Event::is_message));
    }

    #[test]
    fn all_three_line_ends_and_an_end_without_an_empty_line() {
        assert_eq!(
            cut(9, &[b"data: a\r\n\r\ndata: b\r\rdata: c\n\n"]),
            [data("a"), data("b"), data("c")]
        );
        assert_eq!(cut(9, &[b"data: a\r", b"\n\r", b"\ndata: b\r"]), [data("a"), data("b")]);
        assert_eq!(cut(9, &[b"data: a\n\ndata: b"]), [data("a")]);
    }

    #[test]
    fn data_above_the_limit_is_dropped_and_the_next_event_read_s9() {
        let long = [b"id: 7\ndata: {\"id\":1".as_slice(), &[b'x'; 90_000], b"end}\n\n"].concat();
        let stream = [long.as_slice(), b"data: good\n\n"].concat();
        for size in [1, 1000, 200_000] {
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            let events = cut(1000, &chunks);
            let Some(Line::TooLong { head, tail, length }) = &events[0].data else {
                panic!("{events:?}")
            };
            assert!(head.starts_with(b"{\"id\":1x") && tail.ends_with(b"xend}"));
            assert_eq!(*length, 90_011);
            assert_eq!(events[0].id.as_deref(), Some(b"7".as_slice()));
            assert_eq!(events[1..], [data("good")]);
        }
    }

    #[test]
    fn many_lines_and_comments_are_bounded_too() {
        let stream = b"data: 12345\ndata: 12345\ndata: 123\n\n";
        let events = cut(12, &[stream]);
        assert!(matches!(events[0].data, Some(Line::TooLong { length: 15, .. })), "{events:?}");
        let mut events = Events::new(10);
        for _ in 0..100 {
            events.feed(Bytes::from(vec![b':'; 1000]));
            assert_eq!(events.next_event(), None);
            assert!(events.buffer.len() <= OTHER_LINE);
        }
        events.feed(Bytes::from_static(b"\ndata: x\n\n"));
        assert_eq!(events.next_event(), Some(data("x")));
    }
}
