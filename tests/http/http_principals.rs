//! Who may see a job over HTTP (contract §10, §4.4, §7, C07, C66).

use serde_json::json;
use support::{Answer, HttpPeer, Peer, until};

/// What a caller is told of an id that is none of theirs, with the id itself left out.
async fn told(client: &HttpPeer, id: &str) -> String {
    let answer = client.call("job_get", json!({"job_id": id, "wait_seconds": 0})).await;
    assert!(answer.is_error() && answer.job().is_null(), "{}", answer.raw);
    let cancel = client.call("job_cancel", json!({"job_id": id})).await;
    assert!(cancel.is_error() && cancel.job().is_null(), "{}", cancel.raw);
    answer.text().replace(&format!(r#"\"{id}\""#), "ID")
}

fn near(id: &str, change: i32) -> String {
    let last = i32::from_str_radix(&id[id.len() - 1..], 16).expect("a hexadecimal digit");
    format!("{}{:x}", &id[..id.len() - 1], (last + change).rem_euclid(16))
}

async fn sees_nothing(stranger: &HttpPeer, id: &str) {
    let unknown = told(stranger, "3f0e5d0e-2b5f-4a43-8f53-0d3a0c7d2f11").await;
    for id in [id, &id.to_uppercase(), &id[..8], &near(id, 1), &near(id, -1), "nope", ""] {
        assert_eq!(told(stranger, id).await, unknown, "{id:?}");
    }
}

// Two principals.

#[tokio::test]
async fn c07_anothers_job_is_like_one_that_does_not_exist() {
    let peer = Peer::serve("", &["--dual"]);
    let owner = peer.legacy_as("x").await;
    let handle = owner.park("go").await;
    for stranger in [
        peer.legacy_as("y").await,
        peer.modern_as("y").await,
        peer.legacy().await,
        peer.modern().await,
    ] {
        sees_nothing(&stranger, handle.job_id()).await;
    }
    assert!(peer.legacy_as("y").await.jobs().await.is_empty());
    assert_eq!(owner.look(handle.job_id()).await.status(), "working", "nobody cancelled it");
    peer.create("go");
    assert_eq!(owner.finish(handle).await.text(), "go");
}

#[tokio::test]
async fn c07_a_job_without_an_owner_is_not_for_those_who_have_a_name() {
    let peer = Peer::serve("", &["--dual"]);
    let handle = peer.legacy().await.park("go").await;
    sees_nothing(&peer.legacy_as("y").await, handle.job_id()).await;
    peer.create("go");
}

#[tokio::test]
async fn c07_a_finished_job_is_no_more_open_to_others() {
    let peer = Peer::serve("", &["--dual"]);
    let owner = peer.modern_as("x").await;
    let handle = owner.defer("sleep", json!({"ms": 400, "text": "secret"})).await;
    let id = handle.job_id().to_owned();
    assert_eq!(owner.finish(handle).await.text(), "secret");
    sees_nothing(&peer.modern_as("y").await, &id).await;
}

#[tokio::test]
async fn c43_a_session_of_another_principal_is_404() {
    let peer = Peer::serve("", &[]);
    let session = peer.legacy_as("x").await.session().expect("a session");
    for stranger in [peer.known_as("y").await, peer.http().await] {
        stranger.set_session(Some(&session));
        let mut response = stranger.start("echo", json!({})).await;
        assert_eq!((response.status, response.code().await), (404, -32001));
        assert_eq!(stranger.get_stream().await.status, 404);
        assert_eq!(stranger.delete().await.status, 404);
    }
    assert!(peer.calls_of("echo").is_empty());
    let owner = peer.known_as("x").await;
    owner.set_session(Some(&session));
    assert_eq!(owner.start("echo", json!({})).await.status, 200);
}

#[tokio::test]
async fn c66_the_same_principal_finds_its_job_in_a_new_session_and_era() {
    let peer = Peer::serve("", &["--dual"]);
    let first = peer.legacy_as("x").await;
    let handle = first.park("go").await;
    first.delete().await;
    let id = handle.job_id();
    for client in [peer.legacy_as("x").await, peer.modern_as("x").await] {
        assert_eq!(client.look(id).await.status(), "working");
        assert_eq!(client.look(&id[..8].to_uppercase()).await.job_id(), id);
        assert_eq!(client.jobs().await[0]["job_id"], id);
    }
    peer.create("go");
    assert_eq!(peer.modern_as("x").await.result_of(id).await.text(), "go");
}

// No identity.

#[tokio::test]
async fn s10_without_an_identity_only_the_full_id_gives_access() {
    let peer = Peer::serve("", &["--dual"]);
    let owner = peer.legacy().await;
    let handle = owner.park("go").await;
    let id = handle.job_id();
    for client in [peer.legacy().await, peer.modern().await] {
        assert_eq!(client.look(id).await.status(), "working");
        told(&client, &id[..8]).await;
    }
    told(&owner, &id[..8]).await;
    assert!(peer.legacy().await.jobs().await.is_empty(), "another session");
    assert!(peer.modern().await.jobs().await.is_empty());
    assert_eq!(owner.jobs().await[0]["job_id"], id, "its own session lists it");
    peer.create("go");
}

#[tokio::test]
async fn s10_a_modern_caller_without_an_identity_lists_none() {
    let peer = Peer::serve("", &["--dual"]);
    let client = peer.modern().await;
    let handle = client.park("go").await;
    assert!(client.jobs().await.is_empty());
    peer.create("go");
    assert_eq!(client.finish(handle).await.text(), "go");
}

/// Two equal calls of these clients, the second while the first is a job; how often it ran.
async fn twice(peer: &Peer, first: &HttpPeer, second: &HttpPeer) -> usize {
    let before = peer.calls_of("wait_file").len();
    let file = format!("go-{before}");
    let handle = first.park(&file).await;
    let again = second.park(&file).await;
    let joined = again.job_id() == handle.job_id();
    peer.create(&file);
    let ends: [Answer; 2] = [first.finish(handle).await, second.finish(again).await];
    assert!(ends.iter().all(|end| end.text() == file));
    let ran = peer.calls_of("wait_file").len() - before;
    assert_eq!(joined, ran == 1);
    ran
}

#[tokio::test]
async fn s7_who_joins_whom() {
    let peer = Peer::serve("", &["--dual"]);
    let (a, b) = (peer.modern_as("a").await, peer.modern_as("a").await);
    assert_eq!(twice(&peer, &a, &b).await, 1, "modern, one principal");
    let c = peer.modern_as("c").await;
    assert_eq!(twice(&peer, &a, &c).await, 2, "two principals");
    let (nobody, other) = (peer.modern().await, peer.modern().await);
    assert_eq!(twice(&peer, &nobody, &other).await, 2, "modern, no identity");
    assert_eq!(twice(&peer, &nobody, &nobody).await, 2, "modern, no identity, one client");
    let (one, two) = (peer.legacy().await, peer.legacy().await);
    assert_eq!(twice(&peer, &one, &one).await, 1, "one legacy session");
    assert_eq!(twice(&peer, &one, &two).await, 2, "two legacy sessions");
    let (x, y) = (peer.legacy_as("x").await, peer.legacy_as("x").await);
    assert_eq!(twice(&peer, &x, &y).await, 2, "two sessions are two states of the server");
}

// Another header.

#[tokio::test]
async fn s10_another_header_may_say_who_asks() {
    let peer = Peer::serve("server.identity_header = \"X-User\"\n", &[]);
    let as_user = async |user: &str, token: &str| {
        let client = peer.known_as(token).await.with_header("x-user", user);
        client.initialize().await;
        client
    };
    let owner = as_user("u", "old").await;
    let handle = owner.park("go").await;
    assert_eq!(as_user("u", "new").await.look(handle.job_id()).await.status(), "working");
    sees_nothing(&as_user("v", "old").await, handle.job_id()).await;
    sees_nothing(&peer.legacy_as("old").await, handle.job_id()).await;
    peer.create("go");
}

#[tokio::test]
async fn s10_with_a_token_authorization_is_no_identity() {
    let peer = Peer::serve("server.token = \"T\"\n", &["--dual"]);
    let (one, two) = (peer.legacy_as("T").await, peer.legacy_as("T").await);
    let handle = one.park("go").await;
    assert_eq!(two.look(handle.job_id()).await.status(), "working", "the full id");
    assert!(two.jobs().await.is_empty() && peer.modern_as("T").await.jobs().await.is_empty());
    peer.create("go");
}

#[tokio::test]
async fn s10_with_a_token_another_header_may_still_be_one() {
    let peer =
        Peer::serve("server.token = \"T\"\nserver.identity_header = \"x-user\"\n", &["--dual"]);
    let user = async |name: &str| {
        let client = peer.known_as("T").await.with_header("x-user", name);
        client.become_modern("test-client", json!({}));
        client
    };
    let handle = user("u").await.park("go").await;
    assert_eq!(user("u").await.jobs().await[0]["job_id"], handle.job_id());
    sees_nothing(&user("v").await, handle.job_id()).await;
    peer.create("go");
}

// Shares.

#[tokio::test]
async fn s10_no_principal_fills_more_than_a_quarter_where_there_are_several() {
    let toml = "jobs.max_running = 8\ndefaults.duplicates = \"run\"\n";
    let peer = Peer::serve(toml, &[]);
    let (greedy, other) = (peer.legacy_as("a").await, peer.legacy_as("b").await);
    other.park("b").await;
    for _ in 0..2 {
        greedy.park("a").await;
    }
    let third = async {
        let at_once = json!({"unhurry/answer_within": 0});
        greedy.call_with_meta("wait_file", until("a"), at_once).await
    };
    let meanwhile = async {
        peer.wait_stderr(|line| line.contains("max_running")).await;
        other.park("b").await;
        peer.create("a");
    };
    let (answer, ()) = tokio::join!(third, meanwhile);
    assert!(answer.job().is_null() && answer.text() == "a", "as without the proxy: {}", answer.raw);
    peer.create("b");
}

#[tokio::test]
async fn s10_a_principal_that_is_alone_may_fill_it_all() {
    let peer = Peer::serve("jobs.max_running = 4\ndefaults.duplicates = \"run\"\n", &[]);
    let client = peer.legacy_as("a").await;
    for _ in 0..4 {
        client.park("go").await;
    }
    peer.create("go");
}
