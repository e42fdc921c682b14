//! HTTP: the fake server over it, and clients of it.
//!
//! ```no_run
//! let server = FakeHttp::start(&["--event-ids"]);
//! let client = HttpPeer::at(&server.url());
//! client.initialize().await;
//! let mut stream = client.start("progress", json!({"steps": 2})).await;
//! assert_eq!(stream.answer().await.text(), "2 steps");
//! ```
//!
//! Where a test speaks of messages only, `Setup::served` gives the ordinary `Peer` over HTTP.

mod calls;
mod canned;
mod connection;
mod events;
mod fake_http;
mod peer;
mod pump;
mod raw;
mod response;
mod tls_front;
mod web_proxy;

pub use canned::{Canned, CannedRequest};
pub use events::Event;
pub use fake_http::{FakeHttp, Transport, header_tools};
pub use peer::HttpPeer;
pub use pump::url_in;
pub(super) use pump::{Listening, pump};
pub use raw::Raw;
pub use response::Response;
pub use tls_front::TlsFront;
pub use web_proxy::WebProxy;
