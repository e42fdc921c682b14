//! HTTP by hand, for what no client does that means well.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::HttpPeer;
use crate::DEADLINE;

/// A connection on which bytes are written and read.
pub struct Raw(TcpStream);

impl HttpPeer {
    /// A connection to the same server.
    pub async fn raw(&self) -> Raw {
        let stream = TcpStream::connect(self.authority()).await;
        Raw(stream.expect("the server takes connections"))
    }

    /// The head of a POST as this client would send it, without the end of the headers.
    pub fn raw_head(&self) -> String {
        let session = self.session().map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{}",
            self.authority(),
            session.unwrap_or_default(),
        )
    }
}

impl Raw {
    /// Writes as much as the server takes; false once it takes no more.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        let written = timeout(DEADLINE, self.0.write_all(bytes)).await;
        written.expect("the server reads, or hangs up").is_ok()
    }

    /// Reads until `wanted` is in what came, or the server hangs up; all that came.
    pub async fn read_until(&mut self, wanted: &str) -> String {
        let mut seen = Vec::new();
        let read = async {
            let mut part = [0; 4096];
            while !String::from_utf8_lossy(&seen).contains(wanted) {
                match self.0.read(&mut part).await {
                    Ok(0) | Err(_) => break,
                    Ok(length) => seen.extend_from_slice(&part[..length]),
                }
            }
        };
        let _ = timeout(DEADLINE, read).await;
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// The status of the next answer; 0 if the server hangs up instead.
    pub async fn status(&mut self) -> u16 {
        let head = self.read_until("\r\n\r\n").await;
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Whether the server hangs up within this time.
    pub async fn is_closed_within(&mut self, time: Duration) -> bool {
        let mut rest = Vec::new();
        timeout(time, self.0.read_to_end(&mut rest)).await.is_ok()
    }
}
