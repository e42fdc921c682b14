//! Bodies of responses.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::parts::take_part;
use super::reader::ResponseReader;
use super::sse_body::SseBody;

/// What hyper writes.
pub(crate) enum Body {
    /// all at once; empty where there is none
    Whole(Bytes),
    /// an answer, which counts as delivered once its last part has left
    Answer(Bytes, ResponseReader),
    /// events as they come
    Events(Box<SseBody>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Body::Whole(bytes) | Body::Answer(bytes, _) if bytes.is_empty() => Poll::Ready(None),
            Body::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::Answer(bytes, reader) => {
                let part = take_part(bytes);
                if bytes.is_empty() {
                    reader.mark_delivered();
                }
                Poll::Ready(Some(Ok(Frame::data(part))))
            }
            Body::Events(events) => {
                events.poll_chunk(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(bytes) | Body::Answer(bytes, _) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) | Body::Answer(bytes, _) => SizeHint::with_exact(bytes.len() as u64),
            Body::Events(_) => SizeHint::default(),
        }
    }
}
