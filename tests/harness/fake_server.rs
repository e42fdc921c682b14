//! The fake server does what it says, and so does the harness that talks to it.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::json::member;
use support::process::{alive, children_of, wait_gone};
use support::{Line, Peer, Setup};

// Openings.

#[tokio::test]
async fn it_opens_a_legacy_session_in_the_clients_version() {
    let peer = Peer::direct(&["--instructions", "Be quick."]);
    let opened = peer.initialize_as("c", "1", "2024-11-05").await;
    assert_eq!(opened.result()["protocolVersion"], "2024-11-05");
    assert_eq!(opened.result()["instructions"], "Be quick.");
    assert!(opened.result()["capabilities"]["tools"].is_object());
    assert_eq!(peer.ask("server/discover", json!({})).await.error_code(), -32601);
}

#[tokio::test]
async fn it_opens_a_legacy_session_in_a_version_of_its_own() {
    let peer = Peer::direct(&["--protocol", "2025-03-26", "--no-tools", "--slow-start", "1"]);
    let opened = peer.initialize().await;
    assert_eq!(opened.result()["protocolVersion"], "2025-03-26");
    assert!(opened.result()["capabilities"].get("tools").is_none());
    assert_eq!(peer.ask("tools/list", json!({})).await.error_code(), -32601);
}

#[tokio::test]
async fn a_modern_server_refuses_initialize() {
    let peer = Peer::direct(&["--modern"]);
    let refused = peer.ask("initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!(refused.error_code(), -32022);
    assert_eq!(refused.error()["data"]["supported"], json!(["2026-07-28"]));
    let answer = peer.modern_call("echo", json!({"text": "hi"})).await;
    assert_eq!((answer.text(), &answer.result()["resultType"]), ("hi", &json!("complete")));
    let discovered = peer.ask("server/discover", json!({})).await;
    assert_eq!(discovered.result()["supportedVersions"], json!(["2026-07-28"]));
}

#[tokio::test]
async fn a_dual_server_serves_both_eras() {
    let peer = Peer::direct(&["--dual"]);
    peer.initialize().await;
    assert!(peer.call("echo", json!({})).await.result().get("resultType").is_none());
    assert_eq!(peer.modern_call("echo", json!({})).await.result()["resultType"], "complete");
    assert!(peer.ask("server/discover", json!({})).await.result()["capabilities"].is_object());
}

#[tokio::test]
async fn a_silent_server_leaves_only_its_opening_unanswered() {
    let peer = Peer::direct(&["--silent"]);
    let id = peer.request("initialize", json!({})).await;
    peer.settle().await;
    assert!(peer.answers(&id).is_empty());
}

// Start and end.

#[tokio::test]
async fn it_exits_at_once_when_told() {
    assert_eq!(Peer::direct(&["--exit", "9"]).exit().await.code(), Some(9));
    let peer = Peer::direct(&["--usage-and-exit", "2"]);
    assert_eq!(peer.exit().await.code(), Some(2));
    peer.wait_line(|line| line.text.starts_with("Usage:")).await;
    peer.stdout_ended().await;
}

#[tokio::test]
async fn it_ends_with_its_stdin() {
    let peer = Peer::opened(Setup::direct()).await;
    peer.close_stdin().await;
    assert_eq!(peer.exit().await.code(), Some(0));
    peer.journal_wait(|entry| entry.event == "eof").await;
}

#[tokio::test]
async fn it_ends_at_a_sigterm() {
    let peer = Peer::opened(Setup::direct()).await;
    peer.signal(Signal::SIGTERM);
    assert_eq!(peer.exit().await.code(), Some(128 + 15));
    peer.journal_wait(|entry| entry.event == "sigterm").await;
}

#[tokio::test]
async fn it_stays_when_told_and_a_dropped_peer_kills_it_and_its_child() {
    let peer =
        Peer::opened(Setup::direct().flags(&["--ignore-eof", "--ignore-sigterm", "--child"])).await;
    peer.close_stdin().await;
    peer.signal(Signal::SIGTERM);
    peer.journal_wait(|entry| entry.event == "eof").await;
    peer.journal_wait(|entry| entry.event == "sigterm").await;
    let (server, children) = (peer.pid(), children_of(peer.pid()));
    assert!(alive(server) && children.len() == 1);
    assert_eq!(peer.processes().len(), 2);
    drop(peer);
    wait_gone(server).await;
    wait_gone(children[0]).await;
}

#[tokio::test]
async fn its_first_processes_crash_at_a_call() {
    let flags = ["--state-file", "state", "--crash-first", "1"];
    let first = Peer::opened(Setup::direct().flags(&flags)).await;
    first.start("echo", json!({})).await;
    assert_eq!(first.exit().await.code(), Some(3));
    let second = Setup::direct().in_home_of(&first).flags(&flags).spawn();
    second.initialize().await;
    second.assert_works().await;
    assert_eq!(second.calls_of("echo").len(), 2, "the journal is that of the home");
}

#[tokio::test]
async fn its_first_processes_exit_before_they_are_opened() {
    let flags = ["--state-file", "state", "--exit-before-init", "1"];
    let first = Peer::direct(&flags);
    assert_eq!(first.exit().await.code(), Some(3));
    Setup::direct().in_home_of(&first).flags(&flags).spawn().initialize().await;
}

#[tokio::test]
async fn it_dies_of_a_discover() {
    let peer = Peer::direct(&["--discover-dies"]);
    peer.request("server/discover", json!({})).await;
    assert_eq!(peer.exit().await.code(), Some(3));
}

// How it writes.

#[tokio::test]
async fn it_writes_banners_a_byte_order_mark_and_crlf() {
    let peer = Peer::direct(&["--bom", "--crlf", "--banner", "Hello", "--banner", "{}"]);
    peer.initialize().await;
    let texts: Vec<String> = peer.lines().into_iter().map(|line| line.text).collect();
    assert_eq!(texts[..2], ["\u{feff}Hello\r", "{}\r"]);
    assert!(texts[2].ends_with("}\r"));
}

#[tokio::test]
async fn it_writes_byte_by_byte_after_a_flood_of_stderr() {
    let peer =
        Peer::opened(Setup::direct().flags(&["--byte-writes", "--stderr-at-start", "300000"]))
            .await;
    assert_eq!(peer.call("echo", json!({"text": "é"})).await.text(), "é");
    peer.lines().iter().for_each(Line::assert_protocol);
    assert_eq!(peer.stderr().len(), 300_000);
}

// Tools.

#[tokio::test]
async fn it_lists_its_tools() {
    let peer = Peer::opened(Setup::direct()).await;
    let list = peer.ask("tools/list", json!({})).await;
    assert_eq!(list.tool_names()[..3], ["echo", "sleep", "structured"]);
}

#[tokio::test]
async fn it_lists_tools_of_a_file_in_pages() {
    let setup =
        Setup::direct().tools(r#"[{"name":"build_a","x": 1.10},{"name":"b"},{"name":"c"}]"#);
    let peer = setup.flags(&["--page-size", "2"]).spawn();
    let first = peer.ask("tools/list", json!({})).await;
    assert_eq!(first.tool_names(), ["build_a", "b"]);
    assert!(first.raw.contains(r#""x": 1.10}"#), "tools are listed as they are written");
    let cursor = &first.result()["nextCursor"];
    assert_eq!(peer.ask("tools/list", json!({"cursor": cursor})).await.tool_names(), ["c"]);
    assert_eq!(peer.ask("tools/list", json!({"cursor": "x"})).await.error_code(), -32602);
    assert_eq!(peer.call("build_a", json!({"text": "hi"})).await.text(), "hi");
    assert_eq!(peer.call("other", json!({})).await.error_code(), -32602);
}

#[tokio::test]
async fn its_simple_tools_answer() {
    let peer = Peer::opened(Setup::direct()).await;
    assert_eq!(peer.call("echo", json!({"a": 1})).await.text(), r#"{"a":1}"#);
    assert_eq!(peer.call("sleep", json!({"ms": 1})).await.text(), "slept");
    let structured = peer.call("structured", json!({"ms": 0})).await;
    assert_eq!(structured.structured()["answer"], 42);
    assert!(peer.call("fail", json!({"ms": 0})).await.is_error());
    let error = peer.call("rpc_error", json!({"code": -7, "message": "m", "data": [1]})).await;
    assert_eq!(*error.error(), json!({"code": -7, "message": "m", "data": [1]}));
    assert_eq!(peer.call("big", json!({"bytes": 9, "pattern": "äb"})).await.text(), "äbäbäb");
    let raw = peer.call("raw", json!({"result": "{\"a\" :1.10}"})).await;
    assert_eq!(raw.raw_result(), "{\"a\" :1.10}");
    assert_eq!(peer.call("raw", json!({"error": "[1e400]"})).await.raw_error(), "[1e400]");
}

#[tokio::test]
async fn it_reports_progress_under_the_callers_own_token() {
    let peer = Peer::opened(Setup::direct()).await;
    let meta = json!({"progressToken": "abc"});
    peer.call_with_meta("progress", json!({"ms": 2, "steps": 2}), meta).await;
    let notes = peer.notifications();
    assert_eq!(notes.len(), 2);
    let expected = json!({"progressToken": "abc", "progress": 2, "total": 2, "message": "step 2"});
    assert_eq!(notes[1].json()["params"], expected);
    peer.call("progress", json!({"steps": 2})).await;
    assert_eq!(peer.notifications().len(), 2, "no token, no progress");
}

#[tokio::test]
async fn it_waits_for_a_file() {
    let peer = Peer::opened(Setup::direct()).await;
    let id = peer.start("wait_file", json!({"path": peer.path("go"), "text": "gone"})).await;
    peer.settle().await;
    assert!(peer.answers(&id).is_empty());
    peer.create("go");
    assert_eq!(peer.answer(&id).await.text(), "gone");
}

#[tokio::test]
async fn it_exits_and_closes_stdout_by_a_tool() {
    let peer = Peer::opened(Setup::direct()).await;
    peer.start("close_stdout", json!({})).await;
    peer.stdout_ended().await;
    assert!(alive(peer.pid()));
    peer.start("exit", json!({"code": 7})).await;
    assert_eq!(peer.exit().await.code(), Some(7));
}

#[tokio::test]
async fn it_asks_the_client() {
    let peer = Peer::opened(Setup::direct()).await;
    let id = peer.start("ask", json!({"message": "Which?"})).await;
    let question = peer.wait_method("elicitation/create").await;
    assert_eq!(question.json()["params"]["message"], "Which?");
    peer.respond(&question, r#"{"action":"accept"}"#).await;
    assert_eq!(peer.answer(&id).await.text(), r#"{"action":"accept"}"#);
}

#[tokio::test]
async fn it_asks_a_modern_client_by_its_result() {
    let peer = Peer::direct(&["--modern"]);
    let asked = peer.modern_call("ask", json!({})).await;
    assert_eq!(asked.result()["resultType"], "input_required");
    let params = json!({"name": "ask", "inputResponses": {"choice": 1}, "requestState": "asked"});
    assert_eq!(peer.ask("tools/call", params).await.text(), r#"{"choice":1}"#);
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_unless_it_ignores_its_cancel() {
    let peer = Peer::opened(Setup::direct()).await;
    let stopped = peer.start("sleep", json!({"ms": 60_000})).await;
    let late =
        peer.start("wait_file", json!({"path": peer.path("go"), "ignore_cancel": true})).await;
    peer.cancel(&stopped, "the user").await;
    peer.cancel(&late, "the user").await;
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.create("go");
    assert_eq!(peer.answer(&late).await.text(), "there");
    assert!(peer.answers(&stopped).is_empty());
}

#[tokio::test]
async fn a_blocked_server_reads_nothing_while_a_call_runs() {
    let peer = Peer::opened(Setup::direct().flags(&["--block"])).await;
    let call = peer.start("wait_file", json!({"path": peer.path("go")})).await;
    let ping = peer.request("ping", json!({})).await;
    peer.journal_method("tools/call").await;
    assert!(!peer.journal().iter().any(|entry| entry.has_method("ping")));
    peer.create("go");
    peer.answer(&ping).await;
    peer.answer(&call).await;
    let order: Vec<_> = peer.lines().iter().filter_map(|l| l.id().map(str::to_owned)).collect();
    assert_eq!(order[1..], [call, ping]);
}

// Scripts.

#[tokio::test]
async fn a_script_writes_whatever_a_test_wants() {
    let peer = Peer::opened(Setup::direct()).await;
    let steps = json!([
        {"send": "id $ID"}, {"write": "half "}, {"repeat": ["ab", 3]}, {"write_hex": "b0ff0a"},
        {"stderr": "a word\n"}, {"stderr_flood": 100}, {"sleep": 1}, {"error": "[$ID]"},
        {"result": "1.0"}
    ]);
    let answer = peer.script(steps).await;
    assert_eq!(answer.raw_error(), format!("[{}]", answer.raw_id()));
    peer.wait_line(|line| line.text == format!("id {}", answer.raw_id())).await;
    let odd = peer.wait_line(|line| line.text.starts_with("half")).await;
    assert_eq!((odd.text.as_str(), odd.is_utf8), ("half ababab\u{fffd}\u{fffd}", false));
    peer.wait_stderr(|line| line == "a word").await;
    peer.wait_stderr(|line| line == "e".repeat(99)).await;
    peer.wait_line(|line| line.text.ends_with(r#""result":1.0}"#)).await;
}

#[tokio::test]
async fn a_script_waits_asks_and_ends_the_server() {
    let peer = Peer::opened(Setup::direct()).await;
    let steps = json!([
        {"wait_file": peer.path("go")},
        {"request": {"method": "roots/list", "params": {"n": 1.5}, "id": "$ID"}},
        {"result": "[$ANSWER]"}, "close_stdout", {"exit": 5}
    ]);
    let id = peer.start("script", json!({"steps": steps})).await;
    peer.create("go");
    let question = peer.wait_method("roots/list").await;
    assert_eq!(question.id(), Some(id.as_str()), "the id of the call, as the test wanted");
    peer.respond(&question, "1.10").await;
    assert_eq!(peer.answer(&id).await.raw_result(), "[1.10]");
    assert_eq!(peer.exit().await.code(), Some(5));
}

#[tokio::test]
async fn a_script_with_bad_steps_is_refused() {
    let peer = Peer::opened(Setup::direct()).await;
    assert_eq!(peer.script(json!([{"jump": 1}])).await.error_code(), -32602);
    assert_eq!(peer.script(json!([{"write_hex": "zz"}])).await.error_code(), -32602);
}

// Everything else.

#[tokio::test]
async fn it_answers_other_methods() {
    let peer = Peer::opened(Setup::direct().flags(&["--answer", "tasks/get={\"a\":1.10}"])).await;
    for method in ["ping", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(*peer.ask(method, json!({})).await.result(), json!({}));
    }
    assert_eq!(*peer.ask("prompts/list", json!({})).await.result(), json!({"prompts": []}));
    assert_eq!(peer.ask("tasks/get", json!({})).await.raw_result(), r#"{"a":1.10}"#);
    assert_eq!(peer.ask("x/raw", json!({"error": "0"})).await.raw_error(), "0");
    assert_eq!(peer.ask("x/none", json!({})).await.error_code(), -32601);
}

#[tokio::test]
async fn it_keeps_ids_and_params_as_they_came() {
    let peer = Peer::opened(Setup::direct()).await;
    let line = r#"{"id": 1e0 ,"params":{"a": 1.10},"method":"x/echo_params","jsonrpc":"2.0"}"#;
    peer.send_raw(line).await;
    assert_eq!(peer.answer("1e0").await.raw_result(), r#"{"a": 1.10}"#);
    assert!(peer.journal().iter().any(|entry| entry.line == line));
}

#[tokio::test]
async fn it_reads_a_batch_element_by_element() {
    let peer = Peer::opened(Setup::direct()).await;
    peer.send_raw(r#"[{"id":"a","method":"ping"},{"id":"b","method":"ping"}]"#).await;
    peer.answer("\"a\"").await;
    peer.answer("\"b\"").await;
}

#[tokio::test]
async fn it_notes_what_it_cannot_read() {
    let peer = Peer::opened(Setup::direct()).await;
    peer.send_bytes(b"\xff{\n").await;
    let entry = peer.journal_wait(|entry| entry.line.ends_with('{')).await;
    assert_eq!((entry.line.as_str(), &entry.json["utf8"]), ("\u{fffd}{", &json!(false)));
    peer.settle().await;
    assert!(peer.journal().iter().any(|entry| entry.event == "unreadable"));
}

#[tokio::test]
async fn it_starts_fast() {
    let start = Instant::now();
    Peer::opened(Setup::direct()).await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

// The harness: what it reads from the answers of the proxy.

#[test]
fn an_answer_tells_what_a_handle_says() {
    let action = json!({"tool": "job_get", "args": {"job_id": "j", "seq": 1}});
    let handle = json!({"job_id": "j", "status": "working", "next_action": action});
    let job = json!({"unhurry/job": {"job_id": "j", "status": "working", "done": false}});
    let block = json!({"type": "text", "text": handle.to_string()});
    for structured in [handle.clone(), Value::Null] {
        let mut result = json!({"content": [block], "_meta": job});
        if structured.is_object() {
            result["structuredContent"] = structured;
        }
        let answer = support::Answer::new(&json!({"id": 1, "result": result}).to_string());
        assert_eq!((answer.job_id(), answer.status(), answer.is_handle()), ("j", "working", true));
        let next = answer.next_action().expect("there is something to do");
        assert_eq!((next.tool.as_str(), &next.args), ("job_get", &action["args"]));
    }
}

#[test]
fn json_is_cut_where_it_was_written() {
    let text = r#"{"a":1,"\u0061" : 1e400 ,"id":"x", "\ud800":2}"#;
    assert_eq!(member(text, "a"), Some("1e400"));
    let expected = r#"{"a":1,"\u0061" : 1e400 ,"id":<id>, "\ud800":2}"#;
    assert_eq!(support::json::without_id(text), expected);
    assert_eq!(support::json::messages(" [1, {} ]"), ["1", "{}"]);
}
