//! A modern HTTP client has no channel: all that it gets belongs to one of its requests.

use bytes::Bytes;

use crate::downstream::channel::{Channel, ParamHeaders};

/// The channel of modern HTTP clients, on which nothing reaches anybody.
pub(crate) struct NoChannel;

impl Channel for NoChannel {
    fn notify(&self, _message: &Bytes) -> bool {
        false
    }

    fn ask(&self, _message: &Bytes) -> bool {
        false
    }

    fn shows_details(&self) -> bool {
        false
    }

    fn param_headers(&self) -> ParamHeaders {
        ParamHeaders::MadeByClient
    }
}
