//! The body of a POST, within bounds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

/// How long the next part of a body may take.
const NEXT_PART: Duration = Duration::from_secs(60);

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// it is longer than this limit
    #[error("the body is longer than max_message ({0} bytes)")]
    TooLong(usize),
    /// its next part has not come
    #[error("the body did not come in time")]
    TimedOut,
    /// the connection or its framing broke
    #[error("the body could not be read to its end")]
    Broken,
    /// too many large bodies are being read
    #[error("too much is being sent at once; try again later")]
    NoRoom,
}

/// Reads a body of at most `limit` bytes. `all_bytes`: what is kept of all bodies that are being
/// read.
///
/// # Errors
/// See [`BodyError`].
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    limit: usize,
    all_bytes: &AtomicUsize,
) -> Result<Bytes, BodyError> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > limit) {
        return Err(BodyError::TooLong(limit));
    }
    let mut parts = Parts::new(all_bytes, 4 * limit);
    loop {
        let frame = match timeout(NEXT_PART, body.frame()).await {
            Ok(None) => return Ok(parts.whole()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Err(_) => return Err(BodyError::TimedOut),
        };
        let Ok(data) = frame.into_data() else { continue };
        if parts.len() + data.len() > limit {
            return Err(BodyError::TooLong(limit));
        }
        if !parts.add(data) {
            return Err(BodyError::NoRoom);
        }
    }
}

/// The parts of a body so far. Most bodies are one part, which is taken as it is; of larger ones no
/// more is held at a time than a few messages of the largest size, whoever sends them.
struct Parts<'a> {
    first: Bytes,
    joined: BytesMut,
    /// what is kept of all bodies, this one included
    all_bytes: &'a AtomicUsize,
    most: usize,
}

impl<'a> Parts<'a> {
    fn new(all_bytes: &'a AtomicUsize, most: usize) -> Self {
        Parts { first: Bytes::new(), joined: BytesMut::new(), all_bytes, most }
    }

    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    /// `false`: there is no room for it.
    fn add(&mut self, data: Bytes) -> bool {
        if self.len() == 0 {
            self.first = data;
            return true;
        }
        let first = std::mem::take(&mut self.first);
        for part in [first, data] {
            if self.all_bytes.fetch_add(part.len(), Ordering::Relaxed) + part.len() > self.most {
                self.all_bytes.fetch_sub(part.len(), Ordering::Relaxed);
                return false;
            }
            self.joined.extend_from_slice(&part);
        }
        true
    }

    fn whole(mut self) -> Bytes {
        if self.joined.is_empty() {
            return std::mem::take(&mut self.first);
        }
        self.all_bytes.fetch_sub(self.joined.len(), Ordering::Relaxed);
        std::mem::take(&mut self.joined).freeze()
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        self.all_bytes.fetch_sub(self.joined.len(), Ordering::Relaxed);
    }
}
