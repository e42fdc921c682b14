//! Progress: to whom it goes, under which token, and what else `_meta` of a call may lose or gain
//! (contract §1.1.1, §1.1.4, §4.3).

use serde_json::{Value, json};
use support::json::path;
use support::{Answer, Line, Peer};

const PROGRESS: &str = "notifications/progress";

/// Steps of a script: progress with this message under this raw token.
fn note(token: &str, message: &str) -> Value {
    json!({"send": format!(
        r#"{{"jsonrpc":"2.0","method":"{PROGRESS}","params":{{"progressToken":{token},"progress":1.10,"message":"{message}"}}}}"#
    )})
}

/// A step that shows that all before it has come through.
fn mark() -> Value {
    json!({"send": r#"{"jsonrpc":"2.0","method":"x/mark"}"#})
}

fn tokens(peer: &Peer) -> Vec<String> {
    let token = |line: &Line| path(&line.text, &["params", "progressToken"]).map(str::to_owned);
    peer.notifications().iter().filter_map(token).collect()
}

fn message(job: &Answer) -> Value {
    job.handle()["progress"]["message"].clone()
}

#[tokio::test]
async fn c02_progress_after_the_handle_goes_into_the_job_and_never_to_the_client() {
    let peer = Peer::open(&[]).await;
    let notes = (1..=50).map(|step| note("$TOKEN", &format!("step {step}")));
    let begin = [note("$TOKEN", "before"), json!({"wait_file": "go"})];
    let end = [mark(), json!({"wait_file": "end"}), note("$TOKEN", "end"), json!({"result": "{}"})];
    let steps: Vec<Value> = begin.into_iter().chain(notes).chain(end).collect();
    let meta = json!({"progressToken": "t", "unhurry/answer_within": 0});
    let job = peer.call_with_meta("script", json!({"steps": steps}), meta).await;
    assert_eq!(tokens(&peer), ["\"t\""], "before the handle the client gets it");
    assert_eq!(message(&job), "before");

    peer.create("go");
    peer.wait_method("x/mark").await;
    let look = peer.look(job.job_id()).await;
    assert_eq!(look.handle()["progress"], json!({"progress": 1.1, "message": "step 50"}));
    assert!(look.text().contains(r#""progress":1.10"#), "the number as the server wrote it");
    peer.create("end");
    peer.finish(job).await;
    assert_eq!(tokens(&peer).len(), 1);
}

#[tokio::test]
async fn c02_progress_for_a_call_that_was_answered_is_dropped() {
    let peer = Peer::open(&[]).await;
    peer.call_with_meta("echo", json!({}), json!({"progressToken": "t"})).await;
    peer.script(json!([note("\"t\"", "late"), mark(), {"result": "{}"}])).await;
    peer.wait_method("x/mark").await;
    assert!(tokens(&peer).is_empty());
}

#[tokio::test]
async fn c50_progress_comes_under_the_clients_own_token_and_type() {
    let peer = Peer::open(&[]).await;
    for token in [json!("abc"), json!(7), json!(0), json!("7"), json!("")] {
        let meta = json!({"progressToken": token});
        let answer = peer.call_with_meta("progress", json!({"steps": 2}), meta).await;
        assert_eq!(answer.text(), "2 steps");
    }
    let expected = ["\"abc\"", "7", "0", "\"7\"", "\"\""].map(|token| [token, token]);
    assert_eq!(tokens(&peer), expected.concat());
    let last = json!({"progressToken": "", "progress": 2, "total": 2, "message": "step 2"});
    assert_eq!(peer.notifications()[9].json()["params"], last);
}

#[tokio::test]
async fn c50_number_and_string_at_once_are_two_tokens() {
    let peer = Peer::open(&[]).await;
    let steps =
        |file| json!({"steps": [{"wait_file": file}, note("$TOKEN", file), {"result": "{}"}]});
    for (token, file) in [(json!(7), "number"), (json!("7"), "string")] {
        let params =
            json!({"name": "script", "arguments": steps(file), "_meta": {"progressToken": token}});
        let id = peer.request("tools/call", params).await;
        assert!(peer.answers(&id).is_empty());
    }
    for (file, token) in [("string", "\"7\""), ("number", "7")] {
        let start = peer.mark();
        peer.create(file);
        let line = peer.wait_line_from(start, |line| line.has_method(PROGRESS)).await;
        assert_eq!(line.json()["params"]["message"], file);
        assert_eq!(path(&line.text, &["params", "progressToken"]), Some(token));
    }
}

#[tokio::test]
async fn c51_progress_under_a_token_that_nobody_gave_is_dropped() {
    let peer = Peer::open(&[]).await;
    let made_up = ["$ID", "8", "\"8\"", "null", "{}", "true"].map(|token| note(token, "?"));
    let steps: Vec<Value> = made_up.into_iter().chain([mark(), json!({"result": "[1]"})]).collect();
    let answer = peer.script(json!(steps)).await;
    assert_eq!(answer.raw_result(), "[1]");
    peer.wait_method("x/mark").await;
    assert!(tokens(&peer).is_empty());
}

// `ask_progress`.

const ASK: &str = "[tools.script]\nask_progress = true";

/// A script that reports progress once it runs and waits for `go`.
fn reporting() -> Value {
    json!({"steps": [{"wait_file": "go"}, note("$TOKEN", "asked"), mark(), {"wait_file": "end"}, {"result": "{}"}]})
}

#[tokio::test]
async fn s1_1_4_ask_progress_asks_for_the_job_and_not_for_the_client() {
    let peer = Peer::open_with(ASK).await;
    let job = peer.defer("script", reporting()).await;
    let received = &peer.calls_of("script")[0];
    assert!(path(&received.line, &["params", "_meta", "progressToken"]).is_some());
    peer.create("go");
    peer.wait_method("x/mark").await;
    assert_eq!(message(&peer.look(job.job_id()).await), "asked");
    assert!(tokens(&peer).is_empty());
    peer.create("end");
    assert_eq!(peer.finish(job).await.status(), "completed");
}

#[tokio::test]
async fn s1_1_4_ask_progress_shows_nothing_to_a_client_that_waits() {
    let peer = Peer::open_with(ASK).await;
    peer.create("go");
    peer.create("end");
    let answer = peer.call("script", reporting()).await;
    assert_eq!(answer.raw_result(), "{}");
    assert!(tokens(&peer).is_empty());
}

#[tokio::test]
async fn s1_1_4_ask_progress_leaves_the_clients_own_token() {
    let peer = Peer::open_with(ASK).await;
    peer.create("go");
    peer.create("end");
    peer.call_with_meta("script", reporting(), json!({"progressToken": "mine"})).await;
    assert_eq!(tokens(&peer), ["\"mine\""]);
}

#[tokio::test]
async fn s1_1_4_two_tokens_of_our_own_are_told_apart() {
    let peer = Peer::open_with(ASK).await;
    let job = peer.defer("script", reporting()).await;
    let steps = json!([{"wait_file": "other"}, note("$TOKEN", "other"), {"wait_file": "end"}, {"result": "{}"}]);
    let other = peer.defer("script", json!({"steps": steps})).await;
    peer.create("go");
    peer.wait_method("x/mark").await;
    assert_eq!(message(&peer.look(job.job_id()).await), "asked");
    assert!(message(&peer.look(other.job_id()).await).is_null());
}

#[tokio::test]
async fn s1_1_4_without_ask_progress_nothing_is_put_in() {
    let peer = Peer::open_with(ASK).await;
    let line = r#"{"jsonrpc":"2.0", "id":"a","method":"tools/call","params":{"name":"echo"}}"#;
    peer.send_raw(line).await;
    peer.answer("\"a\"").await;
    assert_eq!(peer.received("tools/call")[0].line, line);
}

// `unhurry/answer_within`.

/// What the server gets of a call with these raw params.
async fn sent(params: &str) -> String {
    let peer = Peer::open(&[]).await;
    peer.send_raw(&format!(
        r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{params}}}"#
    ))
    .await;
    peer.answer("\"a\"").await;
    peer.received("tools/call")[0].raw_params().expect("params").to_owned()
}

#[tokio::test]
async fn s1_1_4_the_callers_budget_is_taken_out_and_nothing_else() {
    for wish in ["5", "\"5\"", "0.5", "null", "\"soon\"", "{}"] {
        let with = format!(
            r#"{{"_meta":{{"a":1.10,"unhurry/answer_within":{wish},"unhurry/other":[1e400]}}, "name":"echo","arguments":{{"unhurry/answer_within":-0}}}}"#
        );
        let without = with.replace(&format!(r#""unhurry/answer_within":{wish},"#), "");
        assert_eq!(sent(&with).await, without);
    }
    let alone = r#"{"name":"echo","_meta":{"unhurry/answer_within":5}}"#;
    assert_eq!(sent(alone).await, r#"{"name":"echo","_meta":{}}"#);
}

#[tokio::test]
async fn s1_1_4_only_calls_lose_it() {
    let peer = Peer::open(&[]).await;
    let params = r#"{"_meta": {"unhurry/answer_within":0, "a":1.10}}"#;
    peer.send_raw(&format!(
        r#"{{"jsonrpc":"2.0","id":"a","method":"x/echo_params","params":{params}}}"#
    ))
    .await;
    assert_eq!(peer.answer("\"a\"").await.raw_result(), params);
}

#[tokio::test]
async fn s4_2_a_long_message_of_progress_is_cut_in_the_handle() {
    let peer = Peer::open(&[]).await;
    let steps = json!([{"wait_file": "go"}, note("$TOKEN", &"é".repeat(1 << 19)), mark(), {"wait_file": "end"}]);
    let meta = json!({"progressToken": "t", "unhurry/answer_within": 0});
    let job = peer.call_with_meta("script", json!({"steps": steps}), meta).await;
    peer.create("go");
    peer.wait_method("x/mark").await;
    let look = peer.look(job.job_id()).await;
    let message = message(&look);
    let shown = message.as_str().expect("a message");
    assert!(shown.starts_with("ééé") && !shown.contains('\u{fffd}'), "{shown:.100}");
    assert!(shown.len() <= 1 << 10, "{} bytes", shown.len());
    assert!(look.raw.len() < 8 << 10, "{} bytes", look.raw.len());
}
