//! The bodies of answers.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

use crate::rpc::line::Line;
use crate::rpc::message_buffer::MessageBuffer;

use super::pool::Received;
use super::root_cause::root_cause;

/// How long a refusal may take to be read.
pub(crate) const REFUSAL: Duration = Duration::from_secs(10);
/// How long what follows an answer is read, so that its connection can be used again.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// How much is read of a body that nobody waits for.
pub(crate) const UNNEEDED: usize = 64 << 10;

/// Whether a body is a stream of events.
pub(crate) fn is_event_stream(response: &Response<Received>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

/// Reads a body to its end; what is above the limit is thrown away but for its two ends.
///
/// # Errors
/// A part of a sentence: why there was no end.
pub(crate) async fn gather(mut body: Received, limit: usize) -> Result<Option<Line>, String> {
    let mut buffer = MessageBuffer::new(limit, body.size_hint().lower());
    while let Some(frame) = body.frame().await {
        // Trailers mean nothing in MCP.
        if let Ok(data) = frame.map_err(|error| root_cause(&error))?.into_data() {
            buffer.add(data);
        }
    }
    Ok(buffer.finish())
}

/// Reads what nobody needs, so that its connection can be used again; not for long.
pub(crate) async fn pass_over(response: Response<Received>) {
    let _ = timeout(LINGER, gather(response.into_body(), UNNEEDED)).await;
}
