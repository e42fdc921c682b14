//! Who may see a job over HTTP (CONTRACT §10, §4.4, §5.1, §7).
#![forbid(unsafe_code)]

mod support;

use serde_json::{Value, json};
use support::{Answer, HttpPeer, Peer, Setup, until};

const ALICE: Option<&str> = Some("alice");
const BOB: Option<&str> = Some("bob");
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

fn serve() -> Peer {
    Setup::proxied().served().spawn()
}

/// The answers to `job_get` and `job_cancel` with this id; both must be refusals.
async fn refused(client: &HttpPeer, id: &str) -> [String; 2] {
    let args = json!({"job_id": id, "wait_seconds": 0});
    let answers = [
        client.call("job_get", args.clone()).await,
        client.call("job_cancel", json!({"job_id": id})).await,
    ];
    answers.map(|answer| {
        assert!(answer.is_error(), "{}", answer.raw);
        assert!(!answer.is_rpc_error(), "{}", answer.raw);
        answer.raw_result().replace(id, "ID")
    })
}

fn ids(jobs: &[Value]) -> Vec<&str> {
    jobs.iter().filter_map(|job| job["job_id"].as_str()).collect()
}

fn is_joined(answer: &Answer) -> bool {
    answer.structured()["joined"] == true
}

// With an identity.

async fn c07_foreign_jobs_are_as_unknown_ones(alice: HttpPeer, bob: HttpPeer, peer: &Peer) {
    let handle = alice.park("go").await;
    let foreign = refused(&bob, handle.job_id()).await;
    assert_eq!(refused(&bob, UNKNOWN).await, foreign);
    assert_eq!(refused(&bob, "junk").await, foreign);
    assert_eq!(refused(&bob, &handle.job_id()[..8]).await, foreign);
    assert!(bob.jobs().await.is_empty());
    assert_eq!(ids(&alice.jobs().await), [handle.job_id()]);
    assert_eq!(alice.look(handle.job_id()).await.status(), "working", "bob did not stop it");
    peer.create("go");
    let end = alice.finish(handle).await;
    assert_eq!(end.text(), "go");
    assert_eq!(refused(&bob, end.job_id()).await, foreign, "nor when it has ended");
}

#[tokio::test]
async fn c07_legacy_foreign_jobs_are_as_unknown_ones() {
    let peer = serve();
    let (alice, bob) = (peer.legacy_http(ALICE).await, peer.legacy_http(BOB).await);
    c07_foreign_jobs_are_as_unknown_ones(alice, bob, &peer).await;
}

#[tokio::test]
async fn c07_modern_foreign_jobs_are_as_unknown_ones() {
    let peer = serve();
    let (alice, bob) = (peer.modern_http(ALICE).await, peer.modern_http(BOB).await);
    c07_foreign_jobs_are_as_unknown_ones(alice, bob, &peer).await;
}

#[tokio::test]
async fn c07_jobs_of_an_identity_are_closed_to_callers_without_one_and_the_other_way_round() {
    let peer = serve();
    let hers = peer.legacy_http(ALICE).await.park("a").await;
    let theirs = peer.legacy_http(None).await.park("b").await;
    let (bob, nobody) = (peer.legacy_http(BOB).await, peer.legacy_http(None).await);
    for (client, foreign) in [(&nobody, &hers), (&bob, &theirs)] {
        assert_eq!(refused(client, foreign.job_id()).await, refused(client, UNKNOWN).await);
    }
    let modern = peer.modern_http(None).await;
    assert_eq!(refused(&modern, hers.job_id()).await, refused(&modern, UNKNOWN).await);
}

#[tokio::test]
async fn c07_a_foreign_session_is_404_for_every_method() {
    let peer = serve();
    let alice = peer.legacy_http(ALICE).await;
    let session = alice.session();
    for foreign in [peer.legacy_http(BOB).await, peer.legacy_http(None).await] {
        foreign.set_session(session.as_deref());
        assert_eq!(foreign.open("tools/list", json!({})).await.status, 404);
        assert_eq!(foreign.get_stream().await.status, 404);
        let deleted = foreign.delete().await.status;
        foreign.set_session(Some(UNKNOWN));
        assert_eq!((deleted, foreign.delete().await.status), (404, 404));
    }
    assert_eq!(alice.call("echo", json!({"text": "lives"})).await.text(), "lives");
}

#[tokio::test]
async fn c66_a_new_session_of_the_same_principal_reads_the_job_by_id_and_by_prefix() {
    let peer = serve();
    let first = peer.legacy_http(ALICE).await;
    let handle = first.park("go").await;
    first.delete().await;
    let second = peer.legacy_http(ALICE).await;
    assert_eq!(ids(&second.jobs().await), [handle.job_id()]);
    let id = handle.job_id().to_uppercase();
    for id in [&id, &id[..8]] {
        assert_eq!(second.look(id).await.job_id(), handle.job_id());
    }
    peer.create("go");
    assert_eq!(second.finish(handle).await.text(), "go");
}

#[tokio::test]
async fn s10_both_eras_of_one_principal_share_their_jobs() {
    let peer = serve();
    let (legacy, modern) = (peer.legacy_http(ALICE).await, peer.modern_http(ALICE).await);
    let (one, two) = tokio::join!(legacy.park("one"), modern.park("two"));
    for client in [&legacy, &modern] {
        let jobs = client.jobs().await;
        assert_eq!(jobs.len(), 2, "{jobs:?}");
        assert!([&one, &two].iter().all(|job| ids(&jobs).contains(&job.job_id())));
    }
    peer.create("one");
    peer.create("two");
    let (first, second) = tokio::join!(modern.finish(one), legacy.finish(two));
    assert_eq!((first.text(), second.text()), ("one", "two"));
    assert_eq!(first.result()["resultType"], Value::Null, "the result is as its server gave it");
}

#[tokio::test]
async fn s10_another_value_of_the_same_token_is_another_principal() {
    let peer = serve();
    let old = peer.legacy_http(Some("token-1")).await;
    let handle = old.park("go").await;
    let refreshed = peer.legacy_http(Some("token-2")).await;
    refused(&refreshed, handle.job_id()).await;
    assert!(refreshed.jobs().await.is_empty());
}

// Without an identity.

#[tokio::test]
async fn s10_without_an_identity_only_the_full_id_opens_a_job() {
    let peer = serve();
    let own = peer.legacy_http(None).await;
    let handle = own.park("go").await;
    let others = [peer.legacy_http(None).await, peer.modern_http(None).await];
    for other in &others {
        assert_eq!(other.look(handle.job_id()).await.status(), "working");
        refused(other, &handle.job_id()[..8]).await;
        refused(other, &handle.job_id()[..35]).await;
        assert!(other.jobs().await.is_empty());
    }
    assert_eq!(ids(&own.jobs().await), [handle.job_id()], "its own session lists it");
    peer.create("go");
    for other in &others {
        assert_eq!(other.job_get(json!({"job_id": handle.job_id()})).await.text(), "go");
    }
}

#[tokio::test]
async fn s10_the_modern_era_without_an_identity_lists_none() {
    let peer = serve();
    let client = peer.modern_http(None).await;
    let handle = client.park("go").await;
    assert!(client.jobs().await.is_empty());
    refused(&client, &handle.job_id()[..8]).await;
    let answer = client.look(UNKNOWN).await;
    assert!(!answer.raw.contains(handle.job_id()), "{}", answer.raw);
    peer.create("go");
    assert_eq!(client.finish(handle).await.text(), "go");
}

// Joins.

#[tokio::test]
async fn s7_an_equal_call_joins_within_its_session_only() {
    let peer = serve();
    for (identity, gate) in [(ALICE, "with"), (None, "without")] {
        let before = peer.calls_of("wait_file").len();
        let first = peer.legacy_http(identity).await;
        let handle = first.park(gate).await;
        let joined = first.park(gate).await;
        assert!(is_joined(&joined), "{}", joined.raw);
        assert_eq!(joined.job_id(), handle.job_id());
        let other = peer.legacy_http(identity).await.park(gate).await;
        assert!(!is_joined(&other), "{}", other.raw);
        assert_ne!(other.job_id(), handle.job_id());
        assert_eq!(peer.calls_of("wait_file").len() - before, 2);
    }
}

#[tokio::test]
async fn s7_modern_clients_of_one_principal_join_each_others_calls() {
    let peer = serve();
    let handle = peer.modern_http(ALICE).await.park("go").await;
    let joined = peer.modern_http(ALICE).await.park("go").await;
    assert!(is_joined(&joined), "{}", joined.raw);
    assert_eq!(joined.job_id(), handle.job_id());
    let foreign = peer.modern_http(BOB).await.park("go").await;
    assert!(!is_joined(&foreign), "{}", foreign.raw);
    assert_eq!(peer.calls_of("wait_file").len(), 2);
}

#[tokio::test]
async fn s7_without_an_identity_the_modern_era_joins_nothing() {
    let peer = serve();
    let client = peer.modern_http(None).await;
    let handles = [client.park("go").await, client.park("go").await];
    assert!(!handles.iter().any(is_joined), "{handles:?}");
    assert_ne!(handles[0].job_id(), handles[1].job_id());
    assert_eq!(peer.calls_of("wait_file").len(), 2);
}

// Children.

#[tokio::test]
async fn s10_modern_clients_share_a_child_with_their_own_principal_only() {
    let peer = serve();
    let mut pids = vec![];
    for identity in [ALICE, ALICE, BOB, None, None] {
        let client = peer.modern_http(identity).await;
        assert_eq!(client.call("echo", json!({"text": "hi"})).await.text(), "hi");
        pids.push(peer.calls_of("echo").last().expect("it reached the server").pid);
    }
    assert_eq!((pids[0], pids[3]), (pids[1], pids[4]));
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 3);
    let starts = peer.journal().into_iter().filter(|entry| entry.event == "start");
    assert_eq!(starts.count(), 3);
}

#[tokio::test]
async fn s10_every_legacy_session_has_a_child_of_its_own() {
    let peer = serve();
    let (first, second) = (peer.legacy_http(ALICE).await, peer.legacy_http(ALICE).await);
    for client in [&first, &second, &first] {
        client.call("echo", json!({})).await;
    }
    let pids: Vec<u32> = peer.calls_of("echo").iter().map(|call| call.pid).collect();
    assert_eq!(pids[0], pids[2]);
    assert_ne!(pids[0], pids[1]);
}

// Shares.

/// The call waits for its answer although a later one of another client has its handle, so its own
/// budget is over.
async fn waits(peer: &Peer, client: &HttpPeer, other: &HttpPeer, gates: [&str; 2]) {
    let waiting = client.call("wait_file", until(gates[0]));
    let later = async {
        peer.has_call_until(gates[0]).await;
        let handle = other.call("wait_file", until(gates[1])).await;
        assert!(handle.is_handle(), "{}", handle.raw);
        peer.create(gates[0]);
    };
    let (answer, ()) = tokio::join!(waiting, later);
    assert_eq!(answer.text(), gates[0], "no handle: {}", answer.raw);
}

#[tokio::test]
async fn s10_no_principal_takes_more_than_a_quarter_of_max_running() {
    let toml = "[defaults]\nanswer_within = \"400ms\"\n[jobs]\nmax_running = 8";
    let peer = Setup::proxied().served().config(toml).spawn();
    let (alice, bob) = (peer.modern_http(ALICE).await, peer.modern_http(BOB).await);
    bob.park("b1").await;
    let first = alice.park("a1").await;
    alice.park("a2").await;
    waits(&peer, &alice, &bob, ["a3", "b2"]).await;
    assert_eq!((alice.jobs().await.len(), bob.jobs().await.len()), (2, 2));
    peer.create("a1");
    assert_eq!(alice.finish(first).await.text(), "a1");
    alice.park("a4").await;
    waits(&peer, &bob, &peer.modern_http(Some("eve")).await, ["b3", "e1"]).await;
}

#[tokio::test]
async fn s10_a_principal_alone_may_take_all_of_max_running() {
    let peer = Setup::proxied().served().config("[jobs]\nmax_running = 4").spawn();
    let alice = peer.modern_http(ALICE).await;
    for gate in ["a", "b", "c", "d"] {
        alice.park(gate).await;
    }
    assert_eq!(alice.jobs().await.len(), 4);
}
