//! Server-sent events, read as they come.

/// An event, or a comment by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub name: Option<String>,
    pub data: Option<String>,
    pub retry: Option<u64>,
    pub comment: Option<String>,
}

impl Event {
    /// Whether it carries a message.
    pub fn is_message(&self) -> bool {
        self.data.as_ref().is_some_and(|data| !data.is_empty())
            && self.name.as_deref().is_none_or(|name| name == "message")
    }

    fn add(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "id" => self.id = Some(value),
            "event" => self.name = Some(value),
            "retry" => self.retry = value.parse().ok(),
            "data" => {
                self.data = Some(match self.data.take() {
                    Some(before) => format!("{before}\n{value}"),
                    None => value,
                });
            }
            _ => {}
        }
    }
}

/// Bytes on their way to become events.
#[derive(Default)]
pub struct Events {
    bytes: Vec<u8>,
    /// So many of them were searched for the end of a line: an event may be of megabytes.
    searched: usize,
    /// The last line ended with CR: an LF right behind it is a part of its end.
    after_cr: bool,
    event: Event,
}

impl Events {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next event that is there as a whole.
    pub fn next(&mut self) -> Option<Event> {
        while let Some(line) = self.line() {
            if let Some(comment) = line.strip_prefix(':') {
                return Some(Event { comment: Some(comment.trim().into()), ..Event::default() });
            }
            if line.is_empty() && self.event != Event::default() {
                return Some(std::mem::take(&mut self.event));
            }
            self.event.add(&line);
        }
        None
    }

    /// The next line without its end: LF, CR, or CR LF, whose LF may come later.
    fn line(&mut self) -> Option<String> {
        if self.after_cr && !self.bytes.is_empty() {
            self.after_cr = false;
            if self.bytes[0] == b'\n' {
                self.bytes.remove(0);
            }
        }
        let end = memchr::memchr2(b'\n', b'\r', &self.bytes[self.searched..]);
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.bytes.len();
            return None;
        };
        self.searched = 0;
        self.after_cr = self.bytes[end] == b'\r';
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        Some(String::from_utf8(line).expect("events are UTF-8"))
    }
}
