//! stdout, in all the ways a server may write it.

use std::io::{self, Write, stdout};
use std::sync::Mutex;

use crate::flags::Flags;
use crate::wire::Wire;

/// The server's stdout. Threads share it; a line is never torn by another.
pub(crate) struct Output {
    line_end: &'static str,
    byte_writes: bool,
    turn: Mutex<()>,
}

impl Output {
    pub(crate) fn new(flags: &Flags) -> Self {
        let line_end = if flags.crlf { "\r\n" } else { "\n" };
        Self { line_end, byte_writes: flags.byte_writes, turn: Mutex::new(()) }
    }
}

impl Wire for Output {
    fn line(&self, line: &str) {
        self.bytes(format!("{line}{}", self.line_end).as_bytes());
    }

    // A reader who is gone is no error here.
    fn bytes(&self, bytes: &[u8]) {
        let _turn = self.turn.lock().expect("no writer panics");
        let chunk = if self.byte_writes { 1 } else { bytes.len().max(1) };
        for part in bytes.chunks(chunk) {
            let _ = write_now(part);
        }
    }

    fn cut(&self) {
        let null = std::fs::File::create("/dev/null").expect("there is a /dev/null");
        nix::unistd::dup2_stdout(null).expect("stdout can be replaced");
    }
}

fn write_now(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
