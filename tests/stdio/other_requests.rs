//! All that is no plain `tools/call` is untouched, whatever runs beside it (contract §1.1).

use serde_json::{Value, json};
use support::{Peer, SOON, Setup, call_params, until};

/// A server with tasks of its own.
const TASKS: &str = r#"{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#;

/// A session under a budget of 0.3 s in which a call is in the background and another waits.
async fn busy(flags: &[&str]) -> Peer {
    let setup = Setup::proxied().config("[tools.script]\nanswer_within = \"never\"");
    let peer = Peer::opened(setup.options(&SOON).flags(flags)).await;
    peer.park("never").await;
    peer.start("script", json!({"steps": [{"wait_file": "never"}]})).await;
    peer.arrived("script", 1).await;
    peer
}

/// Waits until a call that comes now has its handle: what came before is past its budget.
async fn budget_ends(peer: &Peer) {
    assert!(peer.call("wait_file", until("a budget")).await.is_handle());
}

#[tokio::test]
async fn s1_1_requests_and_answers_pass_as_they_are_while_calls_run() {
    let answers = [
        ("resources/read", r#"{"contents":[{"uri":"a:b", "n":1.10}],"x":1e400}"#),
        ("completion/complete", r#"{"completion":{"values":["\u0061"]}}"#),
        ("prompts/get", r#"{"messages":[ ]}"#),
        ("x/unknown", r#"[9007199254740993]"#),
        ("tasks/get", r#"{"taskId":"t","status":"working"}"#),
    ];
    let flags = answers.map(|(method, answer)| format!("{method}={answer}"));
    let flags: Vec<&str> = flags.iter().flat_map(|answer| ["--answer", answer]).collect();
    let peer = busy(&flags).await;
    for (method, answer) in answers {
        let line = format!(
            r#"{{"jsonrpc":"2.0" ,"id":"{method}","method":"{method}","params":{{"n":1.10,"_meta":{{"progressToken":1e0,"unhurry/answer_within":0}}}}}}"#
        );
        peer.send_raw(&line).await;
        assert_eq!(peer.answer(&format!("\"{method}\"")).await.raw_result(), answer);
        assert_eq!(peer.received(method)[0].line, line);
    }
    assert_eq!(peer.ask("x/none", json!({})).await.error_code(), -32601);
}

#[tokio::test]
async fn s1_1_unknown_notifications_pass_both_ways_while_calls_run() {
    let peer = busy(&[]).await;
    let line = r#"{"method":"x/note", "jsonrpc":"2.0","params":[1.10]}"#;
    peer.send_raw(line).await;
    peer.journal_wait(|entry| entry.line == line).await;
    peer.script(json!([{"send": line}, {"result": "{}"}])).await;
    peer.wait_line(|seen| seen.text == line).await;
}

#[tokio::test]
async fn s1_1_no_other_request_has_a_budget_and_its_progress_goes_on() {
    let peer = busy(&["--unanswered", "resources/read", "--unanswered", "x/slow"]).await;
    let params =
        json!({"uri": "a:b", "_meta": {"progressToken": "mine", "unhurry/answer_within": 0}});
    peer.request_as("\"r\"", "resources/read", params).await;
    peer.request_as("\"s\"", "x/slow", json!({})).await;
    budget_ends(&peer).await;
    assert!(peer.answers("\"r\"").is_empty() && peer.answers("\"s\"").is_empty());

    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1.10}}"#;
    let end = r#"{"jsonrpc":"2.0","id":"r","result":{"contents": []}}"#;
    peer.script(json!([{"send": note}, {"send": end}, {"send": note}, {"result": "{}"}])).await;
    assert_eq!(peer.answer("\"r\"").await.raw_result(), r#"{"contents": []}"#);
    peer.settle().await;
    let notes = peer.notifications();
    assert_eq!((notes.len(), &*notes[0].text), (1, note), "and ends with the answer");
}

// Calls with a task of the server's own.

fn with_task(file: &str) -> Value {
    let mut params = call_params("wait_file", until(file));
    params["task"] = json!({"ttl": 60_000});
    params
}

#[tokio::test]
async fn s8_3_a_call_with_a_task_of_the_servers_own_is_never_deferred() {
    let peer = busy(&["--capabilities", TASKS]).await;
    peer.request_as("\"t\"", "tools/call", with_task("go")).await;
    budget_ends(&peer).await;
    assert!(peer.answers("\"t\"").is_empty());
    peer.create("go");
    let answer = peer.answer("\"t\"").await;
    assert_eq!((answer.text(), answer.job().is_null()), ("go", true));
}

#[tokio::test]
async fn s8_3_a_call_with_a_task_of_the_servers_own_passes_as_it_is() {
    let peer = busy(&["--capabilities", TASKS]).await;
    let task = r#"{"task":{"taskId":"theirs","status":"working", "ttl":1.10}}"#;
    let args = json!({"result": task});
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":"t", "method":"tools/call","params":{{"name":"raw","arguments":{args},"task":{{ "ttl":1e0 }}}}}}"#
    );
    peer.send_raw(&line).await;
    assert_eq!(peer.answer("\"t\"").await.raw_result(), task);
    assert_eq!(peer.calls_of("raw")[0].line, line);
}

#[tokio::test]
async fn s8_3_a_call_with_a_task_of_the_servers_own_is_never_joined() {
    let peer = busy(&["--capabilities", TASKS]).await;
    let job = peer.park("go").await;
    peer.request_as("\"t\"", "tools/call", with_task("go")).await;
    peer.arrived("wait_file", 3).await;
    let joined = peer.park("go").await;
    assert_eq!(joined.job_id(), job.job_id(), "a call without a task joins the job");
    peer.create("go");
    assert!(peer.answer("\"t\"").await.job().is_null());
    assert_eq!(peer.calls_of("wait_file").len(), 3);
}

#[tokio::test]
async fn s8_3_a_cancel_of_a_call_with_a_task_is_forwarded() {
    let peer = busy(&["--capabilities", TASKS]).await;
    peer.request_as("\"t\"", "tools/call", with_task("go")).await;
    peer.arrived("wait_file", 2).await;
    peer.cancel("\"t\"", "the user").await;
    let cancel = peer.journal_method("notifications/cancelled").await;
    assert!(cancel.line.contains(r#""requestId":"t""#), "{}", cancel.line);
}
