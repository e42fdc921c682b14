//! The answer to one HTTP request, whole or in chunks.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard};

use crate::http::status;

/// An answer to be. Threads share it; a client who is gone is no error here.
pub(crate) struct Reply {
    socket: TcpStream,
    state: Mutex<State>,
}

struct State {
    headers: Vec<(String, String)>,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Fresh,
    Open,
    Ended,
}

impl Reply {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self { socket, state: Mutex::new(State { headers: vec![], progress: Progress::Fresh }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Adds a header, while none has been sent.
    pub(crate) fn header(&self, name: &str, value: &str) {
        self.state().headers.push((name.to_owned(), value.to_owned()));
    }

    /// Whether nothing has been sent.
    pub(crate) fn is_fresh(&self) -> bool {
        self.state().progress == Progress::Fresh
    }

    /// Whether all has been sent, or the connection cut.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().progress == Progress::Ended
    }

    /// Answers with a whole body, unless an answer has begun.
    pub(crate) fn whole(&self, status: u16, body: &str) {
        let mut state = self.state();
        if state.progress == Progress::Fresh {
            state.progress = Progress::Ended;
            let head = format!("{}Content-Length: {}\r\n\r\n", head(&state, status), body.len());
            self.write((head + body).as_bytes());
        }
    }

    /// Answers with JSON.
    pub(crate) fn json(&self, status: u16, body: &str) {
        self.header("Content-Type", "application/json");
        self.whole(status, body);
    }

    /// Opens a stream of events.
    pub(crate) fn open(&self) {
        let mut state = self.state();
        if state.progress == Progress::Fresh {
            state.progress = Progress::Open;
            let head = head(&state, 200);
            let more = "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\n";
            self.write(format!("{head}{more}Transfer-Encoding: chunked\r\n\r\n").as_bytes());
        }
    }

    /// Writes to the open stream.
    pub(crate) fn chunk(&self, bytes: &[u8]) {
        if self.state().progress == Progress::Open && !bytes.is_empty() {
            let size = format!("{:x}\r\n", bytes.len());
            self.write(&[size.as_bytes(), bytes, b"\r\n"].concat());
        }
    }

    /// Ends the stream in due form.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        if state.progress == Progress::Open {
            state.progress = Progress::Ended;
            self.write(b"0\r\n\r\n");
        }
    }

    /// Breaks the connection, unless all has been sent: then it is another answer's.
    pub(crate) fn cut(&self) {
        let mut state = self.state();
        if state.progress != Progress::Ended {
            state.progress = Progress::Ended;
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    /// Writes headers that never end, until the client has enough of them.
    pub(crate) fn endless_headers(&self) {
        self.state().progress = Progress::Ended;
        let line = b"X-Filler: and so on, and so on, and so on\r\n";
        let mut socket = &self.socket;
        let mut go_on = socket.write_all(b"HTTP/1.1 200 OK\r\n").is_ok();
        while go_on {
            go_on = socket.write_all(line).is_ok();
        }
    }

    fn write(&self, bytes: &[u8]) {
        let _ = (&self.socket).write_all(bytes);
    }
}

fn head(state: &State, status: u16) -> String {
    let line = format!("HTTP/1.1 {status} {}\r\n", status::reason(status));
    let headers = state.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    line + &headers.collect::<String>()
}
