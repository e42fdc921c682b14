//! `job_get` (contract §5.1).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Line, Peer, SOON, Setup, assert_text_says_all};

/// Calls are handed out at once, and polls may wait for long.
async fn patient() -> Peer {
    let toml = "[defaults]\nanswer_within = \"15s\"\n[tools.\"*\"]\nanswer_within = \"0s\"\n";
    Peer::open_with(toml).await
}

/// Sends a `job_get` of a job; its raw id.
async fn poll(peer: &Peer, job: &str) -> String {
    peer.start("job_get", json!({"job_id": job})).await
}

/// The end of a call, as `job_get` tells it.
async fn end_of(peer: &Peer, tool: &str, args: Value) -> Answer {
    let handle = peer.slow_call(tool, args).await;
    peer.finish(handle).await
}

#[tokio::test]
async fn c90_job_get_and_job_cancel_say_what_they_do() {
    let peer = Peer::open(&[]).await;
    let hints = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    let cancels = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false});
    for (name, hints) in [("job_get", hints), ("job_cancel", cancels)] {
        let tool = peer.listed(name).await;
        for (hint, value) in hints.as_object().unwrap() {
            assert_eq!(tool["annotations"][hint], *value, "{name}: {hint}");
        }
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20));
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
    let arguments = peer.listed("job_get").await["inputSchema"]["properties"].clone();
    let names: Vec<_> = arguments.as_object().expect("properties").keys().collect();
    assert_eq!(names, ["envelope", "job_id", "page", "seq", "wait_seconds"]);
}

// Running.

#[tokio::test]
async fn s5_1_a_poll_waits_and_returns_at_once_on_the_end() {
    let peer = patient().await;
    let handle = peer.job("go").await;
    let polls = [poll(&peer, handle.job_id()).await, poll(&peer, handle.job_id()).await];
    peer.settle().await;
    assert!(polls.iter().all(|poll| peer.answers(poll).is_empty()));
    let start = Instant::now();
    peer.create("go");
    for poll in &polls {
        assert_eq!(peer.answer(poll).await.text(), "go is open");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn s5_1_a_poll_returns_at_once_on_a_cancel() {
    let peer = patient().await;
    let handle = peer.job("never").await;
    let poll = poll(&peer, handle.job_id()).await;
    peer.settle().await;
    peer.job_cancel(handle.job_id()).await;
    assert_eq!(peer.answer(&poll).await.status(), "cancelled");
}

#[tokio::test]
async fn s5_1_a_job_that_still_runs_is_told_by_a_new_handle() {
    let peer = Peer::open(&["--answer-within", "1s"]).await;
    let handle = peer.job("never").await;
    let mut last = handle.handle();
    for seq in 2..4 {
        let start = Instant::now();
        let answer = peer.look(handle.job_id()).await;
        assert!(seq == 2 || start.elapsed() >= Duration::from_millis(900), "spread to 1 s");
        let next = answer.handle();
        assert_eq!(next["next_action"]["args"], json!({"job_id": handle.job_id(), "seq": seq}));
        assert!(next["elapsed_seconds"].as_u64() >= last["elapsed_seconds"].as_u64());
        last = next;
    }
    assert!(last["elapsed_seconds"].as_u64() >= Some(2), "1 s of budget, 1 s of spread: {last}");
}

#[tokio::test]
async fn s5_1_two_polls_of_an_unfinished_job_are_spread_to_a_second() {
    let peer = patient().await;
    let handle = peer.job("go").await;
    peer.look(handle.job_id()).await;
    let start = Instant::now();
    assert!(peer.look(handle.job_id()).await.is_handle());
    let took = start.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_secs(8)).contains(&took), "{took:?}");
    peer.create("go");
    peer.finish(peer.look(handle.job_id()).await).await;
    let start = Instant::now();
    for _ in 0..5 {
        peer.look(handle.job_id()).await;
    }
    assert!(start.elapsed() < Duration::from_secs(4), "a finished job is answered at once");
}

#[tokio::test]
async fn s5_1_a_cancel_ends_the_wait_and_never_the_job() {
    let peer = patient().await;
    let handle = peer.job("go").await;
    let waiting = poll(&peer, handle.job_id()).await;
    peer.settle().await;
    peer.cancel(&waiting, "user pressed stop").await;
    let second = poll(&peer, handle.job_id()).await;
    peer.create("go");
    assert_eq!(peer.answer(&second).await.text(), "go is open");
    peer.settle().await;
    assert_eq!((peer.answers(&waiting).len(), peer.told("notifications/cancelled")), (0, 0));
}

#[tokio::test]
async fn s5_1_a_wait_sends_progress_every_ten_seconds() {
    let peer = patient().await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1,"message":"linking"}}"#;
    let steps = json!([{"send": note}, {"wait_file": peer.path("never")}]);
    let meta = json!({"progressToken": "first"});
    let handle = peer.call_with_meta("script", json!({"steps": steps}), meta).await;
    let start = Instant::now();
    let params = json!({"name": "job_get", "arguments": {"job_id": handle.job_id()}, "_meta": {"progressToken": 7}});
    peer.request("tools/call", params).await;
    let is_ours = |line: &Line| line.json()["params"]["progressToken"] == 7;
    let beat = peer.wait_line(is_ours).await;
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    let params = &beat.json()["params"];
    assert_eq!(beat.method().as_deref(), Some("notifications/progress"));
    assert!((9..=12).contains(&params["progress"].as_u64().expect("whole seconds")), "{params}");
    assert!(params.get("total").is_none(), "{params}");
    assert_eq!(params["message"], "linking", "the job's own");
}

#[tokio::test]
async fn c67_polls_back_to_back_are_each_held() {
    let peer = Peer::open(&["--answer-within", "800ms"]).await;
    let mut answer = peer.job("never").await;
    let start = Instant::now();
    for _ in 0..5 {
        answer = peer.job_get(json!({"job_id": answer.job_id()})).await;
        assert!(answer.is_handle());
    }
    assert!(start.elapsed() >= Duration::from_secs(4), "{:?}", start.elapsed());
}

#[tokio::test]
async fn c70_odd_waits_are_clamped_to_the_budget() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("never").await;
    for wait in
        [json!(600), json!(-1), json!("30"), json!(1e9), json!(null), json!(" 0.1 "), json!(1e300)]
    {
        let start = Instant::now();
        let args = json!({"job_id": handle.job_id(), "wait_seconds": wait});
        assert!(peer.job_get(args).await.is_handle(), "{wait}");
        assert!(start.elapsed() < Duration::from_secs(5), "{wait}: {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn c84_next_action_followed_twelve_times_is_never_the_same_call_nor_answer() {
    let peer = Peer::open(&SOON).await;
    let mut answer = peer.job("go").await;
    let (mut calls, mut texts) = (vec![], vec![]);
    for _ in 0..12 {
        let action = answer.next_action().expect("a next action");
        assert!(!calls.contains(&action.args), "{}", action.args);
        calls.push(action.args);
        answer = peer.follow(&answer).await;
        assert!(!texts.contains(&answer.text().to_owned()), "{}", answer.text());
        texts.push(answer.text().to_owned());
    }
    let old = peer.job_get(calls[0].clone()).await;
    assert!(old.is_handle(), "an old seq is accepted");
    peer.create("go");
    peer.finish(old).await;
    assert_eq!(peer.job_get(calls[3].clone()).await.text(), "go is open");
}

// Finished.

#[tokio::test]
async fn s5_1_a_json_rpc_error_is_a_result_with_code_message_and_data() {
    let peer = Peer::open(&SOON).await;
    let args = json!({"ms": 600, "code": -32050, "message": "no disk", "data": {"free": 0}});
    let end = end_of(&peer, "rpc_error", args).await;
    assert!(end.is_error() && !end.is_rpc_error(), "{}", end.raw);
    let text: Value = serde_json::from_str(end.text()).expect("JSON");
    assert_eq!(text["error"], json!({"code": -32050, "message": "no disk", "data": {"free": 0}}));
    assert_text_says_all(&end);
    assert_eq!((end.status(), &end.structured()["done"]), ("failed", &json!(true)));
    assert_eq!(peer.look(end.job_id()).await.raw_result(), end.raw_result(), "again");
}

#[tokio::test]
async fn s5_1_the_error_32042_is_replayed_as_itself() {
    let peer = Peer::open(&SOON).await;
    let error = r#"{"code":-32042,"message":"open","data":{"elicitations":[{"url":"x:\u0079"}]}}"#;
    let handle = peer.call("raw", json!({"error": error, "ms": 600})).await;
    peer.newest_becomes("failed").await;
    for _ in 0..2 {
        assert_eq!(peer.look(handle.job_id()).await.raw_error(), error);
    }
}

#[tokio::test]
async fn s5_1_a_failure_says_whether_the_tool_is_safe_to_repeat() {
    let tool = |name: &str, hints: Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints});
    let tools = json!([
        tool("rpc_error", json!({"readOnlyHint": false})),
        tool("script", json!({"idempotentHint": true})),
    ]);
    let setup = Setup::proxied().options(&SOON).tools(&tools.to_string());
    let peer = Peer::opened(setup).await;
    let unsafe_end = end_of(&peer, "rpc_error", json!({"ms": 600})).await;
    assert!(unsafe_end.message().contains("does not mark this tool as safe to repeat"));
    let steps = json!([{"sleep": 600}, {"error": r#"{"code":1,"message":"m"}"#}]);
    let safe_end = end_of(&peer, "script", json!({"steps": steps})).await;
    assert!(safe_end.message().contains("marks this tool as safe to repeat"));
}

// Envelope.

#[tokio::test]
async fn s5_1_an_envelope_has_one_shape_in_every_state() {
    let peer = Peer::open(&SOON).await;
    let raw = r#"{"content":[],"x":9007199254740993}"#;
    let completed = end_of(&peer, "raw", json!({"ms": 600, "result": raw})).await;
    let failed = end_of(&peer, "rpc_error", json!({"ms": 600, "code": -5, "message": "m"})).await;
    let wrong = end_of(&peer, "fail", json!({"ms": 600, "text": "wrong"})).await;
    let running = peer.job("never").await;
    let envelope = async |job: &Answer| {
        let args = json!({"job_id": job.job_id(), "envelope": true, "wait_seconds": 0});
        let answer = peer.job_get(args).await;
        assert_text_says_all(&answer);
        assert!(!answer.is_error(), "{}", answer.raw);
        let mut body = answer.structured().clone();
        assert_eq!(
            (&body["job_id"], &body["status"]),
            (&json!(job.job_id()), &json!(answer.status()))
        );
        assert!(body["elapsed_seconds"].take().is_u64(), "{}", answer.raw);
        body.as_object_mut().unwrap().remove("job_id");
        (body, answer)
    };
    let shape = |tool: &str, status: &str| json!({"tool": tool, "status": status, "done": status != "working", "elapsed_seconds": null});
    assert_eq!(envelope(&running).await.0, shape("wait_file", "working"));
    let (body, answer) = envelope(&completed).await;
    assert!(answer.raw.contains(&format!(r#""result":{raw}"#)), "{}", answer.raw);
    assert_eq!(body["status"], "completed");
    let mut expected = shape("rpc_error", "failed");
    expected["error"] = json!({"code": -5, "message": "m"});
    assert_eq!(envelope(&failed).await.0, expected);
    let (body, _) = envelope(&wrong).await;
    assert_eq!(body["result"]["isError"], true);
    peer.job_cancel(running.job_id()).await;
    let (body, _) = envelope(&running).await;
    assert_eq!((&body["status"], body["error"].is_object()), (&json!("cancelled"), true));
}

// The list.

#[tokio::test]
async fn c85_s5_1_the_list_shows_the_newest_twenty_first() {
    let peer = Peer::open(&["--answer-within", "0s"]).await;
    let mut ids = Vec::new();
    for number in 0..22 {
        ids.push(
            peer.start("sleep", json!({"ms": 60_000, "n": number, "long": "é".repeat(100)})).await,
        );
    }
    let mut expected = Vec::new();
    for id in &ids {
        expected.insert(0, peer.answer(id).await.job_id().to_owned());
    }
    peer.job_cancel(&expected[0]).await;
    let jobs = peer.jobs().await;
    let listed: Vec<_> = jobs.iter().map(|job| job["job_id"].as_str().unwrap()).collect();
    assert_eq!(listed, expected[..20]);
    let statuses: Vec<_> = jobs.iter().map(|job| job["status"].as_str().unwrap()).collect();
    assert_eq!((statuses[0], statuses[1]), ("cancelled", "working"));
    for job in &jobs {
        let arguments = job["arguments"].as_str().expect("the arguments");
        assert!((100..=120).contains(&arguments.len()), "{arguments}");
        assert!(arguments.starts_with(r#"{"long":"éé"#) && !arguments.contains('\u{fffd}'));
        assert_eq!(job["tool"], "sleep");
        assert!(job["age_seconds"].is_u64(), "{job}");
    }
}

#[tokio::test]
async fn c85_short_arguments_are_listed_whole_and_an_empty_list_says_so() {
    let peer = Peer::open(&SOON).await;
    let empty = peer.job_get(json!({"job_id": null})).await;
    assert!(!empty.is_error() && empty.message().starts_with("No calls"), "{}", empty.raw);
    peer.call("sleep", json!({"ms": 60_000})).await;
    assert_eq!(peer.jobs().await[0]["arguments"], r#"{"ms":60000}"#);
    let without = peer.ask("tools/call", json!({"name": "job_get"})).await;
    assert_eq!(without.structured()["jobs"].as_array().map(Vec::len), Some(1));
}

// Ids that name no job.

#[tokio::test]
async fn c82_s5_1_unknown_foreign_and_malformed_ids_get_the_same_words() {
    let other = Peer::open(&SOON).await;
    let foreign = other.job("never").await.job_id().to_owned();
    let peer = Peer::open(&SOON).await;
    let id = peer.job("never").await.job_id().to_owned();
    let unknown = "3f0c9a56-1111-4222-8333-444455556666";
    let quoted = format!("\"{id}\"");
    let names = [
        json!("nope"),
        json!(""),
        json!(12),
        json!({"x": 1}),
        json!(quoted),
        json!(unknown),
        json!(foreign),
    ];
    for name in names {
        let answer = peer.job_get(json!({"job_id": name})).await;
        assert!(answer.is_error() && !answer.is_rpc_error(), "{}", answer.raw);
        let text = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
        let shown = Value::from(text).to_string();
        assert_eq!(
            answer.message(),
            format!(
                "No job {shown} is known here. Your own calls are listed below; a job of another server is known to that server's job_get."
            )
        );
        assert_eq!(answer.structured()["jobs"][0]["job_id"], id.as_str());
        assert_text_says_all(&answer);
    }
    assert_eq!(peer.look(&id.to_uppercase()).await.job_id(), id, "upper case is fine");
    assert!(peer.calls_of("job_get").is_empty(), "never an upstream call");
}

// Arguments.

#[tokio::test]
async fn s5_1_wrong_arguments_are_explained_in_a_result() {
    let peer = Peer::open(&SOON).await;
    let id = peer.job("never").await.job_id().to_owned();
    for (key, value, words) in [
        ("wait_seconds", json!("soon"), r#"wait_seconds must be a number of seconds, not "soon""#),
        ("wait_seconds", json!([1]), "wait_seconds must be a number of seconds, not [1]"),
        ("wait_seconds", json!(true), "wait_seconds must be a number of seconds, not true"),
        ("page", json!("two"), r#"page must be a whole number from 1, not "two""#),
        ("page", json!(1.5), "page must be a whole number from 1, not 1.5"),
        ("page", json!({}), "page must be a whole number from 1, not {}"),
        ("envelope", json!("yes"), r#"envelope must be true or false, not "yes""#),
        ("envelope", json!(1), "envelope must be true or false, not 1"),
    ] {
        let answer = peer.job_get(json!({"job_id": id, key: value})).await;
        assert!(answer.is_error(), "{}", answer.raw);
        assert_eq!(answer.message(), words);
    }
    for (arguments, words) in [
        (json!([1]), "arguments must be an object, not [1]"),
        (json!("x"), r#"arguments must be an object, not "x""#),
    ] {
        let answer =
            peer.ask("tools/call", json!({"name": "job_get", "arguments": arguments})).await;
        assert_eq!((answer.is_error(), answer.message()), (true, words));
    }
}

#[tokio::test]
async fn s5_1_arguments_that_models_write_as_text_are_taken() {
    let peer = Peer::open(&SOON).await;
    let end = end_of(&peer, "sleep", json!({"ms": 600})).await;
    let args = json!({"job_id": end.job_id(), "page": "1", "envelope": "true", "seq": "x", "wait_seconds": "1", "more": []});
    assert_eq!(peer.job_get(args).await.structured()["status"], "completed");
    let args = json!({"job_id": end.job_id(), "page": null, "envelope": null, "seq": null, "wait_seconds": null});
    assert_eq!(peer.job_get(args).await.text(), "slept");
}
