//! contract §4: a call past its budget is answered with a handle.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Line, Peer, SOON, Setup, assert_text_says_all};

fn seconds(handle: &Answer, key: &str) -> u64 {
    handle.handle()[key].as_u64().unwrap_or_else(|| panic!("no {key}: {}", handle.raw))
}

// §4.1 When.

#[tokio::test]
async fn c86_a_fast_call_is_answered_as_without_the_proxy_and_leaves_no_job() {
    let peer = Peer::open(&[]).await;
    let raw = r#"{"x":1.10, "content":[ ],"y":"\u0041"}"#;
    let answer = peer.call("raw", json!({"result": raw, "ms": 50})).await;
    assert_eq!(
        answer.raw,
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{raw}}}"#, answer.raw_id())
    );
    assert_eq!(peer.jobs().await, [] as [Value; 0]);
}

#[tokio::test]
async fn s4_1_the_handle_comes_at_the_end_of_the_budget() {
    let peer = Peer::open(&["--answer-within", "700ms"]).await;
    let start = Instant::now();
    peer.job("never").await;
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(700) && took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn s4_1_every_end_before_the_budget_is_forwarded_as_it_is() {
    let peer = Peer::open(&["--answer-within", "10s"]).await;
    let failed = peer.call("fail", json!({"ms": 100, "text": "no"})).await;
    assert!(failed.is_error() && failed.job().is_null(), "{}", failed.raw);
    let error = peer.call("rpc_error", json!({"ms": 100, "code": -7, "message": "no"})).await;
    assert_eq!(error.raw_error(), r#"{"code":-7,"message":"no"}"#);
}

#[tokio::test]
async fn s4_1_zero_lets_an_instant_refusal_through_and_waits_250_ms() {
    let peer = Peer::open(&["--answer-within", "0s"]).await;
    assert_eq!(peer.call("rpc_error", json!({"code": -32602})).await.error_code(), -32602);
    assert!(peer.call("fail", json!({})).await.job().is_null());
    let start = Instant::now();
    peer.job("never").await;
    assert!(start.elapsed() >= Duration::from_millis(250), "{:?}", start.elapsed());
}

#[tokio::test]
async fn s4_1_the_callers_own_budget_holds_and_is_not_forwarded() {
    let peer = Peer::open(&["--answer-within", "15s"]).await;
    for wish in [json!(0.3), json!(0)] {
        let meta = json!({"a": 1, "unhurry/answer_within": wish});
        let handle = peer.call_with_meta("wait_file", peer.gate("never"), meta).await;
        assert!(handle.is_handle(), "{}", handle.raw);
        peer.job_cancel(handle.job_id()).await;
    }
    let sent = peer.calls_of("wait_file");
    assert_eq!(sent.len(), 2);
    for entry in sent {
        let params: Value = serde_json::from_str(entry.raw_params().expect("params")).unwrap();
        assert_eq!(params["_meta"], json!({"a": 1}));
    }
}

#[tokio::test]
async fn s4_1_the_callers_own_budget_may_be_longer() {
    let peer = Peer::open(&SOON).await;
    let meta = json!({"unhurry/answer_within": 15});
    let answer = peer.call_with_meta("sleep", json!({"ms": 800, "text": "done"}), meta).await;
    assert_eq!(answer.text(), "done");
}

// §4.2 Shape.

#[tokio::test]
async fn s4_1_the_callers_own_budget_may_be_without_end() {
    let peer = Peer::open(&[]).await;
    for budget in [json!(1e19), json!(1e300), json!(u64::MAX)] {
        let meta = json!({"unhurry/answer_within": budget});
        let answer = peer.call_with_meta("sleep", json!({"ms": 300}), meta).await;
        assert_eq!((answer.text(), answer.job().is_null()), ("slept", true));
    }
}

#[tokio::test]
async fn c11_s4_2_shape_of_the_handle() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("never").await;
    let id = handle.job_id();
    let mut body = handle.structured().clone();
    let (message, elapsed) = (body["message"].take(), body["elapsed_seconds"].take());
    let expected = json!({
        "message": null, "job_id": id, "tool": "wait_file", "status": "working", "done": false,
        "elapsed_seconds": null, "poll_after_seconds": 2,
        "next_action": {
            "tool": "job_get", "args": {"job_id": id, "seq": 1}, "check_after_seconds": 2,
            "status_path": "_meta.unhurry/job.status",
            "terminal_statuses": ["cancelled", "completed", "expired", "failed"],
        },
    });
    assert_eq!(body, expected);
    let message = message.as_str().expect("a message");
    assert!(message.starts_with("STILL RUNNING after "), "{message}");
    assert!(message.contains(" s: not finished, not failed. "), "{message}");
    assert!(elapsed.as_u64().is_some_and(|seconds| seconds < 2), "{elapsed}");
    assert!(message.contains("call job_get with the arguments in next_action"), "{message}");
    let about = json!({"job_id": id, "status": "working", "done": false});
    assert_eq!(handle.result()["_meta"], json!({"unhurry/job": about}));
    let members: Vec<_> = handle.result().as_object().expect("an object").keys().collect();
    assert_eq!(members, ["_meta", "content", "structuredContent"], "no isError, no resultType");
}

#[tokio::test]
async fn c12_each_running_answer_says_not_to_call_the_tool_again() {
    let peer = Peer::open(&SOON).await;
    let mut answer = peer.job("never").await;
    for _ in 0..3 {
        let message = answer.handle()["message"].clone();
        assert!(message.as_str().unwrap().contains("Do not call wait_file again"), "{message}");
        answer = peer.follow(&answer).await;
    }
}

#[tokio::test]
async fn c14_s4_2_structured_content_always_equals_the_first_text() {
    let peer = Peer::open(&SOON).await;
    let first = peer.job("never").await;
    let second = peer.call("rpc_error", json!({"ms": 600})).await;
    let structured = peer.call("structured", json!({"ms": 600})).await;
    let ended = peer.finish(second.clone()).await;
    let unchanged = peer.finish(structured).await;
    let polled = peer.look(first.job_id()).await;
    let envelope = peer.job_get(json!({"job_id": second.job_id(), "envelope": true})).await;
    let cancelled = peer.job_cancel(first.job_id()).await;
    let after = peer.look(first.job_id()).await;
    let list = peer.job_get(json!({})).await;
    let [unknown, junk] = [json!({"job_id": "x"}), json!({"page": "x"})];
    let [unknown, junk] = [peer.job_get(unknown).await, peer.job_get(junk).await];
    for answer in
        [first, second, ended, unchanged, polled, envelope, cancelled, after, list, unknown, junk]
    {
        assert!(answer.structured().is_object(), "{}", answer.raw);
        assert_text_says_all(&answer);
    }
}

#[tokio::test]
async fn s4_2_the_status_is_on_every_answer_about_a_job() {
    let peer = Peer::open(&SOON).await;
    let (done, failed, lost) = (
        peer.call("sleep", json!({"ms": 600})).await,
        peer.call("fail", json!({"ms": 600})).await,
        peer.call("rpc_error", json!({"ms": 600})).await,
    );
    let stopped = peer.job("never").await;
    assert_eq!(peer.finish(done).await.status(), "completed");
    assert_eq!(peer.finish(failed).await.status(), "failed");
    assert_eq!(peer.finish(lost).await.status(), "failed");
    assert_eq!(peer.look(stopped.job_id()).await.status(), "working");
    assert_eq!(peer.job_cancel(stopped.job_id()).await.status(), "cancelled");
    let end = peer.look(stopped.job_id()).await;
    assert_eq!((end.status(), &end.job()["done"]), ("cancelled", &json!(true)));
    let envelope = peer.job_get(json!({"job_id": stopped.job_id(), "envelope": true})).await;
    assert_eq!(
        (envelope.status(), &envelope.structured()["status"]),
        ("cancelled", &json!("cancelled"))
    );
}

#[tokio::test]
async fn s4_2_an_eta_needs_three_past_runs() {
    let peer = Peer::open(&SOON).await;
    let start = async |run| peer.call("sleep", json!({"ms": 2500, "run": run})).await;
    let handles = [start(1).await, start(2).await, start(3).await];
    for handle in handles {
        assert!(handle.handle().get("eta_seconds").is_none(), "{}", handle.raw);
        peer.finish(handle).await;
    }
    let handle = start(4).await;
    assert!((2..=10).contains(&seconds(&handle, "eta_seconds")), "{}", handle.raw);
}

#[tokio::test]
async fn s4_2_an_eta_comes_from_expected_and_says_when_to_look() {
    let config = |expected: &str| {
        format!(
            "[defaults]\nanswer_within = \"300ms\"\n[tools.wait_file]\nexpected = \"{expected}\"\n"
        )
    };
    let peer = Peer::open_with(&config("40s")).await;
    let handle = peer.job("never").await;
    let eta = seconds(&handle, "eta_seconds");
    assert!((30..=40).contains(&eta), "{}", handle.raw);
    assert_eq!(seconds(&handle, "poll_after_seconds"), eta);
    assert_eq!(handle.handle()["next_action"]["check_after_seconds"], eta);
    let peer = Peer::open_with(&config("10m")).await;
    assert_eq!(seconds(&peer.job("never").await, "poll_after_seconds"), 60, "at most");
}

#[tokio::test]
async fn s4_2_progress_is_there_when_the_server_sent_some() {
    let peer = Peer::open(&SOON).await;
    let args = json!({"steps": [
        {"send": r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1.50,"total":4,"message":"linking","x":0}}"#},
        {"wait_file": peer.path("never")},
    ]});
    let handle = peer.call_with_meta("script", args, json!({"progressToken": "t"})).await;
    assert_eq!(
        handle.handle()["progress"],
        json!({"progress": 1.5, "total": 4, "message": "linking"})
    );
    assert!(handle.raw.contains(r#""progress":1.50"#), "as the server wrote it: {}", handle.raw);
}

#[tokio::test]
async fn s1_1_4_progress_that_only_the_proxy_asked_for_goes_into_the_job() {
    let peer = Peer::open_with(
        "[tools.progress]\nask_progress = true\nanswer_within = \"400ms\"\nduplicates = \"run\"\n",
    )
    .await;
    let handle = peer.call("progress", json!({"ms": 60_000, "steps": 600})).await;
    assert!(handle.handle()["progress"]["progress"].as_u64().is_some_and(|step| step > 0));
    assert_eq!(peer.notifications(), []);
    let plain = peer.call("sleep", json!({"ms": 1})).await;
    assert_eq!(plain.text(), "slept");
    let asked = peer.calls_of("progress")[0].raw_params().unwrap().contains("progressToken");
    let not_asked = peer.calls_of("sleep")[0].raw_params().unwrap().contains("progressToken");
    assert_eq!((asked, not_asked), (true, false));
}

// §4.3 After the handle.

#[tokio::test]
async fn s4_3_nothing_more_is_sent_for_the_request_or_its_token() {
    let peer = Peer::open(&SOON).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1,"message":"late"}}"#;
    let steps = json!([{"wait_file": peer.path("go")}, {"send": note},
        {"wait_file": peer.path("end")}, {"result": r#"{"content":[]}"#}]);
    let meta = json!({"progressToken": "mine"});
    let handle = peer.call_with_meta("script", json!({"steps": steps}), meta).await;
    let (mark, id) = (peer.mark(), handle.raw_id().to_owned());
    peer.create("go");
    let mut polled = peer.follow(&handle).await;
    while polled.handle()["progress"]["message"] != "late" {
        polled = peer.follow(&polled).await;
    }
    peer.create("end");
    assert_eq!(peer.finish(polled).await.status(), "completed");
    peer.settle().await;
    assert_eq!(peer.answers(&id).len(), 1);
    assert!(!peer.lines()[mark..].iter().any(Line::is_notification));
}

#[tokio::test]
async fn s4_3_a_late_cancel_is_ignored_and_not_forwarded() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("go").await;
    peer.cancel(handle.raw_id(), "user pressed stop").await;
    peer.settle().await;
    assert_eq!(peer.told("notifications/cancelled"), 0);
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go is open");
}

#[tokio::test]
async fn s4_3_the_id_and_the_token_are_free_again() {
    let peer = Peer::open(&SOON).await;
    let params = |text: &str| {
        json!({"name": "progress", "arguments": {"ms": 900, "steps": 3, "x": text},
            "_meta": {"progressToken": "t"}})
    };
    peer.request_as("7", "tools/call", params("first")).await;
    let handle = peer.answer("7").await;
    let mark = peer.mark();
    let params =
        json!({"name": "echo", "arguments": {"text": "second"}, "_meta": {"progressToken": "t"}});
    peer.request_as("7", "tools/call", params).await;
    assert_eq!(peer.answer_from(mark, "7").await.text(), "second");
    assert_eq!(peer.finish(handle).await.text(), "3 steps");
    assert_eq!(peer.answers("7").len(), 2);
}

// §4.4 Ids.

#[tokio::test]
async fn s4_4_a_prefix_of_eight_in_any_case_is_enough() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("never").await;
    let id = handle.job_id();
    let parsed = uuid::Uuid::parse_str(id).expect("a UUID");
    assert_eq!((parsed.get_version_num(), parsed.to_string()), (4, id.to_owned()));
    for name in [&id[..8], &id[..9], &id[..23], &id.to_uppercase(), &id[..12].to_uppercase()] {
        assert_eq!(peer.look(name).await.job_id(), id, "{name}");
    }
    for name in [&id[..7], &format!("{id}0"), &id.replace('-', "")[..20]] {
        assert!(peer.look(name).await.is_error(), "{name}");
    }
}

// §4.5 outputSchema.

#[tokio::test]
async fn c13_s4_5_the_output_schema_is_hidden_where_a_handle_may_come() {
    let peer = Peer::open(&[]).await;
    let tool = peer.listed("structured").await;
    assert!(tool.get("outputSchema").is_none(), "{tool}");
    assert_eq!(tool["_meta"]["unhurry/outputSchema"]["required"], json!(["answer", "unit"]));
    assert!(peer.listed("job_get").await.get("outputSchema").is_none());
}

#[tokio::test]
async fn c13_s4_5_the_output_schema_stays_where_no_handle_comes() {
    let toml = "[tools.structured]\nanswer_within = \"never\"\n";
    let setup = Setup::proxied().config(toml);
    let peer = Peer::opened(setup.options(&SOON)).await;
    let tool = peer.listed("structured").await;
    assert_eq!(tool["outputSchema"]["required"], json!(["answer", "unit"]));
    assert!(tool["_meta"].get("unhurry/outputSchema").is_none(), "{tool}");
    let answer = peer.call("structured", json!({"ms": 900})).await;
    assert_eq!((answer.structured()["answer"].as_u64(), answer.job()), (Some(42), &Value::Null));
}
