//! `unhurry serve`, and clients of it.

use serde_json::json;

use super::{HttpPeer, Peer, Setup, eventually, process};

impl Peer {
    /// The sidecar with this config in front of a child with these flags.
    pub fn serve(toml: &str, flags: &[&str]) -> Self {
        Setup::proxied().served().config(toml).flags(flags).spawn()
    }

    /// A client with an open session and no identity.
    pub async fn legacy(&self) -> HttpPeer {
        opened(self.http().await).await
    }

    /// A client with an open session and this token for an identity.
    pub async fn legacy_as(&self, token: &str) -> HttpPeer {
        opened(self.known_as(token).await).await
    }

    /// A client of 2026-07-28 without an identity.
    pub async fn modern(&self) -> HttpPeer {
        modern(self.http().await)
    }

    /// A client of 2026-07-28 with this token for an identity.
    pub async fn modern_as(&self, token: &str) -> HttpPeer {
        modern(self.known_as(token).await)
    }

    /// A client that has said nothing yet but this token.
    pub async fn known_as(&self, token: &str) -> HttpPeer {
        self.http().await.with_header("authorization", &format!("Bearer {token}"))
    }

    /// The children that were started so far.
    pub fn started(&self) -> Vec<u32> {
        let journal = self.journal().into_iter();
        journal.filter(|entry| entry.event == "start").map(|entry| entry.pid).collect()
    }

    /// The children that run.
    pub fn running(&self) -> Vec<u32> {
        self.started().into_iter().filter(|pid| process::alive(*pid)).collect()
    }

    /// Waits until so many children run.
    pub async fn until_running(&self, count: usize) {
        let seen = eventually(|| async { (self.running().len() == count).then_some(()) }).await;
        if seen.is_none() {
            self.fail(&format!("{} children run, not {count}", self.running().len()));
        }
    }

    /// Waits until so many calls of `tool` have ended in the server, in all.
    pub async fn ended(&self, tool: &str, calls: usize) {
        let is_end =
            |entry: &&super::Entry| entry.event == "call_ended" && entry.json["tool"] == tool;
        let seen = eventually(|| async {
            (self.journal().iter().filter(is_end).count() >= calls).then_some(())
        });
        if seen.await.is_none() {
            self.fail(&format!("{calls} calls of {tool} do not end"));
        }
    }
}

async fn opened(client: HttpPeer) -> HttpPeer {
    client.initialize().await;
    client
}

fn modern(client: HttpPeer) -> HttpPeer {
    client.become_modern("test-client", json!({}));
    client
}
