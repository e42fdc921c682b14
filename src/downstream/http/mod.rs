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

pub use body::Body;
pub use client_streams::ClientStreams;
pub use guard::{Refusal, check_names, check_token};
pub use listener::{Endpoint, listen};
pub use no_channel::NoChannel;
pub use reader::ResponseReader;
pub use responder::{HttpResponder, RequestInfo, ResponseObserver};
pub use response_event::{QueuedAnswer, ResponseEvent};
pub use sse_body::SseBody;
