//! The body of a POST, within bounds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::downstream::http::Body;

use crate::mcp::error_code::REFUSED;

use super::answers::{empty, error, unavailable};

/// How long the next part of a body may take.
const BODY: Duration = Duration::from_secs(60);

/// Reads a body of at most `limit` bytes. `held`: what is held of all bodies that are being read.
///
/// # Errors
/// The response to give.
pub async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    limit: usize,
    held: &AtomicUsize,
) -> Result<Bytes, Response<Body>> {
    let too_long = || {
        let message = format!("the body is longer than max_message ({limit} bytes)");
        error(StatusCode::PAYLOAD_TOO_LARGE, None, REFUSED, &message)
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > limit) {
        return Err(too_long());
    }
    let mut parts = Parts::new(held, 4 * limit);
    loop {
        let frame = match timeout(BODY, body.frame()).await {
            Ok(None) => return Ok(parts.whole()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return Err(empty(StatusCode::BAD_REQUEST)),
            Err(_) => return Err(empty(StatusCode::REQUEST_TIMEOUT)),
        };
        let Ok(data) = frame.into_data() else { continue };
        if parts.len() + data.len() > limit {
            return Err(too_long());
        }
        if !parts.add(data) {
            return Err(unavailable(None, "too much is being sent at once; try again later"));
        }
    }
}

/// The parts of a body so far. Most bodies are one part, which is taken as it is; of larger ones no
/// more is held at a time than a few messages of the largest size, whoever sends them.
struct Parts<'a> {
    first: Bytes,
    all: BytesMut,
    held: &'a AtomicUsize,
    most: usize,
}

impl<'a> Parts<'a> {
    fn new(held: &'a AtomicUsize, most: usize) -> Self {
        Parts { first: Bytes::new(), all: BytesMut::new(), held, most }
    }

    fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    /// `false`: there is no room for it.
    fn add(&mut self, data: Bytes) -> bool {
        if self.len() == 0 {
            self.first = data;
            return true;
        }
        let first = std::mem::take(&mut self.first);
        for part in [first, data] {
            if self.held.fetch_add(part.len(), Ordering::Relaxed) + part.len() > self.most {
                self.held.fetch_sub(part.len(), Ordering::Relaxed);
                return false;
            }
            self.all.extend_from_slice(&part);
        }
        true
    }

    fn whole(mut self) -> Bytes {
        if self.all.is_empty() {
            return std::mem::take(&mut self.first);
        }
        self.held.fetch_sub(self.all.len(), Ordering::Relaxed);
        std::mem::take(&mut self.all).freeze()
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        self.held.fetch_sub(self.all.len(), Ordering::Relaxed);
    }
}
