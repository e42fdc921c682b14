//! Cases in which a server over HTTP, behind the sidecar, differs from a child (docs/cases.md).

use serde_json::{Value, json};
use support::{Entry, HttpPeer, Setup, Transport, call_params, eventually};

fn remote(flags: &[&str]) -> Setup {
    // Other calls are fast, and may be slow on a machine at work.
    let toml = "[tools.wait_file]\nanswer_within = \"300ms\"";
    Setup::proxied().served().upstream(Transport::Http).flags(flags).config(toml)
}

async fn jobs(client: &HttpPeer) -> Vec<Value> {
    let list = client.call("job_get", json!({})).await;
    list.structured()["jobs"].as_array().expect("a list").clone()
}

// C07, C66: whose job.

/// Another principal is told the same as of a job that never was.
async fn is_hidden_from(job: &str, other: &HttpPeer) {
    let never = "00000000-0000-4000-8000-000000000000";
    let (foreign, unknown) = (other.look(job).await, other.look(never).await);
    assert!(foreign.is_error() && unknown.is_error());
    assert_eq!(foreign.text().replace(job, never), unknown.text());
    let cancelled = other.call("job_cancel", json!({"job_id": job})).await;
    assert!(cancelled.is_error(), "{}", cancelled.raw);
    assert!(!jobs(other).await.iter().any(|listed| listed["job_id"] == job));
}

#[tokio::test]
async fn c07_a_job_of_one_principal_is_unknown_to_all_others() {
    let peer = remote(&["--dual"]).spawn();
    let owner = peer.legacy_as("a").await;
    let handle = owner.call("wait_file", peer.gate("go")).await;
    is_hidden_from(handle.job_id(), &peer.legacy_as("b").await).await;
    is_hidden_from(handle.job_id(), &peer.modern_as("b").await).await;
    peer.create("go");
    assert_eq!(owner.finish(handle).await.text(), "go is open");
    assert_eq!(peer.told("notifications/cancelled"), 0);
}

#[tokio::test]
async fn c66_a_new_session_of_the_same_principal_has_the_jobs_of_the_old() {
    for ends in [false, true] {
        let peer = remote(&["--dual"]).spawn();
        let first = peer.legacy_as("a").await;
        let handle = first.call("wait_file", peer.gate("go")).await;
        let job = handle.job_id().to_owned();
        if ends {
            first.delete().await;
        }
        let second = peer.legacy_as("a").await;
        let third = peer.modern_as("a").await;
        for other in [&second, &third] {
            assert_eq!(other.look(&job).await.status(), "working");
            assert_eq!(jobs(other).await[0]["job_id"], *job);
        }
        peer.create("go");
        assert_eq!(second.finish(handle).await.text(), "go is open");
        assert_eq!(third.look(&job).await.text(), "go is open");
    }
}

// C08: many clients, one id.

#[tokio::test]
async fn c08_50_clients_that_all_use_id_1_each_get_their_own_answer() {
    for era in ["legacy", "modern"] {
        let peer = remote(&["--dual"]).spawn();
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..50 {
            let client = peer.http().await;
            let is_modern = era == "modern";
            calls.spawn(async move {
                if is_modern {
                    client.become_modern("test-client", json!({}));
                } else {
                    client.initialize().await;
                }
                let text = format!("client {number}");
                let answer = client.call("sleep", json!({"ms": 50 - number, "text": text})).await;
                assert_eq!(answer.text(), text);
                answer.raw_id().to_owned()
            });
        }
        let ids = calls.join_all().await;
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(peer.calls_of("sleep").len(), 50);
    }
}

#[tokio::test]
async fn c10_ids_of_both_types_keep_them() {
    let peer = remote(&[]).spawn();
    let (a, b) = (peer.legacy_as("a").await, peer.legacy_as("b").await);
    let call = |id: Value, text: &str| {
        let params = call_params("sleep", json!({"ms": 50, "text": text}));
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let (first, second) = (call(json!("1"), "string"), call(json!(1), "number"));
    let (mut first, mut second, mut third) =
        tokio::join!(a.post(&first), a.post(&second), b.post(&second));
    let (first, second, third) =
        (first.answer().await, second.answer().await, third.answer().await);
    assert_eq!((first.raw_id(), first.text()), ("\"1\"", "string"));
    assert_eq!((second.raw_id(), second.text()), ("1", "number"));
    assert_eq!((third.raw_id(), third.text()), ("1", "number"));
}

// C21, C24: clients that leave.

#[tokio::test]
async fn c24_a_call_whose_client_left_is_a_job_that_a_new_connection_finds() {
    let peer = remote(&[]).spawn();
    let first = peer.legacy_as("a").await;
    let call = first.request("tools/call", call_params("wait_file", peer.gate("go")));
    let leaving = first.try_post(&call);
    let arrived = peer.journal_wait(|entry| entry.is_call_of("wait_file"));
    tokio::select! {
        _ = leaving => panic!("no answer comes so soon"),
        _ = arrived => {}
    }
    let second = peer.legacy_as("a").await;
    let listed = || async { jobs(&second).await.first().cloned() };
    let job = eventually(listed).await.expect("the job is listed");
    peer.create("go");
    let answer = second.call("job_get", json!({"job_id": job["job_id"]})).await;
    assert_eq!(second.finish(answer).await.text(), "go is open");
    assert_eq!(peer.told("notifications/cancelled"), 0, "a legacy client has not cancelled");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
}

#[tokio::test]
async fn s6_a_modern_client_that_leaves_has_cancelled_at_the_server_too() {
    let peer = remote(&["--modern"]).spawn();
    let caller = peer.modern_as("a").await;
    let call = caller.request("tools/call", call_params("sleep", json!({"ms": 60_000})));
    let arrived = peer.journal_wait(|entry| entry.is_call_of("sleep"));
    tokio::select! {
        _ = caller.try_post(&call) => panic!("no answer comes so soon"),
        _ = arrived => {}
    }
    let hung_up =
        |entry: &Entry| entry.event == "disconnect" && entry.json["method"] == "tools/call";
    peer.journal_wait(hung_up).await;
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    assert_eq!(jobs(&caller).await, Vec::<Value>::new());
}

#[tokio::test]
async fn s4_3_a_modern_client_that_leaves_after_its_handle_has_cancelled_nothing() {
    let peer = remote(&["--modern"]).spawn();
    let caller = peer.modern_as("a").await;
    let handle = caller.call("wait_file", peer.gate("go")).await;
    let other = peer.modern_as("a").await;
    assert_eq!(other.look(handle.job_id()).await.status(), "working");
    assert!(!peer.journal().iter().any(|entry| entry.event == "disconnect"));
    peer.create("go");
    assert_eq!(other.finish(handle).await.text(), "go is open");
}

#[tokio::test]
async fn c21_clients_that_abort_their_calls_harm_nobody() {
    let peer = remote(&[]).spawn();
    let (leaver, other) = (peer.legacy_as("a").await, peer.legacy_as("b").await);
    for number in 0..20 {
        let args = json!({"path": "go", "text": format!("call {number}")});
        let call = leaver.request("tools/call", call_params("wait_file", args));
        tokio::select! {
            _ = leaver.try_post(&call) => panic!("no answer comes so soon"),
            () = peer.arrived("wait_file", number + 1) => {}
        }
        other.assert_works().await;
    }
    peer.create("go");
    let done = || async {
        let jobs = jobs(&leaver).await;
        (jobs.len() == 20 && jobs.iter().all(|job| job["status"] == "completed")).then_some(())
    };
    eventually(done).await.expect("all 20 are jobs that end well");
    assert_eq!(peer.calls_of("wait_file").len(), 20);
}

// C04: equal calls.

#[tokio::test]
async fn c04_an_equal_call_joins_within_one_session_of_the_server() {
    let peer = remote(&[]).spawn();
    let (a, b) = (peer.legacy_as("a").await, peer.legacy_as("b").await);
    let handle = a.call("wait_file", peer.gate("go")).await;
    let joined = a.call("wait_file", peer.gate("go")).await;
    assert_eq!(joined.job_id(), handle.job_id());
    assert_eq!(joined.structured()["joined"], true);
    let foreign = b.call("wait_file", peer.gate("go")).await;
    assert_ne!(foreign.job_id(), handle.job_id());
    assert_eq!(peer.calls_of("wait_file").len(), 2);
    peer.create("go");
    assert_eq!(b.finish(foreign).await.text(), "go is open");
}
