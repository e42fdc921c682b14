//! A server that has forgotten its session (404) gets a new one, within the life of its link
//! (contract §9): from up to starting, with what was refused as the first that waits.

use std::sync::atomic::Ordering;

use crate::rpc::id::Id;

use crate::rpc::message::Envelope;

use super::supervisor::{Queue, State, Supervisor, Unsent};

/// So many sessions in a row that were of no use are the last in a life.
const FRUITLESS: u32 = 2;

/// What a link had to forget when the server did not know its session.
pub enum Forgotten {
    /// the session; with what waited behind the refused message
    Now(Vec<Unsent>),
    /// nothing: another one has been opened since
    Before,
    /// nothing: the life is over
    Over,
}

impl Supervisor {
    /// Opens a new session, for whose handshake the relay is asked; what was `refused` waits for
    /// it. Several refusals of one session are one renewal: `forget` says whether this is the
    /// first. A server that refuses session after session is given up.
    pub fn renew(&self, refused: Option<Unsent>, forget: impl FnOnce() -> Forgotten) {
        let fruitless = {
            let mut state = self.state();
            let forgotten = forget();
            let refused = refused.into_iter();
            match (&mut *state, forgotten) {
                (State::Down { .. } | State::Stopped, _) | (_, Forgotten::Over) => return,
                (State::Up { link, .. }, Forgotten::Before) => {
                    refused.for_each(|(message, headers)| link.way.push(&message, &headers));
                    return;
                }
                (State::Starting { queue, .. }, Forgotten::Before) => {
                    refused.for_each(|(message, headers)| queue.push(&message, &headers));
                    return;
                }
                (State::Up { .. }, Forgotten::Now(waiting)) => {
                    let healthy = self.healthy.swap(false, Ordering::Relaxed);
                    state.begin_again(refused.chain(waiting), healthy) > FRUITLESS
                }
                (State::Starting { queue, renewed, .. }, Forgotten::Now(waiting)) => {
                    let unsent = refused.chain(waiting);
                    unsent.for_each(|(message, headers)| queue.push(&message, &headers));
                    *renewed = true;
                    true
                }
            }
        };
        if fruitless {
            return self.give_up("the server forgets its sessions as soon as they are opened");
        }
        if let Some(events) = self.events.upgrade() {
            events.renewed();
        }
    }
}

impl State {
    /// From up to starting; how many sessions in a row were of no use.
    fn begin_again(&mut self, unsent: impl Iterator<Item = Unsent>, healthy: bool) -> u32 {
        match std::mem::replace(self, State::Stopped) {
            State::Up { link, failures } => {
                let mut queue = Queue::default();
                unsent.for_each(|(message, headers)| queue.push(&message, &headers));
                let failures = if healthy { 0 } else { failures + 1 };
                *self = State::Starting { link, queue, failures, renewed: true };
                failures
            }
            other => {
                *self = other;
                0
            }
        }
    }

    /// At the end of a life: the requests that waited for a new session, while others of it may
    /// have reached the server.
    pub(super) fn unsent(&self) -> Vec<Id> {
        let State::Starting { queue, renewed: true, .. } = self else { return Vec::new() };
        queue.messages.iter().filter_map(|(message, _)| request_id(message)).collect()
    }
}

fn request_id(message: &[u8]) -> Option<Id> {
    let text = String::from_utf8_lossy(message);
    Envelope::parse(&text).ok()?.request_id()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use tokio::sync::Notify;
    use tokio::time::Instant;

    use crate::config::{RemoteConfig, Transport};
    use crate::rpc::parsed_line::ParsedLine;
    use crate::upstream::server::Server;
    use crate::upstream::supervisor::{Delivery, Link};
    use crate::upstream::{End, Events, From, Headers, Loss, Room, Way, http};

    use super::*;

    /// Notes what is sent and told.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Notes {
        fn note(&self, text: impl Into<String>) {
            self.0.lock().unwrap().push(text.into());
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl Way for Notes {
        fn push(&self, message: &Bytes, _: &Headers) {
            self.note(String::from_utf8_lossy(message));
        }

        fn has_room(&self) -> bool {
            true
        }

        fn room(self: Arc<Self>) -> Room {
            Box::pin(async {})
        }
    }

    impl Events for Notes {
        fn message(&self, _: &ParsedLine, _: From) {}

        fn lost(&self, end: &End) {
            self.note(format!("lost, during start: {}", end.during_start));
        }

        fn request_lost(&self, id: &Id, loss: Loss) {
            self.note(format!("lost {}, reached: {}", id.to_json(), loss.reached));
        }

        fn renewed(&self) {
            self.note("renewed");
        }

        fn room(&self) -> Option<Room> {
            None
        }
    }

    /// A server that is up, with notes of all that happens and what ends its life.
    fn up() -> (Arc<Supervisor>, Arc<Notes>, Arc<Notify>) {
        let notes = Arc::new(Notes::default());
        let events: Arc<dyn Events> = notes.clone();
        let remote = http::Remote::new(&RemoteConfig {
            url: "http://127.0.0.1:1/mcp".parse().unwrap(),
            transport: Transport::Auto,
            headers: ::http::HeaderMap::new(),
            forward_headers: Vec::new(),
        });
        let supervisor = Supervisor::new(Server::Remote(remote), 1 << 20, Arc::downgrade(&events));
        let stop = Arc::new(Notify::new());
        let link = Link {
            way: notes.clone(),
            stop: stop.clone(),
            started: Instant::now(),
            first: false,
            task: tokio::spawn(async {}),
        };
        *supervisor.state() = State::Up { link, failures: 0 };
        (supervisor, notes, stop)
    }

    fn unsent(text: &'static str) -> Option<Unsent> {
        Some((Bytes::from(text), None))
    }

    fn request(id: u32) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#).into()
    }

    #[tokio::test]
    async fn several_refusals_of_one_session_are_one_renewal_s9() {
        let (supervisor, notes, _) = up();
        let waiting = vec![(Bytes::from("c"), None)];
        supervisor.renew(unsent("a"), || Forgotten::Now(waiting));
        supervisor.renew(unsent("b"), || Forgotten::Before);
        assert_eq!(supervisor.send(&Bytes::from("d"), &None).unwrap(), Delivery::Waiting);
        supervisor.send_first(&Bytes::from("initialize"), &None);
        supervisor.ready();
        supervisor.renew(unsent("e"), || Forgotten::Before);
        let expected = ["renewed", "initialize", "a", "c", "b", "d", "e"];
        assert_eq!(notes.take(), expected);
    }

    #[tokio::test]
    async fn a_server_that_forgets_session_after_session_is_given_up() {
        let (supervisor, notes, stop) = up();
        for _ in 0..FRUITLESS {
            supervisor.renew(None, || Forgotten::Now(Vec::new()));
            supervisor.ready();
        }
        supervisor.healthy();
        supervisor.renew(None, || Forgotten::Now(Vec::new()));
        supervisor.ready();
        assert_eq!(notes.take(), ["renewed"; FRUITLESS as usize + 1]);
        for _ in 0..=FRUITLESS {
            supervisor.renew(None, || Forgotten::Now(Vec::new()));
            supervisor.ready();
        }
        stop.notified().await;
        assert_eq!(notes.take().len(), FRUITLESS as usize);
    }

    #[tokio::test]
    async fn what_waited_for_a_new_session_has_not_reached_the_server_s7() {
        let (supervisor, notes, _) = up();
        supervisor.renew(Some((request(7), None)), || Forgotten::Now(Vec::new()));
        supervisor.ended("gone".into(), false);
        assert_eq!(
            notes.take(),
            ["renewed", "lost 7, reached: false", "lost, during start: false"]
        );
        supervisor.renew(Some((request(8), None)), || Forgotten::Over);
        assert!(notes.take().is_empty());
    }
}
