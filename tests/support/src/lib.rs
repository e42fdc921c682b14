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
mod tools;
mod transcript;

use std::future::Future;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

pub use answer::{Action, Answer, call_message, call_params};
pub use background::until;
pub use http::{FakeHttp, HttpPeer, Transport};
pub use jobs::assert_text_says_all;
pub use journal::Entry;
pub use line::Line;
pub use peer::Peer;
pub use setup::Setup;
pub use tools::tools;

/// The revision without sessions; a client of it is called modern, an older one legacy.
pub const MODERN: &str = "2026-07-28";
/// The notification that the server's tools are others now.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The key in `_meta` under which a message names the subscription that it belongs to.
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Options under which a budget ends soon.
pub const SOON: [&str; 2] = ["--answer-within", "300ms"];

/// The longest that anything is waited for.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Panics unless all these words are in the text.
pub fn assert_says(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

/// The turn of a test that keeps the machine busy, for as long as it holds this: no two of them run at
/// once, as each could make the others miss their deadlines.
pub async fn turn() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::const_new(());
    MACHINE.lock().await
}

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
