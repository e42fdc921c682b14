//! A server that has forgotten its session (404) gets a new one, within its present life (contract
//! §9): from up to starting, with what was refused as the first that waits.

use std::sync::atomic::Ordering;

use crate::upstream::life::{Forgotten, LifeKeeper};
use crate::upstream::outgoing::Outgoing;

use super::Supervisor;
use super::state::SupervisorState;

/// So many sessions in a row that were of no use are the last in a life.
const USELESS: u32 = 2;

impl LifeKeeper for Supervisor {
    fn is_starting(&self) -> bool {
        Supervisor::is_starting(self)
    }

    fn give_up(&self, cause: &str) {
        Supervisor::give_up(self, cause);
    }

    /// The relay is asked for the handshake of the new session. A server that refuses session after
    /// session is given up.
    fn renew<'a>(&self, refused: Option<Outgoing>, forget: Box<dyn FnOnce() -> Forgotten + 'a>) {
        let useless = {
            let mut state = self.state();
            let forgotten = forget();
            let refused = refused.into_iter();
            match (&mut *state, forgotten) {
                (SupervisorState::Down { .. } | SupervisorState::Stopped, _)
                | (_, Forgotten::Over) => return,
                (SupervisorState::Up { life, .. }, Forgotten::Before) => {
                    return refused.for_each(|message| life.sink.push(message));
                }
                (SupervisorState::Starting { queue, .. }, Forgotten::Before) => {
                    return refused.for_each(|message| queue.push(message));
                }
                (SupervisorState::Up { .. }, Forgotten::Now(waiting)) => {
                    let useful = self.has_answered.swap(false, Ordering::Relaxed);
                    state.begin_again(refused.chain(waiting), useful) > USELESS
                }
                (SupervisorState::Starting { queue, renewed, .. }, Forgotten::Now(waiting)) => {
                    refused.chain(waiting).for_each(|message| queue.push(message));
                    *renewed = true;
                    true
                }
            }
        };
        if useless {
            return self.give_up("the server forgets its sessions as soon as they are opened");
        }
        if let Some(observer) = self.observer.upgrade() {
            observer.renewed();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use tokio::sync::Notify;
    use tokio::time::Instant;

    use crate::config::{RemoteConfig, Transport};
    use crate::rpc::id::Id;
    use crate::rpc::outbox::Room;
    use crate::rpc::parsed_line::ParsedLine;
    use crate::upstream::http::RemoteServer;
    use crate::upstream::life::LifeEnd;
    use crate::upstream::message_sink::MessageSink;
    use crate::upstream::observer::{Loss, MessageOrigin, ServerEnd, ServerObserver};
    use crate::upstream::server::Server;
    use crate::upstream::supervisor::Delivery;
    use crate::upstream::supervisor::state::RunningLife;

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

    impl MessageSink for Notes {
        fn push(&self, message: Outgoing) {
            self.note(String::from_utf8_lossy(&message.bytes));
        }

        fn has_room(&self) -> bool {
            true
        }

        fn room(self: Arc<Self>) -> Room {
            Box::pin(async {})
        }
    }

    impl ServerObserver for Notes {
        fn message(&self, _: &ParsedLine, _: MessageOrigin) {}

        fn lost(&self, end: &ServerEnd) {
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
        let observer: Arc<dyn ServerObserver> = notes.clone();
        let remote = RemoteServer::new(&RemoteConfig {
            url: "http://127.0.0.1:1/mcp".parse().unwrap(),
            transport: Transport::Auto,
            headers: ::http::HeaderMap::new(),
            forward_headers: Vec::new(),
        });
        let supervisor =
            Supervisor::new(Server::Remote(remote), 1 << 20, Arc::downgrade(&observer));
        let stop = Arc::new(Notify::new());
        let life = RunningLife {
            sink: notes.clone(),
            stop: stop.clone(),
            started: Instant::now(),
            first: false,
            task: tokio::spawn(async {}),
        };
        *supervisor.state() = SupervisorState::Up { life, failures: 0 };
        (supervisor, notes, stop)
    }

    fn message(text: &'static str) -> Outgoing {
        Outgoing::parse(Bytes::from(text), None)
    }

    fn request(id: u32) -> Outgoing {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
        Outgoing::parse(text.into(), None)
    }

    #[tokio::test]
    async fn several_refusals_of_one_session_are_one_renewal_s9() {
        let (supervisor, notes, _) = up();
        let waiting = vec![message("c")];
        supervisor.renew(Some(message("a")), Box::new(|| Forgotten::Now(waiting)));
        supervisor.renew(Some(message("b")), Box::new(|| Forgotten::Before));
        assert_eq!(supervisor.send(message("d")).unwrap(), Delivery::Waiting);
        supervisor.send_first(message("initialize"));
        supervisor.ready();
        supervisor.renew(Some(message("e")), Box::new(|| Forgotten::Before));
        let expected = ["renewed", "initialize", "a", "c", "b", "d", "e"];
        assert_eq!(notes.take(), expected);
    }

    #[tokio::test]
    async fn a_server_that_forgets_session_after_session_is_given_up() {
        let (supervisor, notes, stop) = up();
        for _ in 0..USELESS {
            supervisor.renew(None, Box::new(|| Forgotten::Now(Vec::new())));
            supervisor.ready();
        }
        supervisor.note_answer();
        supervisor.renew(None, Box::new(|| Forgotten::Now(Vec::new())));
        supervisor.ready();
        assert_eq!(notes.take(), ["renewed"; USELESS as usize + 1]);
        for _ in 0..=USELESS {
            supervisor.renew(None, Box::new(|| Forgotten::Now(Vec::new())));
            supervisor.ready();
        }
        stop.notified().await;
        assert_eq!(notes.take().len(), USELESS as usize);
    }

    #[tokio::test]
    async fn what_waited_for_a_new_session_has_not_reached_the_server_s7() {
        let (supervisor, notes, _) = up();
        supervisor.renew(Some(request(7)), Box::new(|| Forgotten::Now(Vec::new())));
        supervisor.ended(LifeEnd { cause: "gone".into(), nothing_sent: false });
        assert_eq!(
            notes.take(),
            ["renewed", "lost 7, reached: false", "lost, during start: false"]
        );
        supervisor.renew(Some(request(8)), Box::new(|| Forgotten::Over));
        assert!(notes.take().is_empty());
    }
}
