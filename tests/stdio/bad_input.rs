//! Whatever server, client, model or user send that makes no sense (contract §2, §3, §5.1, §9): an error
//! that says what is wrong, and once the session stands, no end of it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Line, Peer, SOON, Setup, assert_says};

const USAGE: Option<i32> = Some(64);
const UNAVAILABLE: Option<i32> = Some(69);

// Before the first start.

/// The proxy refuses to run: its exit code is that of bad usage, and stderr says why.
async fn refused(setup: Setup, parts: &[&str]) {
    let peer = setup.spawn();
    assert_eq!(peer.exit().await.code(), USAGE);
    peer.stderr_ended().await;
    peer.stdout_ended().await;
    assert_eq!(peer.lines(), []);
    assert_says(&peer.stderr(), parts);
    assert!(peer.journal().is_empty(), "a server was started");
}

#[tokio::test]
async fn s3_a_broken_config_is_refused_with_file_line_and_key() {
    let toml = "[defaults]\nanswer_witin = \"1s\"\n";
    refused(Setup::proxied().config(toml), &["config.toml", "2", "answer_witin", "answer_within"])
        .await;
    refused(Setup::proxied().config("[defaults\n"), &["config.toml", "1"]).await;
}

#[tokio::test]
async fn s3_bad_options_are_refused_by_name() {
    for (options, parts) in [
        (&["--answer-within", "25"][..], &["answer_within", "25s"][..]),
        (&["--answer-within", "soon"], &["answer_within", "25s"]),
        (&["--store", "paper"], &["--store", "memory"]),
        (&["--env", "NOVALUE"], &["--env", "NAME=VALUE"]),
        (&["--env", "A=${NOT_SET}"], &["NOT_SET"]),
        (&["--config", "/nowhere/at_all.toml"], &["/nowhere/at_all.toml"]),
        (&["--no-such-option"], &["--no-such-option"]),
        (&["--log-level", "loud"], &["loud"]),
    ] {
        refused(Setup::proxied().options(options), parts).await;
    }
}

// The first start.

/// A server that never comes up: the first request gets the cause, stderr too, the exit code is 69.
async fn never_up(setup: Setup, parts: &[&str]) {
    let peer = setup.spawn();
    let start = Instant::now();
    let answer = peer.ask("initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!(answer.error_code(), -32603);
    assert_says(answer.raw_error(), parts);
    assert_eq!(peer.exit().await.code(), UNAVAILABLE);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    peer.stderr_ended().await;
    peer.stdout_ended().await;
    assert_eq!(peer.lines().len(), 1, "{:?}", peer.lines());
    assert_says(&peer.stderr(), parts);
    peer.all_gone().await;
}

#[tokio::test]
async fn s2_a_command_that_exits_at_once() {
    never_up(Setup::proxied().flags(&["--exit", "9"]), &["exited with code 9"]).await;
}

#[tokio::test]
async fn s2_a_command_that_ends_well_at_once() {
    never_up(Setup::proxied().flags(&["--exit", "0"]), &["exited with code 0"]).await;
}

#[tokio::test]
async fn s2_a_command_that_prints_its_usage_to_stdout_and_exits() {
    let setup = Setup::proxied().flags(&["--usage-and-exit", "2"]);
    never_up(setup, &["exited with code 2", "an argument is missing"]).await;
}

#[tokio::test]
async fn s2_a_command_that_does_not_know_its_arguments() {
    never_up(Setup::proxied().flags(&["--no-such-flag"]), &["code 2", "--no-such-flag"]).await;
}

#[tokio::test]
async fn s2_a_command_that_never_answers_initialize() {
    let setup = Setup::proxied().config("[upstream]\nstart_timeout = \"300ms\"\n");
    never_up(setup.flags(&["--silent"]), &["initialize", "start_timeout"]).await;
}

#[tokio::test]
async fn s2_a_command_that_is_no_server_at_all() {
    let setup = Setup::proxied().config("[upstream]\nstart_timeout = \"500ms\"\n");
    let chatter = r#"while :; do echo "[INFO] {not json}"; sleep 0.01; done"#;
    never_up(setup.server_through(chatter), &["initialize", "start_timeout"]).await;
}

#[tokio::test]
async fn s2_a_slow_start_is_no_failed_one() {
    let peer = Peer::proxied(&[], &["--slow-start", "1500"]);
    peer.initialize().await.result();
    peer.assert_works().await;
}

// From the client.

/// Lines that are no JSON-RPC, or none that make sense.
const JUNK: &[&str] = &[
    "",
    "   ",
    "hello",
    "null",
    "42",
    "-1e400",
    "true",
    "\"text\"",
    "[]",
    "[[]]",
    "[1,2,null]",
    "[{}]",
    "[{\"jsonrpc\":\"2.0\",\"id\":",
    "{",
    "}",
    "{}",
    "{\"jsonrpc\":\"2.0\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"junk\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"junk\",\"method\":\"tools/ca",
    "{\"jsonrpc\":\"2.0\",\"id\":\"junk\",\"method\":7}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"junk\",\"method\":null,\"params\":null}",
    "{\"jsonrpc\":\"2.0\",\"method\":[]}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"junk\",\"result\":1,\"error\":2}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"junk\",\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}",
    "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"x/bom\"}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"\\ud800\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"ping\"}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":[]}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":null}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"no\"}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":{}}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\",\"params\":7}",
];

/// Params of requests that make no sense.
const PARAMS: &[&str] = &[
    "null",
    "7",
    "\"x\"",
    "[]",
    "{}",
    r#"{"name":null}"#,
    r#"{"name":7,"arguments":[]}"#,
    r#"{"name":"no such tool"}"#,
    r#"{"name":"echo","arguments":null}"#,
    r#"{"name":"echo","arguments":"x","_meta":7}"#,
    r#"{"name":"echo","_meta":{"progressToken":null,"unhurry/answer_within":"soon"}}"#,
    r#"{"name":"echo","_meta":{"progressToken":{},"unhurry/answer_within":-1e400}}"#,
    r#"{"name":"echo","_meta":{"progressToken":1.5,"unhurry/answer_within":null}}"#,
    r#"{"name":"echo","task":7}"#,
    r#"{"name":"job_get","arguments":7}"#,
    r#"{"name":"job_get","arguments":{"job_id":12}}"#,
    r#"{"name":"job_get","arguments":{"job_id":"nope","page":-1,"wait_seconds":"x"}}"#,
    r#"{"name":"job_get","arguments":{"job_id":["x"],"seq":{},"envelope":"maybe"}}"#,
    r#"{"name":"job_cancel"}"#,
    r#"{"name":"job_cancel","arguments":{"job_id":null}}"#,
    r#"{"name":"job_cancel","arguments":{"job_id":"00000000"}}"#,
];

const METHODS: [&str; 6] =
    ["tools/call", "tools/list", "logging/setLevel", "resources/subscribe", "ping", "x/unknown"];

/// Lines nested deeper than any reader likes.
fn deep() -> [String; 3] {
    let open = "[".repeat(200_000);
    let object = "{\"a\":".repeat(200_000);
    let close = "]".repeat(200_000);
    let method = r#""jsonrpc":"2.0","id":"deep","method":"x/unknown""#;
    [open.clone(), object, format!(r#"{{{method},"params":{open}{close}}}"#)]
}

async fn barrage_of_the_client(peer: &Peer) {
    for line in JUNK.iter().copied().chain(deep().iter().map(String::as_str)) {
        peer.send_raw(line).await;
    }
    for bytes in [&b"\xFF\xFE\n"[..], b"\0\n", b"{\"jsonrpc\":\"2.0\",\"method\":\"\xC3\x28\"}\n"] {
        peer.send_bytes(bytes).await;
    }
    for method in METHODS {
        for params in PARAMS {
            let line = r#"{"jsonrpc":"2.0","id":"junk","method":"#;
            peer.send_raw(&format!(r#"{line}"{method}","params":{params}}}"#)).await;
        }
    }
}

/// The same lines from the server, and answers that make no sense.
async fn barrage_of_the_server(peer: &Peer) {
    let answer = |rest: &str| format!(r#"{{"jsonrpc":"2.0","id":{rest}}}"#);
    let answers = [
        answer(r#"null,"result":{}"#),
        answer(r#"true,"result":{}"#),
        answer(r#"1.5,"error":7"#),
        answer(r#""nobody","result":null"#),
        answer(r#""nobody","error":{"code":"x"}"#),
        answer(r#"9007199254740993,"result":{}"#),
    ];
    let lines = JUNK.iter().map(|line| (*line).to_owned()).chain(deep()).chain(answers);
    let mut steps: Vec<Value> = lines.map(|line| json!({"send": line})).collect();
    steps.push(json!({"write_hex": "FFFE0A000A"}));
    steps.push(json!({"result": "{\"content\":[]}"}));
    peer.script(steps.into()).await.result();
}

#[tokio::test]
async fn s9_no_junk_of_anybody_ends_the_session_or_loses_a_job() {
    let peer = Peer::open(&["--answer-within", "400ms"]).await;
    let args = json!({"path": peer.path("done"), "text": "still here"});
    let handle = peer.slow_call("wait_file", args).await;
    barrage_of_the_client(&peer).await;
    barrage_of_the_server(&peer).await;
    peer.settle().await;
    peer.create("done");
    assert_eq!(peer.finish(handle).await.text(), "still here");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
    let starts = peer.journal().into_iter().filter(|entry| entry.event == "start").count();
    assert_eq!(starts, 1, "the server was started again");
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
}

#[tokio::test]
async fn s9_results_that_make_no_sense_are_passed_on_or_kept() {
    let peer = Peer::open(&["--answer-within", "400ms"]).await;
    let results = ["null", "7", "[]", "\"text\"", "{}", r#"{"content":7}"#, r#"{"_meta":[]}"#];
    let errors = ["null", "7", "{}", r#"{"code":"x"}"#];
    let mut jobs = Vec::new();
    for (member, raw) in
        results.map(|raw| ("result", raw)).into_iter().chain(errors.map(|raw| ("error", raw)))
    {
        let at_once = peer.call("raw", json!({member: raw})).await;
        assert_eq!(support::json::member(&at_once.raw, member), Some(raw));
        jobs.push((member, peer.start("raw", json!({member: raw, "ms": 900})).await));
    }
    for (member, id) in jobs {
        let handle = peer.answer(&id).await;
        assert!(handle.is_handle(), "{}", handle.raw);
        let end = peer.finish(handle).await;
        assert!(!end.raw_result().is_empty());
        assert_eq!(end.is_error(), member == "error", "{}", end.raw);
    }
}

#[tokio::test]
async fn s9_lists_that_make_no_sense_are_passed_on() {
    for result in
        ["null", "7", "{}", r#"{"tools":null}"#, r#"{"tools":{"a":1}}"#, r#"{"tools":[1]}"#]
    {
        let peer = Peer::open_to(&["--answer", &format!("tools/list={result}")]).await;
        assert_eq!(peer.ask("tools/list", json!({})).await.raw_result(), result);
        peer.assert_works().await;
    }
}

#[tokio::test]
async fn s9_greetings_that_make_no_sense_are_passed_on() {
    for result in ["null", "7", "[]", "{}", r#"{"capabilities":7,"protocolVersion":[]}"#] {
        let peer = Peer::proxied(&[], &["--answer", &format!("initialize={result}")]);
        assert_eq!(peer.initialize().await.raw_result(), result);
        peer.assert_works().await;
    }
}

/// What a peer answers to requests with ids that are none, the last of them late.
async fn answers_to_invalid_ids(setup: Setup) -> Vec<String> {
    let peer = setup.spawn();
    peer.initialize().await;
    let mark = peer.mark();
    for id in ["null", "true", "{}", "[]", r#"{"a":1}"#] {
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"#);
        peer.send_raw(&format!(r#"{start}"x/echo_params","params":{{"id":{id}}}}}"#)).await;
        let params = r#"{"name":"sleep","arguments":{"ms":500,"text":"late"}}"#;
        peer.send_raw(&format!(r#"{start}"tools/call","params":{params}}}"#)).await;
        let late = |line: &Line| line.text.contains("late") && line.text.contains(id);
        peer.wait_line_from(mark, late).await;
    }
    peer.lines().into_iter().skip(mark).map(|line| line.text).collect()
}

#[tokio::test]
async fn s9_requests_with_invalid_ids_are_answered_as_without_the_proxy() {
    let with = Setup::proxied().options(&SOON);
    let (with, without) =
        tokio::join!(answers_to_invalid_ids(with), answers_to_invalid_ids(Setup::direct()));
    assert_eq!(with, without);
}

#[tokio::test]
async fn s9_an_id_used_twice_at_once_gets_two_answers() {
    let peer = Peer::open(&SOON).await;
    let sleep =
        |ms: u64, text: &str| json!({"name": "sleep", "arguments": {"ms": ms, "text": text}});
    let mark = peer.mark();
    peer.request_as("7", "tools/call", sleep(900, "first")).await;
    peer.request_as("7", "tools/call", sleep(0, "second")).await;
    let second = peer.answer_from(mark, "7").await;
    assert_eq!(second.text(), "second");
    peer.wait_line_from(mark, |line| Answer::new(&line.text).is_handle()).await;
    let answers = peer.answers("7");
    assert_eq!(answers.len(), 2);
    assert_eq!(peer.finish(answers[1].clone()).await.text(), "first");
}

// From the model.

#[tokio::test]
async fn s5_1_unknown_job_ids_get_the_same_words_and_the_own_jobs() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.call("sleep", json!({"ms": 60_000})).await;
    let mut words = Vec::new();
    for id in ["nope", "00000000-0000-4000-8000-000000000000", "12345678", "../../etc/passwd"] {
        for tool in ["job_get", "job_cancel"] {
            let answer = peer.call(tool, json!({"job_id": id})).await;
            assert!(answer.is_error(), "{}", answer.raw);
            assert_says(answer.text(), &[id, handle.job_id()]);
            words.push(answer.text().replace(id, "<id>").replace(char::is_numeric, "n"));
        }
    }
    assert!(words.windows(2).all(|two| two[0] == two[1]), "{words:?}");
    assert_eq!(peer.journal().iter().filter(|entry| entry.is_call_of("job_get")).count(), 0);
}

#[tokio::test]
async fn s9_an_answer_with_neither_result_nor_error_fails_its_job() {
    let peer = Peer::open(&[]).await;
    let neither = r#"{"jsonrpc":"2.0","id":$ID}"#;
    let steps = json!([{"wait_file": "go"}, {"send": neither}]);
    let job = peer.defer("script", json!({"steps": steps})).await;
    peer.create("go");
    let end = peer.finish(job).await;
    assert!(end.is_error() && end.status() == "failed", "{}", end.raw);
    peer.assert_works().await;
}
