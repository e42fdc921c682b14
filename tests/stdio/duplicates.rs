//! Equal calls: when one waits for the other, and when both run (contract §7).

use serde_json::{Value, json};
use support::json::path;
use support::{Answer, Peer, Setup, call_params, until};

/// Checks that a handle says that its call was joined to the job of another.
fn assert_joined(peer: &Peer, handle: &Answer, job: &Answer) {
    assert_eq!(handle.handle()["joined"], json!(true), "{}", handle.raw);
    assert_eq!(handle.job_id(), job.job_id());
    let message = handle.handle()["message"].as_str().unwrap_or_default().to_lowercase();
    assert!(message.contains("already running"), "{message}");
    assert_eq!(peer.calls_of("wait_file").len(), 1, "the server got one call");
}

#[tokio::test]
async fn c04_an_equal_call_joins_the_running_one() {
    let peer = Peer::open(&[]).await;
    let job = peer.park("go").await;
    assert!(job.handle()["joined"].is_null());
    let joined = peer.park("go").await;
    assert_joined(&peer, &joined, &job);
    assert_ne!(joined.next_action(), job.next_action(), "seq grows");
    peer.create("go");
    assert_eq!(peer.finish(joined).await.text(), "go");
    assert_eq!(peer.finish(job).await.text(), "go");
}

#[tokio::test]
async fn c04_the_same_call_after_the_clients_time_out_joins_the_first() {
    let peer = Peer::open(&[]).await;
    let id = peer.start("wait_file", until("go")).await;
    peer.cancel(&id, "McpError: MCP error -32001: Request timed out").await;
    let again = peer.call("wait_file", until("go")).await;
    assert_eq!(again.handle()["joined"], json!(true), "{}", again.raw);
    let third = peer.start("wait_file", until("go")).await;
    peer.create("go");
    assert_eq!(peer.answer(&third).await.text(), "go");
    assert_eq!(peer.finish(again).await.text(), "go");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
}

#[tokio::test]
async fn c04_a_modern_client_of_the_same_user_joins_too() {
    let peer = Peer::opened_modern(Setup::proxied());
    let job = peer.park("go").await;
    assert_joined(&peer, &peer.park("go").await, &job);
}

/// A script that waits for `go` and then ends with this raw result or error.
fn script(end: &str, raw: &str) -> Value {
    json!({"steps": [{"wait_file": "go"}, {end: raw}]})
}

#[tokio::test]
async fn s7_a_joined_call_that_waits_gets_the_servers_own_result() {
    let peer = Peer::open(&[]).await;
    let raw =
        r#"{"content":[ {"n":1.10}],"x":1e400,"isError":true,"_meta":{"k":9007199254740993}}"#;
    peer.defer("script", script("result", raw)).await;
    let joined = peer.start("script", script("result", raw)).await;
    peer.settle().await;
    assert!(peer.answers(&joined).is_empty(), "it waits through its own budget");
    peer.create("go");
    let answer = peer.answer(&joined).await;
    for key in ["content", "x", "isError"] {
        assert_eq!(path(answer.raw_result(), &[key]), support::json::member(raw, key));
    }
    assert_eq!(path(answer.raw_result(), &["_meta", "k"]), Some("9007199254740993"));
    assert_eq!(peer.calls_of("script").len(), 1);
}

#[tokio::test]
async fn s7_a_joined_call_gets_the_servers_error() {
    let peer = Peer::open(&[]).await;
    let args = script("error", r#"{"code":-7,"message":"no luck","data":[1.10]}"#);
    peer.defer("script", args.clone()).await;
    let joined = peer.start("script", args).await;
    peer.create("go");
    let answer = peer.answer(&joined).await;
    assert!(answer.is_error());
    assert!(["-7", "no luck", "1.10"].iter().all(|part| answer.text().contains(part)));
    assert_eq!(peer.calls_of("script").len(), 1);
}

#[tokio::test]
async fn s7_a_cancel_of_a_joined_call_ends_its_wait_only() {
    let peer = Peer::open(&[]).await;
    let job = peer.park("go").await;
    let joined = peer.start("wait_file", until("go")).await;
    peer.cancel(&joined, "the user").await;
    peer.settle().await;
    assert_eq!(peer.look(job.job_id()).await.status(), "working");
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
    assert!(peer.answers(&joined).is_empty());
    assert!(peer.received("notifications/cancelled").is_empty());
}

// Calls whose job has ended.

/// A job that has ended and whose result nobody has fetched.
async fn ended(config: &str) -> (Peer, Answer) {
    let peer = Peer::open_with(config).await;
    let job = peer.park("go").await;
    peer.create("go");
    peer.listed_as(job.job_id(), "completed").await;
    (peer, job)
}

/// Calls once more what `ended` has called; how often the server has got it then.
async fn again(peer: &Peer) -> usize {
    assert_eq!(peer.call("wait_file", until("go")).await.text(), "go");
    peer.calls_of("wait_file").len()
}

#[tokio::test]
async fn s7_an_unfetched_result_is_given_to_an_equal_call() {
    let (peer, job) = ended("").await;
    let answer = peer.call("wait_file", until("go")).await;
    assert_eq!((answer.text(), answer.job_id()), ("go", job.job_id()));
    assert_eq!(answer.status(), "completed");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
    assert_eq!(again(&peer).await, 2, "it is fetched now");
}

#[tokio::test]
async fn s7_a_fetched_result_is_not_given_to_an_equal_call() {
    let (peer, job) = ended("").await;
    assert_eq!(peer.finish(job).await.text(), "go");
    assert_eq!(again(&peer).await, 2);
}

#[tokio::test]
async fn s7_a_result_older_than_the_window_is_not_given_to_an_equal_call() {
    let (peer, _) = ended("[defaults]\njoin_window = \"1ms\"").await;
    assert_eq!(again(&peer).await, 2);
}

#[tokio::test]
async fn s7_a_cancelled_job_is_not_joined() {
    let peer = Peer::open(&[]).await;
    let job = peer.park("go").await;
    peer.call("job_cancel", json!({"job_id": job.job_id()})).await;
    peer.create("go");
    assert_eq!(again(&peer).await, 2);
}

#[tokio::test]
async fn s7_a_job_lost_with_the_server_is_not_run_again_behind_the_callers_back() {
    let peer = Peer::open(&[]).await;
    let args = json!({"steps": [{"wait_file": "go"}, {"exit": 3}]});
    let job = peer.defer("script", args.clone()).await;
    peer.create("go");
    peer.listed_as(job.job_id(), "failed").await;
    let answer = peer.call("script", args).await;
    assert!(answer.is_error() && answer.text().contains("utcome unknown"), "{}", answer.raw);
    assert_eq!(peer.calls_of("script").len(), 1);
}

// Several equal jobs.

/// Two equal calls that both ran and became jobs, in the order of their start.
async fn two_equal(config: &str) -> (Peer, [Answer; 2]) {
    let peer = Peer::open_with(config).await;
    let mut params = call_params("wait_file", until("go"));
    params["_meta"] = json!({"unhurry/answer_within": 0.5});
    let ids = [
        peer.request("tools/call", params.clone()).await,
        peer.request("tools/call", params).await,
    ];
    let jobs = [peer.answer(&ids[0]).await, peer.answer(&ids[1]).await];
    assert_ne!(jobs[0].job_id(), jobs[1].job_id());
    (peer, jobs)
}

/// Lets the server answer the later one of two equal calls, while the other still runs.
async fn end_the_later(peer: &Peer, job: &Answer) {
    let id = job.raw_id();
    let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
    peer.script(json!([{"send": result}, {"result": r#"{"content":[]}"#}])).await;
    peer.listed_as(job.job_id(), "completed").await;
}

/// Panics unless an equal call joins the earlier one.
async fn assert_joins(peer: &Peer, earlier: &Answer) {
    let third = peer.park("go").await;
    assert_eq!(third.handle()["joined"], json!(true), "{}", third.raw);
    assert_eq!(third.job_id(), earlier.job_id());
    assert_eq!(peer.calls_of("wait_file").len(), 2, "no third run");
    peer.create("go");
    assert_eq!(peer.finish(third).await.text(), "go");
}

#[tokio::test]
async fn k37_a_call_joins_the_one_that_runs_after_a_later_equal_one_was_cancelled() {
    let (peer, [earlier, later]) = two_equal("").await;
    peer.job_cancel(later.job_id()).await;
    assert_joins(&peer, &earlier).await;
}

#[tokio::test]
async fn k37_a_call_joins_the_one_that_runs_after_a_later_equal_one_was_read() {
    let (peer, [earlier, later]) = two_equal("").await;
    end_the_later(&peer, &later).await;
    assert_eq!(peer.look(later.job_id()).await.status(), "completed");
    assert_joins(&peer, &earlier).await;
}

#[tokio::test]
async fn k37_a_call_joins_the_one_that_runs_after_a_later_equal_one_has_expired() {
    let (peer, [earlier, later]) = two_equal("[defaults]\nresult_ttl = \"50ms\"").await;
    end_the_later(&peer, &later).await;
    peer.listed_as(later.job_id(), "expired").await;
    assert_joins(&peer, &earlier).await;
}

#[tokio::test]
async fn k37_one_that_runs_is_joined_before_a_later_one_that_has_ended() {
    let (peer, [earlier, later]) = two_equal("").await;
    end_the_later(&peer, &later).await;
    assert_joins(&peer, &earlier).await;
}

#[tokio::test]
async fn k37_of_two_that_ended_the_one_that_nobody_has_read_is_joined() {
    let (peer, [earlier, later]) = two_equal("").await;
    peer.create("go");
    peer.listed_as(later.job_id(), "completed").await;
    peer.listed_as(earlier.job_id(), "completed").await;
    assert_eq!(peer.finish(later).await.text(), "go");
    let third = peer.call("wait_file", until("go")).await;
    assert_eq!(third.job_id(), earlier.job_id());
    assert_eq!(peer.calls_of("wait_file").len(), 2);
}

#[tokio::test]
async fn k37_a_job_that_waited_in_line_in_vain_is_not_joined() {
    let config = "[tools.wait_file]\nmax_concurrent = 1\nmax_runtime = \"1s\"\n";
    let peer = Peer::open_with(config).await;
    // A task of the server is never deferred, and so has no `max_runtime`.
    let mut task = call_params("wait_file", until("first"));
    task["task"] = json!({});
    let first = peer.request("tools/call", task).await;
    let waited = peer.park("go").await;
    peer.listed_as(waited.job_id(), "failed").await;
    peer.create("first");
    peer.create("go");
    assert_eq!(peer.answer(&first).await.text(), "first");
    assert_eq!(again(&peer).await, 2, "it runs for the first time");
}

#[tokio::test]
async fn k37_a_job_whose_server_could_not_be_started_is_not_joined() {
    let exits_once = r#"[ -e broken ] && exit 9; exec "$@""#;
    let config = "[defaults]\nanswer_within = \"300ms\"\n[tools.wait_file]\nmax_concurrent = 1\n";
    let peer = Peer::opened(Setup::proxied().config(config).server_through(exits_once)).await;
    let first = peer.job("never").await;
    let waits = peer.park("go").await;
    peer.create("broken");
    // The server ends, so the next in line gets its turn and starts it anew: in vain.
    peer.call("exit", json!({"code": 3})).await;
    peer.listed_as(waits.job_id(), "failed").await;
    assert_eq!(peer.look(first.job_id()).await.status(), "failed");
    std::fs::remove_file(peer.path("broken")).expect("it was there");
    peer.create("go");
    let again = async || {
        let answer = peer.call("wait_file", until("go")).await;
        assert_ne!(answer.job()["job_id"], waits.job_id(), "{}", answer.raw);
        (answer.text() == "go").then_some(())
    };
    // Until then the server is left alone for a moment, as after any crash.
    assert!(support::eventually(again).await.is_some(), "it runs");
    assert!(peer.look(waits.job_id()).await.text().contains("was not started"));
}

// What is equal.

/// Sends this raw text of arguments while a call with those of `ARGS` is in the background, and
/// waits for its handle or its result; how often the server has got a call then.
async fn calls_with(tool: &str, arguments: &str, meta: &str) -> usize {
    const ARGS: &str = r#"{"path":"go","a":[1,{"x":"ä","y":null}],"n":1}"#;
    let peer = Peer::open(&[]).await;
    let meta = format!(r#"{{"unhurry/answer_within":0{meta}}}"#);
    let mut id = "\"first\"";
    for (tool, arguments) in [("wait_file", ARGS), (tool, arguments)] {
        peer.send_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#
        ))
        .await;
        peer.answer(id).await;
        id = "\"second\"";
    }
    peer.received("tools/call").len()
}

#[tokio::test]
async fn s7_key_order_white_space_and_escapes_do_not_matter() {
    let other = r#"{ "n" : 1, "a":[1 ,{"y":null,"\u0078":"\u00e4"}], "path":"go" }"#;
    assert_eq!(calls_with("wait_file", other, r#","progressToken":"t","other":1"#).await, 1);
}

#[tokio::test]
async fn s7_numbers_are_compared_as_text() {
    let other = r#"{"path":"go","a":[1,{"x":"ä","y":null}],"n":1.0}"#;
    assert_eq!(calls_with("wait_file", other, "").await, 2);
}

#[tokio::test]
async fn s7_other_arguments_and_other_tools_run() {
    let others = [
        r#"{"path":"go","a":[{"x":"ä","y":null},1],"n":1}"#,
        r#"{"path":"go","a":[1,{"x":"ä"}],"n":1}"#,
        r#"{"path":"go","a":[1,{"x":"ä","y":null}],"n":"1"}"#,
    ];
    for other in others {
        assert_eq!(calls_with("wait_file", other, "").await, 2, "{other}");
    }
    let same = r#"{"path":"go","a":[1,{"x":"ä","y":null}],"n":1}"#;
    assert_eq!(calls_with("echo", same, "").await, 2);
}

#[tokio::test]
async fn s7_a_call_that_asks_for_more_than_arguments_is_not_joined() {
    let peer = Peer::open(&[]).await;
    peer.park("go").await;
    let mut params = call_params("wait_file", until("go"));
    params["requestState"] = json!("mine");
    let id = peer.request("tools/call", params).await;
    peer.arrived("wait_file", 2).await;
    peer.create("go");
    assert_eq!(peer.answer(&id).await.text(), "go");
}

#[tokio::test]
async fn s7_equal_calls_within_their_budgets_both_run() {
    let peer = Peer::open(&[]).await;
    let ids =
        [peer.start("wait_file", until("go")).await, peer.start("wait_file", until("go")).await];
    peer.arrived("wait_file", 2).await;
    peer.create("go");
    for id in &ids {
        let answer = peer.answer(id).await;
        assert!(answer.text() == "go" && answer.job().is_null());
    }
    assert!(peer.jobs().await.is_empty());
}

#[tokio::test]
async fn s7_run_turns_it_off_per_tool() {
    let peer = Peer::open_with("[tools.wait_file]\nduplicates = \"run\"").await;
    let (first, second) = (peer.park("go").await, peer.park("go").await);
    assert_ne!(first.job_id(), second.job_id());
    assert!(second.handle()["joined"].is_null());
    assert_eq!(peer.calls_of("wait_file").len(), 2);
    let slow = json!({"ms": 60_000});
    let job = peer.defer("sleep", slow.clone()).await;
    assert_eq!(peer.defer("sleep", slow).await.job_id(), job.job_id(), "other tools join");
}

#[tokio::test]
async fn c04_a_tool_that_is_never_deferred_is_joined_too_and_waits_for_the_result() {
    let peer = Peer::open_with("[tools.wait_file]\nanswer_within = \"never\"").await;
    let first = peer.start("wait_file", until("go")).await;
    peer.cancel(&first, "request timed out").await;
    let second = peer.start("wait_file", until("go")).await;
    peer.settle().await;
    peer.create("go");
    assert_eq!(peer.answer(&second).await.text(), "go");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
}

#[tokio::test]
async fn s7_a_joined_call_may_have_a_budget_without_end() {
    let peer = Peer::open(&[]).await;
    for (file, budget) in [("a", json!(1e19)), ("b", json!(1e300)), ("c", json!(u64::MAX))] {
        peer.park(file).await;
        let mut params = call_params("wait_file", until(file));
        params["_meta"] = json!({"unhurry/answer_within": budget});
        let joined = peer.request("tools/call", params).await;
        peer.settle().await;
        peer.create(file);
        assert_eq!(peer.answer(&joined).await.text(), file);
    }
    assert_eq!(peer.calls_of("wait_file").len(), 3);
}
