//! The body of a request of ours: one message, and whether it has left.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{Notify, watch};
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
    /// the server has begun to answer
    Met,
}

/// Follows one message on its way.
pub struct Sent {
    stage: watch::Sender<Stage>,
    bytes: usize,
    backlog: Arc<Backlog>,
}

impl Sent {
    pub fn new(bytes: usize, backlog: &Arc<Backlog>) -> Arc<Self> {
        backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        let (stage, _) = watch::channel(Stage::Here);
        Arc::new(Sent { stage, bytes, backlog: backlog.clone() })
    }

    fn reach(&self, stage: Stage) {
        let was_here = *self.stage.borrow() == Stage::Here;
        self.stage.send_replace(stage);
        if was_here {
            self.backlog.left(self.bytes);
        }
    }

    /// The server has begun to answer it.
    pub fn met(&self) {
        self.reach(Stage::Met);
    }

    /// Whether the server may have it.
    pub fn has_left(&self) -> bool {
        *self.stage.borrow() > Stage::Here
    }

    /// Waits until what is sent now can't overtake it.
    pub async fn arrived(self: Arc<Self>) {
        let mut stage = self.stage.subscribe();
        // A closed channel means that it is over.
        drop(self);
        if stage.wait_for(|stage| *stage > Stage::Here).await.is_ok() {
            let _ = timeout(ARRIVED, stage.wait_for(|stage| *stage == Stage::Met)).await;
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if *self.stage.borrow() == Stage::Here {
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
