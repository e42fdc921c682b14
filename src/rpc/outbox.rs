//! The way out of a byte stream: a queue of messages and the task that writes it.
//!
//! Whoever has a message pushes it and goes on; one task writes, so that a reader never waits for
//! a writer, and everything that is ready leaves with one write (PERFORMANCE: a small call is
//! wake-ups, not JSON).

use std::io;
use std::sync::{Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// Messages from this size on are queued as they are; smaller ones are gathered into one write.
const LARGE: usize = 16 << 10;
/// Above this many queued bytes, readers that fill the queue pause.
const HIGH_WATER: usize = 8 << 20;

/// A queue of messages on their way to one peer.
#[derive(Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    /// wakes the writer
    filled: Notify,
    /// wakes who waits for room, or for the end
    drained: Notify,
}

#[derive(Default)]
struct Queue {
    large: Vec<Bytes>,
    gathered: BytesMut,
    /// bytes pushed and not yet written, those in the writer's hands included
    pending: usize,
    closed: bool,
    broken: bool,
}

impl Queue {
    fn take(&mut self) -> Vec<Bytes> {
        self.seal();
        std::mem::take(&mut self.large)
    }

    fn seal(&mut self) {
        if !self.gathered.is_empty() {
            self.large.push(self.gathered.split().freeze());
        }
    }
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic while the queue is held")
    }

    /// Queues one message; the line end is added. After `close` or a broken pipe it is dropped,
    /// and `false` is returned.
    pub fn push(&self, message: &Bytes) -> bool {
        let mut queue = self.queue();
        if queue.closed || queue.broken {
            return false;
        }
        if message.len() < LARGE {
            queue.gathered.extend_from_slice(message);
        } else {
            queue.seal();
            queue.large.push(message.clone());
        }
        queue.gathered.extend_from_slice(b"\n");
        queue.pending += message.len() + 1;
        drop(queue);
        self.filled.notify_one();
        true
    }

    /// No more messages; the writer ends when what is queued has been written.
    pub fn close(&self) {
        self.queue().closed = true;
        self.filled.notify_one();
    }

    /// Whether messages still reach the peer.
    pub fn is_open(&self) -> bool {
        let queue = self.queue();
        !queue.closed && !queue.broken
    }

    /// Waits until the queue is below its high-water mark.
    pub async fn room(&self) {
        self.until(|queue| queue.pending < HIGH_WATER).await
    }

    /// Waits until everything pushed so far has been written, or can't be.
    pub async fn flushed(&self) {
        self.until(|queue| queue.pending == 0).await
    }

    async fn until(&self, enough: impl Fn(&Queue) -> bool) {
        loop {
            let drained = self.drained.notified();
            {
                let queue = self.queue();
                if queue.broken || enough(&queue) {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Writes what is pushed until `close`, or until the peer is gone.
    pub async fn run(&self, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        let result = self.write_all(&mut to).await;
        let mut queue = self.queue();
        queue.broken = true;
        queue.large.clear();
        queue.gathered.clear();
        drop(queue);
        self.drained.notify_waiters();
        result
    }

    async fn write_all(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        loop {
            let (chunks, closed) = {
                let mut queue = self.queue();
                (queue.take(), queue.closed)
            };
            if chunks.is_empty() {
                if closed {
                    return to.shutdown().await;
                }
                self.filled.notified().await;
                continue;
            }
            for chunk in chunks {
                to.write_all(&chunk).await?;
                self.written(chunk.len());
            }
            to.flush().await?;
        }
    }

    fn written(&self, bytes: usize) {
        let mut queue = self.queue();
        queue.pending -= bytes;
        drop(queue);
        self.drained.notify_waiters();
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
