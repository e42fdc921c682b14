//! The queue of messages for a byte stream, and the task that writes them.
//!
//! A message is pushed without waiting; one task writes. So a reader never waits for a writer, and
//! all messages that are ready leave with one write.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use memchr::memchr;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::lines::one_line;

/// Messages from this size on are queued as they are; smaller ones are copied into one buffer.
const LARGE: usize = 16 << 10;
/// How much memory is kept between writes.
const HELD: usize = 256 << 10;
/// Above this many queued bytes, readers that fill the queue pause.
const HIGH_WATER: usize = 8 << 20;

/// A future that is ready when there is room in a queue.
pub(crate) type Room = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A queue of messages on their way to one peer.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// wakes those who wait for room, or until all is written
    drained: Notify,
}

#[derive(Default)]
struct Queue {
    ready: Ready,
    /// bytes pushed and not yet written, those in the writer's hands included
    pending: usize,
    /// no more messages are taken
    closed: bool,
    /// the writer has ended
    broken: bool,
    /// wakes the writer, while it waits for messages
    writer: Option<Waker>,
}

impl Queue {
    /// Swaps what is ready into `ready`; that is empty where the queue is closed.
    fn poll_ready(&mut self, context: &mut Context, ready: &mut Ready) -> Poll<()> {
        std::mem::swap(&mut self.ready, ready);
        if ready.is_empty() && !self.closed {
            self.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    fn has_room(&self) -> bool {
        self.pending < HIGH_WATER
    }
}

/// What is ready to be written, in order. The writer gives it back empty, so that a steady flow
/// of small messages needs no new memory.
#[derive(Default)]
struct Ready {
    /// small messages, and the line ends of all
    gathered: Vec<u8>,
    /// large messages, and where among the gathered bytes each belongs
    large: Vec<(usize, Bytes)>,
}

impl Ready {
    fn is_empty(&self) -> bool {
        self.gathered.is_empty()
    }

    fn push(&mut self, message: &Bytes) {
        if message.len() < LARGE {
            self.gathered.extend_from_slice(message);
        } else {
            self.large.push((self.gathered.len(), message.clone()));
        }
        self.gathered.push(b'\n');
    }

    fn clear(&mut self) {
        self.large.clear();
        self.gathered.clear();
        self.gathered.shrink_to(HELD);
    }

    /// The pieces to write.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        let large = self.large.iter().flat_map(move |(end, message)| {
            let before = &self.gathered[std::mem::replace(&mut at, *end)..*end];
            [before, message]
        });
        let rest = self.large.last().map_or(0, |(end, _)| *end);
        large.chain([&self.gathered[rest..]]).filter(|piece| !piece.is_empty())
    }
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic while the queue is held")
    }

    /// Queues a message as one line, and adds the line end. A message that came over HTTP may have
    /// line ends inside. `false`: it is dropped, since the queue is closed or its peer is gone.
    pub(crate) fn push(&self, message: &Bytes) -> bool {
        if memchr(b'\n', message).is_some() {
            return self.push_line(&one_line(message));
        }
        self.push_line(message)
    }

    /// Queues a message without line ends.
    fn push_line(&self, message: &Bytes) -> bool {
        let mut queue = self.queue();
        if queue.closed || queue.broken {
            return false;
        }
        queue.ready.push(message);
        queue.pending += message.len() + 1;
        queue.wake_writer();
        true
    }

    /// No more messages; the writer ends when what is queued has been written.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.wake_writer();
    }

    /// Whether messages still reach the peer.
    pub(crate) fn is_open(&self) -> bool {
        let queue = self.queue();
        !queue.closed && !queue.broken
    }

    /// Whether the queue is below its high-water mark.
    pub(crate) fn has_room(&self) -> bool {
        self.queue().has_room()
    }

    /// Waits until the queue is below its high-water mark.
    pub(crate) async fn room(&self) {
        self.until(Queue::has_room).await
    }

    /// Waits while four times the high-water mark is queued. Readers pause before that, so these
    /// are answers of our own to a client that reads none of them.
    pub(crate) async fn answers_room(&self) {
        self.until(|queue| queue.pending < 4 * HIGH_WATER).await
    }

    /// Waits until everything pushed so far has been written, or can't be.
    pub(crate) async fn flushed(&self) {
        self.until(|queue| queue.pending == 0).await
    }

    /// Waits until `enough` holds, or the peer is gone.
    async fn until(&self, enough: impl Fn(&Queue) -> bool) {
        let over = || {
            let queue = self.queue();
            queue.broken || enough(&queue)
        };
        while !over() {
            let drained = self.drained.notified();
            // Checked again, since it may have been drained before `notified` was called.
            if over() {
                return;
            }
            drained.await;
        }
    }

    /// Writes what is pushed until `close`, or until the peer is gone. When it ends or is aborted,
    /// all waits for this queue end.
    ///
    /// # Errors
    /// The stream can't be written to.
    pub(crate) async fn run(&self, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        let _broken = Broken(self);
        self.write_all(&mut to).await
    }

    async fn write_all(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut ready = Ready::default();
        loop {
            poll_fn(|context| self.queue().poll_ready(context, &mut ready)).await;
            if ready.is_empty() {
                return to.shutdown().await;
            }
            let mut last = 0;
            for piece in ready.pieces() {
                to.write_all(piece).await?;
                self.written(std::mem::replace(&mut last, piece.len()));
            }
            to.flush().await?;
            // tokio writes files in another thread: only after the flush the last piece is written.
            self.written(last);
            ready.clear();
        }
    }

    /// Notes that so many bytes were written.
    fn written(&self, bytes: usize) {
        let mut queue = self.queue();
        queue.pending -= bytes;
        drop(queue);
        self.drained.notify_waiters();
    }
}

/// Marks the queue as broken when its writer ends.
struct Broken<'a>(&'a Outbox);

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.broken = true;
        queue.ready = Ready::default();
        drop(queue);
        self.0.drained.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_keep_their_order_small_and_large() {
        let outbox = Outbox::default();
        let large = Bytes::from(vec![b'x'; LARGE]);
        for message in [&Bytes::from("a"), &large, &Bytes::from("b")] {
            assert!(outbox.push(message));
        }
        outbox.close();
        assert!(!outbox.push(&Bytes::from("late")));
        let mut out = Vec::new();
        outbox.run(&mut out).await.unwrap();
        assert_eq!(out, [b"a\n".as_slice(), &large, b"\nb\n"].concat());
        outbox.flushed().await;
    }
}
