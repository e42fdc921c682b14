//! Who waits for an answer.

use tokio::time::Instant;

use crate::downstream::Reply;
use crate::rpc::id::Id;
use crate::upstream::Headers;

/// The sender of a request that has no answer yet.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    /// by what the session knows the request: its id, or a number of ours where several clients
    /// share the session, whose ids may be equal
    pub key: Id,
    /// the id as the client wrote it, raw JSON
    pub id: Box<str>,
    pub reply: Reply,
    /// the headers that go to the server with it over HTTP
    pub headers: Headers,
    /// when the request arrived: its budget counts from then
    pub received: Instant,
    /// the server has refused its `Mcp-Param-*` headers once
    pub headers_refused: bool,
}

impl Requester {
    /// The sender of a request that arrives now. `id`: as it was written, raw JSON.
    pub(crate) fn new(key: Id, id: &str, reply: Reply, headers: Headers) -> Self {
        let received = Instant::now();
        Requester { key, id: id.into(), reply, headers, received, headers_refused: false }
    }
}
