//! What became of a POST, once its message was handed to a session or refused.

use http::Response;

use crate::downstream::http::{Body, ResponseReader};

use super::handshake::Handshake;

/// How a POST is answered.
pub(crate) enum PostOutcome {
    /// with this, without the server
    Answered(Box<Response<Body>>),
    /// with what is read here
    Waiting(ResponseReader),
    /// with the answer to `initialize`, read here, which makes the session one
    Beginning(ResponseReader, Handshake),
}

impl From<Response<Body>> for PostOutcome {
    fn from(response: Response<Body>) -> Self {
        PostOutcome::Answered(Box::new(response))
    }
}
