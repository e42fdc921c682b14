//! The body of a request of ours: one message, and whether it has left.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Above this many bytes that have not left, readers that bring more pause.
const HIGH_WATER: usize = 8 << 20;
/// What was written is taken to have arrived after this time, where nothing tells.
const ARRIVED: Duration = Duration::from_millis(100);

/// The bytes of all messages of one life that have not left.
#[derive(Default)]
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    drained: Notify,
}

impl Backlog {
    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < HIGH_WATER
    }

    /// Waits until there is room for more.
    pub(crate) async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            if self.has_room() {
                return;
            }
            drained.await;
        }
    }

    fn left(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        // Nobody waits below the mark, and to look for them costs each message.
        if before >= HIGH_WATER {
            self.drained.notify_waiters();
        }
    }
}

/// How far a message has come. The stages are ordered.
#[derive(Default)]
struct Stages {
    stage: AtomicU8,
    /// somebody waits for a stage
    watched: AtomicBool,
    moved: Notify,
}

const QUEUED: u8 = 0;
/// on its way: the server may have it
const LEFT: u8 = 1;
/// the server has begun to answer, or never will
const ANSWERED: u8 = 2;

impl Stages {
    fn reach(&self, stage: u8) -> u8 {
        let before = self.stage.fetch_max(stage, Ordering::AcqRel);
        if self.watched.load(Ordering::Acquire) {
            self.moved.notify_waiters();
        }
        before
    }

    async fn until(&self, stage: u8) {
        self.watched.store(true, Ordering::Release);
        loop {
            let moved = self.moved.notified();
            if self.stage.load(Ordering::Acquire) >= stage {
                return;
            }
            moved.await;
        }
    }
}

/// How far one message has come; until it has left, it counts as backlog.
pub(crate) struct SendProgress {
    stages: Arc<Stages>,
    bytes: usize,
    backlog: Arc<Backlog>,
}

impl SendProgress {
    /// Of a message with so many bytes, which has not left.
    pub(crate) fn new(bytes: usize, backlog: &Arc<Backlog>) -> Arc<Self> {
        backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        Arc::new(SendProgress { stages: Arc::default(), bytes, backlog: backlog.clone() })
    }

    fn reach(&self, stage: u8) {
        if self.stages.reach(stage) == QUEUED {
            self.backlog.left(self.bytes);
        }
    }

    /// The server has begun to answer it.
    pub(crate) fn note_answer(&self) {
        self.reach(ANSWERED);
    }

    /// Whether the server may have it.
    pub(crate) fn has_left(&self) -> bool {
        self.stages.stage.load(Ordering::Acquire) > QUEUED
    }

    /// Waits until what is sent now can't overtake it.
    pub(crate) async fn arrived(self: Arc<Self>) {
        let stages = self.stages.clone();
        // Once nobody holds it, it is over.
        drop(self);
        stages.until(LEFT).await;
        let _ = timeout(ARRIVED, stages.until(ANSWERED)).await;
    }
}

impl Drop for SendProgress {
    fn drop(&mut self) {
        self.reach(ANSWERED);
    }
}

/// The body of a request.
#[derive(Default)]
pub(crate) struct RequestBody(Option<(Bytes, Arc<SendProgress>)>);

impl RequestBody {
    /// One message.
    pub(crate) fn message(message: Bytes, sent: Arc<SendProgress>) -> Self {
        RequestBody(Some((message, sent)))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|(message, sent)| {
            sent.reach(LEFT);
            Ok(Frame::data(message))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |(message, _)| message.len() as u64))
    }
}
