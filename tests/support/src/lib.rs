//! What the tests stand on: an MCP client, `Peer`, in front of the fake server, with or without the
//! proxy between them.
//!
//! ```no_run
//! let peer = Peer::proxied(&["--answer-within", "1s"], &[]);   // or Peer::direct(&[])
//! peer.initialize().await;
//! let handle = peer.call("sleep", json!({"ms": 3000, "text": "done"})).await;
//! assert_eq!(peer.finish(handle).await.text(), "done");
//! ```
//!
//! Either side may be HTTP: `Setup::proxied().served().upstream(Transport::Http)`. What is peculiar to
//! HTTP is in `http`.
#![forbid(unsafe_code)]

mod answer;
mod background;
pub mod cli;
pub mod corpus;
pub mod http;
mod jobs;
mod journal;
pub mod json;
mod line;
mod peer;
pub mod process;
mod programs;
mod served;
mod session;
mod setup;
mod transcript;

use std::future::Future;
use std::time::Duration;

pub use answer::{Action, Answer, call_params};
pub use background::until;
pub use http::{FakeHttp, HttpPeer, Transport};
pub use jobs::assert_text_says_all;
pub use journal::Entry;
pub use line::Line;
pub use peer::Peer;
pub use setup::Setup;

/// The longest that anything is waited for.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Looks again and again until `look` finds something, for what nothing tells about: files and
/// processes. `None` at the deadline.
pub async fn eventually<T, F: Future<Output = Option<T>>>(look: impl Fn() -> F) -> Option<T> {
    let search = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, search).await.ok()
}
