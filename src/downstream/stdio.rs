//! A client over stdio: the two streams, and what leaves by them.
//!
//! Our own stdin and stdout are streams on the reactor. tokio's own `stdin()` and `stdout()` go
//! through a blocking thread, which costs a small call three times the rest of its path. Pipes and
//! sockets (Node hands its children sockets) are registered as what they are; files and terminals
//! take the slow way.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::rpc::outbox::{Outbox, Room};

use super::channel::{Channel, ParamHeaders};
use super::reply::{Answer, Responder};

/// A readable stream.
pub(crate) type Source = Box<dyn AsyncRead + Send + Unpin>;
/// A writable stream.
pub(crate) type Sink = Box<dyn AsyncWrite + Send + Unpin>;

/// The client's messages. Must be called within a tokio runtime.
pub(crate) fn stdin() -> Source {
    #[cfg(unix)]
    if let Some(source) = unix::source() {
        return source;
    }
    Box::new(tokio::io::stdin())
}

/// The way to the client. Must be called within a tokio runtime.
pub(crate) fn stdout() -> Sink {
    #[cfg(unix)]
    if let Some(sink) = unix::sink() {
        return sink;
    }
    Box::new(tokio::io::stdout())
}

/// The client at the other end of our stdout. All that it gets is a line there.
pub(crate) struct StdioClient {
    outbox: Arc<Outbox>,
}

impl StdioClient {
    /// A client whose lines leave through `outbox`.
    pub(crate) fn new(outbox: Arc<Outbox>) -> Arc<Self> {
        Arc::new(StdioClient { outbox })
    }
}

impl Channel for StdioClient {
    fn notify(&self, message: &Bytes) -> bool {
        self.outbox.push(message)
    }

    fn ask(&self, message: &Bytes) -> bool {
        self.outbox.push(message)
    }

    fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    fn room(&self) -> Option<Room> {
        if self.outbox.has_room() {
            return None;
        }
        let outbox = self.outbox.clone();
        Some(Box::pin(async move { outbox.room().await }))
    }

    fn answers_room(&self) -> Room {
        let outbox = self.outbox.clone();
        Box::pin(async move { outbox.answers_room().await })
    }

    fn shows_details(&self) -> bool {
        true
    }

    fn param_headers(&self) -> ParamHeaders {
        ParamHeaders::MadeByProxy
    }
}

impl Responder for StdioClient {
    fn send(&self, answer: &Answer) -> bool {
        self.outbox.push(answer.line)
    }

    fn push(&self, message: &Bytes) -> bool {
        self.outbox.push(message)
    }

    fn is_open(&self) -> bool {
        self.outbox.is_open()
    }
}

impl fmt::Debug for StdioClient {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("StdioClient")
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::FileTypeExt;

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Sink, Source};
    use crate::pipes::widen;

    pub(crate) fn source() -> Option<Source> {
        let fd = io::stdin().as_fd().try_clone_to_owned().ok()?;
        match kind(&fd)? {
            Kind::Pipe => {
                widen(&fd);
                Some(Box::new(pipe::Receiver::from_owned_fd(fd).ok()?))
            }
            Kind::Socket => Some(Box::new(socket(fd)?)),
        }
    }

    pub(crate) fn sink() -> Option<Sink> {
        let fd = io::stdout().as_fd().try_clone_to_owned().ok()?;
        match kind(&fd)? {
            Kind::Pipe => {
                widen(&fd);
                Some(Box::new(pipe::Sender::from_owned_fd(fd).ok()?))
            }
            Kind::Socket => Some(Box::new(socket(fd)?)),
        }
    }

    enum Kind {
        Pipe,
        Socket,
    }

    fn kind(fd: &OwnedFd) -> Option<Kind> {
        let file_type = File::from(fd.try_clone().ok()?).metadata().ok()?.file_type();
        if file_type.is_fifo() {
            Some(Kind::Pipe)
        } else if file_type.is_socket() {
            Some(Kind::Socket)
        } else {
            None
        }
    }

    fn socket(fd: OwnedFd) -> Option<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(fd);
        stream.set_nonblocking(true).ok()?;
        UnixStream::from_std(stream).ok()
    }
}
