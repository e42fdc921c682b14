//! The body of a request of ours: one message, and whether it has left.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
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

/// The bytes of all messages of a link that have not left.
#[derive(Default)]
pub struct Backlog {
    bytes: AtomicUsize,
    drained: Notify,
}

impl Backlog {
    /// Whether there is room for more.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < HIGH_WATER
    }

    /// Waits until there is room for more.
    pub async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            if self.has_room() {
                return;
            }
            drained.await;
        }
    }

    fn left(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.drained.notify_waiters();
    }
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Here,
    /// on its way: the server may have it
    Left,
    /// the server has begun to answer, or never will
    Met,
}

/// Follows one message on its way.
pub struct Sent {
    stage: AtomicU8,
    changed: Notify,
    bytes: usize,
    backlog: Arc<Backlog>,
}

impl Sent {
    pub fn new(bytes: usize, backlog: &Arc<Backlog>) -> Arc<Self> {
        backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        let (stage, changed) = (AtomicU8::new(Stage::Here as u8), Notify::new());
        Arc::new(Sent { stage, changed, bytes, backlog: backlog.clone() })
    }

    fn has_reached(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Acquire) >= stage as u8
    }

    fn reach(&self, stage: Stage) {
        if self.stage.fetch_max(stage as u8, Ordering::AcqRel) == Stage::Here as u8 {
            self.backlog.left(self.bytes);
        }
        self.changed.notify_waiters();
    }

    /// The server has begun to answer it, or will not.
    pub fn met(&self) {
        self.reach(Stage::Met);
    }

    /// Whether the server may have it.
    pub fn has_left(&self) -> bool {
        self.has_reached(Stage::Left)
    }

    /// Waits until what is sent now can't overtake it.
    pub async fn arrived(&self) {
        self.until(Stage::Left).await;
        let _ = timeout(ARRIVED, self.until(Stage::Met)).await;
    }

    async fn until(&self, stage: Stage) {
        loop {
            let changed = self.changed.notified();
            if self.has_reached(stage) {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if !self.has_left() {
            self.backlog.left(self.bytes);
        }
    }
}

/// The body of a request.
#[derive(Default)]
pub struct Outgoing(Option<(Bytes, Arc<Sent>)>);

impl Outgoing {
    pub fn message(message: Bytes, sent: Arc<Sent>) -> Self {
        Outgoing(Some((message, sent)))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|(message, sent)| {
            sent.reach(Stage::Left);
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
