//! A server at a URL: Streamable HTTP of both eras (protocol §6.2, §6.3), and HTTP+SSE (§6.4).
//!
//! [`RemoteServer`] is the server, made once for the process, with its connections (`connect.rs`,
//! `pool.rs`). Each life of it that a supervisor begins is a [`life::HttpLife`]: it orders what
//! leaves, and knows the session (`session.rs`). Each message is an [`exchange::PostExchange`], one
//! POST with its answer, whose stream may be cut and resumed (`resumable_stream.rs`). What the server
//! says by itself comes on the stream of `standalone_stream.rs`. A server of the first revision has
//! one stream for all (`http_sse.rs`); which transport it speaks is found out from its answer to the
//! first message (protocol §1.3).

mod answer;
mod connect;
mod context;
mod exchange;
mod headers;
mod http_sse;
mod incoming;
mod json_body;
mod life;
mod loss;
mod pool;
mod queued_message;
mod remote;
mod request_body;
mod resumable_stream;
mod root_cause;
mod session;
mod standalone_stream;
mod url_reference;

pub(super) use life::begin;
pub(crate) use remote::{RemoteServer, Unreachable};
