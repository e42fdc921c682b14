//! Limits on running calls and kept results (contract §3, §4.2, §11).

use serde_json::json;
use support::json::{member, path};
use support::{Answer, Peer, Setup};

/// A proxy with a short budget and more configuration.
async fn open(toml: &str) -> Peer {
    Peer::open_with(&format!("defaults.answer_within = \"300ms\"\n{toml}")).await
}

/// The gates of the `wait_file` calls that reached the server, in their order.
fn reached(peer: &Peer) -> Vec<String> {
    let calls = peer.calls_of("wait_file");
    let gates = calls.iter().map(|call| {
        let text = path(&call.line, &["params", "arguments", "text"]).expect("a text");
        text.trim_matches('"').trim_end_matches(" is open").to_owned()
    });
    gates.collect()
}

fn open_gates(peer: &Peer, gates: &[&str]) {
    gates.iter().for_each(|gate| peer.create(gate));
}

// max_runtime.

#[tokio::test]
async fn s3_a_job_older_than_max_runtime_fails_and_the_server_is_told() {
    let peer = open("defaults.max_runtime = \"900ms\"\n").await;
    let handle = peer.job("never").await;
    let end = peer.finish(handle).await;
    assert!(end.is_error() && end.status() == "failed", "{}", end.raw);
    assert!(end.message().contains("max_runtime (0.9 s)"), "{}", end.raw);
    assert!(end.message().contains("safe to repeat"), "{}", end.raw);
    let told = peer.journal_method("notifications/cancelled").await;
    let id = member(&peer.calls_of("wait_file")[0].line, "id").map(str::to_owned);
    assert_eq!(member(told.raw_params().unwrap(), "requestId"), id.as_deref());
}

#[tokio::test]
async fn s3_a_max_runtime_below_the_budget_ends_the_call_too() {
    let peer =
        Peer::open_with("defaults.answer_within = \"15s\"\ndefaults.max_runtime = \"500ms\"\n")
            .await;
    let answer = peer.call("wait_file", peer.gate("never")).await;
    assert_eq!(peer.finish(answer).await.status(), "failed");
    peer.journal_method("notifications/cancelled").await;
}

#[tokio::test]
async fn s3_a_late_result_after_max_runtime_is_dropped() {
    let peer = open("tools.script.max_runtime = \"700ms\"\n").await;
    let steps = json!([{"wait_file": peer.path("go")}, {"result": r#"{"content":[]}"#}]);
    let handle = peer.call("script", json!({"steps": steps, "ignore_cancel": true})).await;
    let end = peer.finish(handle).await;
    peer.create("go");
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.settle().await;
    assert_eq!(peer.look(end.job_id()).await.raw_result(), end.raw_result());
}

// max_concurrent.

const ONE: &str = "tools.wait_file.max_concurrent = 1\n";

#[tokio::test]
async fn s4_2_calls_over_max_concurrent_wait_in_line_and_go_in_order() {
    let peer = open(ONE).await;
    let (first, second, third) = (peer.job("a").await, peer.job("b").await, peer.job("c").await);
    assert!(first.message().starts_with("STILL RUNNING"), "{}", first.raw);
    for (handle, place) in [(&second, "place 1"), (&third, "place 2")] {
        assert_eq!(handle.status(), "working");
        assert!(handle.message().starts_with("WAITING IN LINE"), "{}", handle.raw);
        assert!(handle.message().contains(place) && handle.message().contains("not started"));
        assert!(handle.message().contains("Do not call wait_file again"), "{}", handle.raw);
    }
    peer.settle().await;
    assert_eq!(reached(&peer), ["a"]);
    peer.create("a");
    assert_eq!(peer.finish(first).await.text(), "a is open");
    peer.settle().await;
    assert_eq!(reached(&peer), ["a", "b"]);
    assert!(peer.look(second.job_id()).await.message().starts_with("STILL RUNNING"));
    assert!(peer.look(third.job_id()).await.message().contains("place 1"));
    open_gates(&peer, &["b", "c"]);
    assert_eq!(peer.finish(second).await.text(), "b is open");
    assert_eq!(peer.finish(third).await.text(), "c is open");
    assert_eq!(reached(&peer), ["a", "b", "c"]);
}

#[tokio::test]
async fn s3_a_queued_job_that_is_cancelled_never_reaches_the_server() {
    let peer = open(ONE).await;
    let (first, second, third) = (peer.job("a").await, peer.job("b").await, peer.job("c").await);
    assert_eq!(peer.job_cancel(second.job_id()).await.status(), "cancelled");
    assert!(peer.look(third.job_id()).await.message().contains("place 1"), "it moves up");
    open_gates(&peer, &["a", "b", "c"]);
    assert_eq!(peer.finish(first).await.text(), "a is open");
    assert_eq!(peer.finish(third).await.text(), "c is open");
    assert_eq!(
        (reached(&peer), peer.told("notifications/cancelled")),
        (vec!["a".into(), "c".into()], 0)
    );
    assert_eq!(peer.look(second.job_id()).await.status(), "cancelled");
}

#[tokio::test]
async fn s3_a_cancelled_job_gives_its_place_to_the_next() {
    let peer = open(ONE).await;
    let (first, second) = (peer.job("a").await, peer.job("b").await);
    peer.job_cancel(first.job_id()).await;
    peer.create("b");
    assert_eq!(peer.finish(second).await.text(), "b is open");
}

#[tokio::test]
async fn s3_a_call_that_waits_in_line_within_its_budget_is_answered_as_itself() {
    let peer = Peer::open_with(&format!("defaults.answer_within = \"15s\"\n{ONE}")).await;
    let first = peer.start("wait_file", peer.gate("a")).await;
    let second = peer.start("wait_file", peer.gate("b")).await;
    let third = peer.start("wait_file", peer.gate("c")).await;
    let other = peer.call("echo", json!({"text": "another tool has its own line"})).await;
    assert_eq!((other.is_handle(), reached(&peer)), (false, vec!["a".into()]));
    peer.cancel(&second, "user pressed stop").await;
    open_gates(&peer, &["a", "b", "c"]);
    assert_eq!(peer.answer(&first).await.text(), "a is open");
    assert_eq!(peer.answer(&third).await.text(), "c is open");
    assert_eq!(reached(&peer), ["a", "c"]);
    assert!(peer.answers(&second).is_empty());
}

#[tokio::test]
async fn s9_thousands_that_wait_in_line_for_a_server_that_is_not_coming_are_told() {
    const CALLS: usize = 5000;
    let toml = "tools.script.max_concurrent = 1\njobs.max_running = 10000\n";
    let only_once = r#"mkdir was_here 2>/dev/null || exit 9; exec "$@""#;
    let peer = Peer::opened(Setup::proxied().config(toml).server_through(only_once)).await;
    let mark = peer.mark();
    let mut ids =
        vec![peer.start("script", json!({"steps": [{"wait_file": "go"}, {"exit": 3}]})).await];
    peer.arrived("script", 1).await;
    for number in 0..CALLS {
        ids.push(peer.start("script", json!({"steps": [], "n": number})).await);
    }
    // Answered by the proxy, after all that came before it.
    peer.ask("ping", json!({})).await;
    peer.create("go");
    let lines = std::cell::Cell::new(0);
    peer.wait_line_from(mark, |_| lines.replace(lines.get() + 1) > CALLS).await;
    let answers: Vec<Answer> =
        peer.lines()[mark..].iter().map(|line| Answer::new(&line.text)).collect();
    let told = answers.iter().filter(|answer| answer.is_error());
    let told: std::collections::BTreeSet<&str> = told.map(Answer::raw_id).collect();
    assert!(ids.iter().all(|id| told.contains(&**id)), "{} are told", told.len());
    assert_eq!((answers.len(), peer.calls_of("script").len()), (CALLS + 2, 1));
    peer.ask("ping", json!({})).await;
}

// max_running.

#[tokio::test]
async fn s3_over_max_running_calls_wait_for_their_own_answer() {
    let peer = open("jobs.max_running = 1\n").await;
    let handle = peer.job("a").await;
    let answer = peer.call("sleep", json!({"ms": 900})).await;
    assert_eq!((answer.text(), answer.job().is_null()), ("slept", true));
    peer.create("a");
    assert_eq!(peer.finish(handle).await.text(), "a is open");
    peer.job("b").await;
}

// max_stored.

#[tokio::test]
async fn s11_unfetched_results_are_never_dropped_for_room() {
    let peer = open("jobs.max_stored = \"20KiB\"\n").await;
    let args = |number| json!({"bytes": 30_000, "ms": 600, "number": number});
    let handle = peer.call("big", args(1)).await;
    peer.newest_becomes("completed").await;
    let direct = peer.call("big", args(2)).await;
    assert_eq!((direct.text().len(), direct.job().is_null()), (30_000, true), "no room: no handle");
    peer.wait_stderr(|line| line.contains("max_stored")).await;
    assert_eq!(peer.finish(handle).await.text().len(), 30_000);
}

#[tokio::test]
async fn s11_fetched_results_and_tombstones_make_room() {
    let peer = open("jobs.max_stored = \"20KiB\"\n").await;
    for number in 0..25 {
        let handle = peer.call("big", json!({"bytes": 15_000, "ms": 400, "number": number})).await;
        assert!(handle.is_handle(), "call {number}: {}", &handle.raw[..60]);
        assert_eq!(peer.finish(handle).await.text().len(), 15_000);
    }
}
