//! Who waits for an answer.

use tokio::time::Instant;

use crate::downstream::Reply;
use crate::rpc::id::Id;
use crate::upstream::Headers;

/// The sender of a request that has no answer yet.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    /// the request's name in the session: its id, unless several clients share the session
    pub key: Id,
    /// the id as the client wrote it, raw JSON
    pub id: Box<str>,
    pub reply: Reply,
    /// what goes with the request over HTTP
    pub headers: Headers,
    /// when it arrived, from which its budget counts
    pub received: Instant,
    /// the server has refused its headers once
    pub headers_refused: bool,
}

impl Requester {
    /// The sender of a request that arrives now. `id`: as it was written, raw JSON.
    pub(crate) fn new(key: Id, id: &str, reply: Reply, headers: Headers) -> Self {
        let received = Instant::now();
        Requester { key, id: id.into(), reply, headers, received, headers_refused: false }
    }
}
