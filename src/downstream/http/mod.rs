//! Streamable HTTP towards clients: the parts of a response, and who may ask.

mod body;
mod client_streams;
mod guard;
mod listener;
mod no_channel;
mod parts;
mod reader;
mod replay_buffer;
mod responder;
mod response_event;
mod sse_body;

pub(crate) use body::Body;
pub(crate) use client_streams::ClientStreams;
pub(crate) use guard::{Refusal, check_form, check_names, check_token};
pub(crate) use listener::{Endpoint, listen};
pub(crate) use no_channel::NoChannel;
pub(crate) use reader::ResponseReader;
pub(crate) use responder::{HttpResponder, RequestInfo, ResponseObserver};
pub(crate) use response_event::{QueuedAnswer, ResponseEvent};
pub(crate) use sse_body::SseBody;
