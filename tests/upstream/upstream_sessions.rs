//! The sessions of a server over HTTP: whose they are, and what becomes of a call whose session the
//! server has forgotten (contract §9).

use std::collections::BTreeSet;

use serde_json::json;
use support::{Entry, Peer, SOON, Setup, eventually};

const SESSION: &str = "mcp-session-id";

/// The sessions that these entries name; of an `initialize`, none.
fn sessions(entries: &[Entry]) -> Vec<Option<String>> {
    entries.iter().map(|entry| entry.header(SESSION).map(str::to_owned)).collect()
}

fn distinct(entries: &[Entry]) -> usize {
    sessions(entries).into_iter().flatten().collect::<BTreeSet<_>>().len()
}

// A forgotten session.

#[tokio::test]
async fn c42_a_call_refused_with_its_session_is_sent_once_in_a_new_one() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.upstream().forget_sessions().await;
    peer.assert_works().await;
    assert_eq!(sessions(&peer.received("initialize")), [None, None], "it carries no stale id");
    assert_eq!(peer.told("notifications/initialized"), 2);
    let calls = peer.calls_of("echo");
    assert_eq!((calls.len(), distinct(&calls)), (2, 2), "refused in one, taken in the other");
    let (old, new) = (&peer.received("initialize")[0], &peer.received("initialize")[1]);
    assert_eq!(old.raw_params(), new.raw_params(), "the client's own handshake");
    assert_eq!(peer.call("echo", json!({})).await.raw_id(), "4");
    assert_eq!(distinct(&peer.calls_of("echo")), 2, "the new session stays");
}

#[tokio::test]
async fn c42_several_calls_at_once_are_one_renewal() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.upstream().forget_sessions().await;
    let mut ids = vec![];
    for number in 0..8 {
        ids.push(peer.start("echo", json!({"text": format!("call {number}")})).await);
    }
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(peer.answer(id).await.text(), format!("call {number}"));
        assert_eq!(peer.answers(id).len(), 1);
    }
    assert_eq!(peer.told("initialize"), 2);
    let calls = peer.calls_of("echo");
    let last = calls.last().and_then(|call| call.header(SESSION)).expect("a session").to_owned();
    let taken = calls.iter().filter(|call| call.header(SESSION) == Some(&last));
    assert_eq!(taken.count(), 8, "each is taken once");
}

#[tokio::test]
async fn c42_a_call_that_two_sessions_in_a_row_refuse_fails() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.upstream().fault(json!({"on": "tools/call", "status": 404, "times": 2})).await;
    let answer = peer.call("echo", json!({"text": "hi"})).await;
    assert!(answer.is_error(), "{}", answer.raw);
    assert!(answer.text().contains("404"), "{}", answer.raw);
    assert!(!answer.text().contains("outcome unknown"), "nothing has run: {}", answer.raw);
    assert_eq!(peer.calls_of("echo").len(), 2);
    peer.assert_works().await;
}

#[tokio::test]
async fn c42_a_call_that_waits_for_a_new_session_becomes_the_same_job() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.upstream().forget_sessions().await;
    let handle = peer.park("go").await;
    peer.create("go");
    let job = handle.job_id().to_owned();
    let end = peer.finish(handle).await;
    assert_eq!((end.text(), end.job_id()), ("go", &*job));
    assert_eq!(peer.calls_of("wait_file").len(), 2, "refused once, taken once");
}

#[tokio::test]
async fn c42_a_job_runs_on_while_its_session_is_renewed() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    let handle = peer.park("go").await;
    peer.upstream().forget_sessions().await;
    peer.assert_works().await;
    assert_eq!(peer.look(handle.job_id()).await.status(), "working");
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
}

#[tokio::test]
async fn c42_the_new_session_has_the_log_level_and_the_subscriptions_of_the_old() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.ask("logging/setLevel", json!({"level": "error"})).await;
    peer.ask("resources/subscribe", json!({"uri": "x:1"})).await;
    peer.upstream().forget_sessions().await;
    peer.call("echo", json!({})).await;
    for method in ["logging/setLevel", "resources/subscribe"] {
        let again = || async { (peer.told(method) == 2).then_some(()) };
        eventually(again).await.expect("it is told again");
        assert_eq!(distinct(&peer.received(method)), 2);
    }
}

#[tokio::test]
async fn c42_a_server_that_forgets_every_session_at_once_is_given_up() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.upstream().fault(json!({"on": "tools/call", "status": 404})).await;
    for _ in 0..4 {
        let answer = peer.call("echo", json!({})).await;
        assert!(answer.is_error(), "{}", answer.raw);
    }
    assert!(peer.calls_of("echo").len() <= 8, "at most twice each");
}

#[tokio::test]
async fn s9_a_404_without_a_session_is_no_reason_for_a_new_one() {
    let peer = Peer::opened(Setup::remote(&["--no-sessions"])).await;
    peer.upstream().fault(json!({"on": "tools/call", "status": 404, "body": "nothing here"})).await;
    let answer = peer.call("echo", json!({})).await;
    assert!(answer.is_error() && answer.text().contains("nothing here"), "{}", answer.raw);
    assert_eq!((peer.told("initialize"), peer.calls_of("echo").len()), (1, 1));
}

#[tokio::test]
async fn s9_an_unknown_method_is_no_forgotten_session() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    let body = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32601, "message": "no"}});
    let fault = json!({"on": "x/later", "status": 404, "body": body.to_string()});
    peer.upstream().fault(fault).await;
    assert_eq!(peer.ask("x/later", json!({})).await.error_code(), -32601);
    assert_eq!(peer.told("initialize"), 1);
}

// Whose sessions.

#[tokio::test]
async fn c10_two_clients_have_two_sessions_and_their_ids_never_meet() {
    let peer = Setup::remote(&[]).served().spawn();
    let (a, b) = (peer.http().await, peer.http().await);
    tokio::join!(a.initialize(), b.initialize());
    let slow = json!({"ms": 60, "text": "a"});
    let (first, second) =
        tokio::join!(a.call("sleep", slow), b.call("sleep", json!({"ms": 30, "text": "b"})));
    assert_eq!((first.text(), second.text()), ("a", "b"));
    assert_eq!(first.raw_id(), second.raw_id());
    assert_eq!(distinct(&peer.calls_of("sleep")), 2);
    assert_eq!(peer.told("initialize"), 2);
}

#[tokio::test]
async fn s9_the_end_of_a_clients_session_is_the_end_of_its_servers_one() {
    let peer = Setup::remote(&[]).served().spawn();
    let client = peer.http().await;
    client.initialize().await;
    client.call("echo", json!({})).await;
    assert_eq!(client.delete().await.status, 204);
    let is_delete = |entry: &Entry| entry.http_method() == Some("DELETE");
    let deleted = peer.journal_wait(is_delete).await;
    assert_eq!(deleted.header(SESSION), peer.calls_of("echo")[0].header(SESSION));
}

#[tokio::test]
async fn s9_a_session_lives_while_one_of_its_jobs_runs() {
    let setup = Setup::remote(&[]).served().options(&SOON);
    let peer = setup.spawn();
    let client = peer.http().await.with_header("authorization", "Bearer one");
    client.initialize().await;
    let handle = client.call("wait_file", peer.gate("go")).await;
    client.delete().await;
    let other = peer.http().await.with_header("authorization", "Bearer one");
    other.initialize().await;
    let is_delete = |entry: &Entry| entry.http_method() == Some("DELETE");
    assert!(!peer.journal().iter().any(is_delete), "its job runs");
    peer.create("go");
    let args = handle.next_action().expect("a handle says what to call").args;
    let end = other.call("job_get", args).await;
    assert_eq!(end.text(), "go is open");
    peer.journal_wait(is_delete).await;
}

#[tokio::test]
async fn c76_modern_clients_of_one_principal_share_the_server_without_a_handshake() {
    let peer = Setup::remote(&["--modern", "--strict"]).served().spawn();
    let (a, b) = (peer.http().await, peer.http().await);
    [&a, &b].iter().for_each(|client| client.become_modern("test-client", json!({})));
    let (first, second) = tokio::join!(
        a.call("sleep", json!({"ms": 60, "text": "a"})),
        b.call("sleep", json!({"ms": 30, "text": "b"})),
    );
    assert_eq!((first.text(), second.text()), ("a", "b"));
    assert_eq!(first.raw_id(), second.raw_id(), "both use the same id");
    let calls = peer.calls_of("sleep");
    let ids: BTreeSet<_> = calls.iter().map(|call| call.raw_id()).collect();
    assert_eq!(ids.len(), 2, "the server sees two");
    assert_eq!(peer.told("initialize") + peer.told("server/discover"), 0);
}

#[tokio::test]
async fn s3_max_concurrent_holds_for_all_clients_of_a_server() {
    let toml = "[tools.wait_file]\nmax_concurrent = 1\nanswer_within = \"300ms\"";
    let peer = Setup::remote(&[]).served().config(toml).spawn();
    let (a, b) = (peer.http().await, peer.http().await);
    tokio::join!(a.initialize(), b.initialize());
    let first = a.call("wait_file", peer.gate("one")).await;
    let second = b.call("wait_file", peer.gate("two")).await;
    assert!(first.is_handle() && second.is_handle());
    assert_eq!(peer.calls_of("wait_file").len(), 1, "the second waits in line");
    peer.create("two");
    peer.create("one");
    assert_eq!(a.finish(first).await.text(), "one is open");
    assert_eq!(b.finish(second).await.text(), "two is open");
}

#[tokio::test]
async fn c20_list_changed_is_told_only_to_those_whose_list_differs_after_a_renewal() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.upstream().forget_sessions().await;
    peer.call("echo", json!({})).await;
    let relisted = || async { (peer.told("tools/list") >= 2).then_some(()) };
    eventually(relisted).await.expect("the list is read again");
    peer.settle().await;
    assert_eq!(peer.notifications(), [], "the list is the same");
}
