//! Clients that give up over HTTP (contract §6, §4.3, C21, C24).

use std::time::Duration;

use serde_json::{Value, json};
use support::http::Response;
use support::json::{member, path};
use support::{HttpPeer, Peer, call_params, process, until};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Sends a call that ends with `file`, and hangs up once the server has it.
async fn leave(peer: &Peer, client: &HttpPeer, file: &str) {
    let before = peer.calls_of("wait_file").len();
    client.hang_up("wait_file", until(file), peer.arrived("wait_file", before + 1)).await;
}

/// The call of a client that leaves goes on as a job, whose result the client finds.
async fn leaves_a_job(peer: &Peer, client: &HttpPeer) {
    leave(peer, client, "go").await;
    let job = client.until_jobs(1).await;
    peer.create("go");
    assert_eq!(client.result_of(job["job_id"].as_str().expect("an id")).await.text(), "go");
    assert_eq!(cancels(peer), 0);
}

fn cancels(peer: &Peer) -> usize {
    peer.told("notifications/cancelled")
}

// Legacy: the work goes on.

#[tokio::test]
async fn c24_a_job_is_found_on_a_new_connection_of_a_new_session() {
    let peer = Peer::serve("", &[]);
    leave(&peer, &peer.legacy_as("a").await, "go").await;
    let later = peer.legacy_as("a").await;
    let job = later.until_jobs(1).await;
    assert_eq!(job["tool"], "wait_file");
    peer.create("go");
    let result = later.result_of(job["job_id"].as_str().expect("an id")).await;
    assert_eq!((result.text(), result.status()), ("go", "completed"));
    assert_eq!((cancels(&peer), peer.calls_of("wait_file").len()), (0, 1));
}

#[tokio::test]
async fn c24_without_an_identity_a_job_is_found_in_its_session() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    leaves_a_job(&peer, &client).await;
}

#[tokio::test]
async fn c24_a_cut_stream_leaves_a_job_too() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy_as("a").await;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;
    let steps = json!([{"send": progress}, {"wait_file": "go"}, {"result": r#"{"content":[]}"#}]);
    let mut params = call_params("script", json!({"steps": steps}));
    params["_meta"] = json!({"progressToken": "t"});
    let mut stream = client.open("tools/call", params).await;
    stream.until_method("notifications/progress").await;
    drop(stream);
    let job = client.until_jobs(1).await;
    peer.create("go");
    assert_eq!(
        client.result_of(job["job_id"].as_str().expect("an id")).await.status(),
        "completed"
    );
}

#[tokio::test]
async fn s7_the_call_that_its_client_left_is_joined_when_it_comes_again() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy_as("a").await;
    leave(&peer, &client, "go").await;
    client.until_jobs(1).await;
    let again = client.start("wait_file", until("go"));
    let release = async { peer.create("go") };
    let (mut again, ()) = tokio::join!(again, release);
    assert_eq!(again.answer().await.text(), "go");
    assert_eq!(peer.calls_of("wait_file").len(), 1, "run once");
}

#[tokio::test]
async fn s6_a_legacy_cancel_is_a_message_of_its_own() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy_as("a").await;
    let message = client.request("tools/call", call_params("wait_file", until("never")));
    let id = member(&message, "id").expect("an id");
    let cancel = async {
        peer.arrived("wait_file", 1).await;
        let params: Value = json!({"requestId": id.parse::<u64>().ok(), "reason": "the user"});
        client.notify("notifications/cancelled", params).await;
        peer.journal_method("notifications/cancelled").await;
    };
    let sent = client.try_post(&message);
    tokio::select! { _ = sent => {}, () = cancel => {} }
    peer.ended("wait_file", 1).await;
    assert!(client.jobs().await.is_empty());
}

// Modern: hanging up is the way to cancel.

#[tokio::test]
async fn s6_a_modern_client_that_leaves_before_the_handle_has_cancelled() {
    let peer = Peer::serve("", &["--dual"]);
    let client = peer.modern_as("a").await;
    leave(&peer, &client, "never").await;
    let cancel = peer.journal_method("notifications/cancelled").await;
    let call = &peer.calls_of("wait_file")[0];
    assert_eq!(path(&cancel.line, &["params", "requestId"]), member(&call.line, "id"));
    peer.ended("wait_file", 1).await;
    assert!(client.jobs().await.is_empty(), "nothing is kept");
    client.assert_works().await;
    assert_eq!(peer.started().len(), 1);
}

#[tokio::test]
async fn s6_a_modern_client_that_leaves_cancels_its_own_call_alone() {
    let peer = Peer::serve("", &["--dual"]);
    let (leaver, stays) = (peer.modern_as("a").await, peer.modern_as("a").await);
    let kept = stays.start("wait_file", until("go"));
    let left = async {
        peer.arrived("wait_file", 1).await;
        leave(&peer, &leaver, "never").await;
        peer.ended("wait_file", 1).await;
        peer.create("go");
    };
    let (mut kept, ()) = tokio::join!(kept, left);
    assert_eq!((kept.answer().await.text(), cancels(&peer)), ("go", 1));
}

#[tokio::test]
async fn s4_3_after_the_handle_nothing_is_undone() {
    let peer = Peer::serve("defaults.answer_within = \"600ms\"\n", &["--dual"]);
    let client = peer.modern_as("a").await;
    let mut params = call_params("wait_file", until("go"));
    params["_meta"] = json!({"progressToken": 1});
    let mut stream: Response = client.open("tools/call", params).await;
    let handle = stream.answer().await;
    assert!(handle.is_handle(), "{}", handle.raw);
    drop(stream);
    client.call("echo", json!({})).await;
    assert_eq!(client.look(handle.job_id()).await.status(), "working");
    peer.create("go");
    assert_eq!((client.finish(handle).await.text(), cancels(&peer)), ("go", 0));
}

#[tokio::test]
async fn s5_1_a_client_that_leaves_a_poll_ends_the_poll_and_not_the_job() {
    let peer = Peer::serve("", &["--dual"]);
    for client in [peer.modern_as("a").await, peer.legacy_as("b").await] {
        let file = if client.session().is_some() { "legacy" } else { "modern" };
        let handle = client.park(file).await;
        let poll = json!({"job_id": handle.job_id()});
        client.hang_up("job_get", poll, sleep(Duration::from_millis(200))).await;
        assert_eq!(client.look(handle.job_id()).await.status(), "working");
        peer.create(file);
        assert_eq!(client.finish(handle).await.text(), file);
    }
    assert_eq!(cancels(&peer), 0);
}

#[tokio::test]
async fn s3_with_detach_a_modern_client_that_leaves_finds_its_job() {
    let peer = Peer::serve("tools.wait_file.on_client_cancel = \"detach\"\n", &["--dual"]);
    let client = peer.modern_as("a").await;
    leaves_a_job(&peer, &client).await;
}

#[tokio::test]
async fn s3_with_detach_and_no_identity_the_call_runs_to_its_end() {
    let peer = Peer::serve("tools.wait_file.on_client_cancel = \"detach\"\n", &["--dual"]);
    leave(&peer, &peer.modern().await, "go").await;
    peer.modern().await.call("echo", json!({})).await;
    peer.create("go");
    peer.ended("wait_file", 1).await;
    assert_eq!(cancels(&peer), 0);
}

// What is learned.

/// The age at which the impatient client gives up.
const PATIENCE: Duration = Duration::from_secs(2);

async fn give_up(client: &HttpPeer) {
    client.hang_up("sleep", json!({"ms": 60_000}), sleep(PATIENCE)).await;
}

#[tokio::test]
async fn s6_two_modern_clients_that_leave_at_the_same_age_teach_a_smaller_budget() {
    let peer = Peer::serve("", &["--dual"]);
    let client = peer.modern_as("a").await;
    give_up(&client).await;
    let long = client.call("sleep", json!({"ms": 2200, "text": "one teaches nothing"})).await;
    assert!(!long.is_handle(), "{}", long.raw);
    // On a busy machine two ages may differ by more than 5 %.
    for _ in 0..5 {
        let call = client.call("sleep", json!({"ms": 60_000}));
        if timeout(PATIENCE, call).await.is_ok() {
            break;
        }
    }
    let start = Instant::now();
    let handle = client.call("wait_file", until("go")).await;
    assert!(handle.is_handle(), "the built-in budget is 25 s: {}", handle.raw);
    assert!(start.elapsed() >= Duration::from_millis(1500), "{:?}", start.elapsed());
    let other = peer.modern_as("b").await;
    let long = other.call("sleep", json!({"ms": 2200})).await;
    assert!(!long.is_handle(), "another principal: {}", long.raw);
}

#[tokio::test]
async fn s6_legacy_clients_that_leave_teach_nothing() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy_as("a").await;
    for _ in 0..3 {
        client.hang_up("sleep", json!({"ms": 9000}), sleep(Duration::from_secs(1))).await;
    }
    let long = client.call("sleep", json!({"ms": 1500})).await;
    assert!(!long.is_handle(), "{}", long.raw);
    assert!(!peer.stderr().contains("gave up a call"));
}

// C21: many that leave.

/// The other client's calls, while the first hangs up.
async fn goes_on(client: &HttpPeer, calls: usize) {
    for number in 0..calls {
        let text = format!("{number}");
        assert_eq!(client.call("echo", json!({"text": text})).await.text(), text);
    }
}

#[tokio::test]
async fn c21_twenty_aborts_after_100_ms_harm_neither_the_process_nor_others() {
    let peer = Peer::serve("defaults.duplicates = \"run\"\n", &[]);
    let (leaver, other) = (peer.legacy_as("a").await, peer.legacy_as("b").await);
    let aborts = async {
        for _ in 0..20 {
            let after = sleep(Duration::from_millis(100));
            leaver.hang_up("wait_file", until("go"), after).await;
        }
    };
    tokio::join!(aborts, goes_on(&other, 50));
    leaver.until_jobs(20).await;
    peer.create("go");
    peer.ended("wait_file", 20).await;
    for job in leaver.jobs().await {
        assert_eq!(leaver.result_of(job["job_id"].as_str().expect("an id")).await.text(), "go");
    }
    assert_eq!(peer.calls_of("wait_file").len(), 20, "nothing runs twice");
    assert!(process::alive(peer.pid()) && cancels(&peer) == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn c21_a_hundred_aborts_at_once_in_both_eras() {
    let peer = Peer::serve("defaults.duplicates = \"run\"\n", &["--dual"]);
    let (legacy, other) = (peer.legacy_as("a").await, peer.legacy_as("b").await);
    let session = legacy.session().expect("a session");
    let mut leaving = JoinSet::new();
    for number in 0..100 {
        let client =
            if number % 2 == 0 { peer.known_as("a").await } else { peer.modern_as("c").await };
        if number % 2 == 0 {
            client.set_session(Some(&session));
        }
        let tool = if number % 2 == 0 { "wait_file" } else { "sleep" };
        let id = 100 + number;
        let params = json!({"path": "go", "text": "go", "ms": 60_000});
        let message = client.request("tools/call", call_params(tool, params));
        let own = member(&message, "id").expect("an id").to_owned();
        let message = message.replacen(&format!(r#""id":{own}"#), &format!(r#""id":{id}"#), 1);
        leaving.spawn(async move {
            let sent = client.try_post(&message);
            assert!(timeout(Duration::from_millis(100), sent).await.is_err(), "not answered");
        });
    }
    goes_on(&other, 50).await;
    leaving.join_all().await;
    // Whoever hung up before its call was read has not called.
    goes_on(&legacy, 1).await;
    let arrived = peer.calls_of("wait_file").len();
    peer.ended("sleep", peer.calls_of("sleep").len()).await;
    peer.create("go");
    peer.ended("wait_file", arrived).await;
    assert_eq!(
        legacy.jobs().await.len(),
        arrived.min(20),
        "{arrived} jobs, of which 20 are listed"
    );
    assert!(arrived > 0 && process::alive(peer.pid()));
    assert_eq!(peer.started().len(), 3);
    goes_on(&other, 5).await;
}

// Answers that are not read.

#[tokio::test]
async fn s6_an_answer_that_its_client_did_not_read_becomes_a_finished_job() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy_as("a").await;
    let big = json!({"bytes": 30_000_000, "ms": 100});
    let mut params = call_params("big", big);
    params["_meta"] = json!({"progressToken": 1});
    let mut response = client.open("tools/call", params).await;
    peer.ended("big", 1).await;
    response.some_bytes().await;
    drop(response);
    let job = client.until_jobs(1).await;
    assert_eq!(job["status"], "completed");
    assert_eq!(peer.calls_of("big").len(), 1);
}
