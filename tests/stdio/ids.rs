//! Ids and progress tokens: each side sees its own, whatever they are called inside (contract §1.1.1).

use serde_json::json;
use support::json::path;
use support::{Answer, Peer, Setup, call_params, eventually, until};

/// The raw ids under which the server has got the calls of a tool.
fn ids_inside(peer: &Peer, tool: &str) -> Vec<String> {
    peer.calls_of(tool).iter().map(|call| call.raw_id().to_owned()).collect()
}

/// A session, legacy or modern.
async fn open(modern: bool) -> Peer {
    let peer = Peer::proxied(&[], &["--dual"]);
    match modern {
        true => peer.become_modern("test-client", json!({})),
        false => drop(peer.initialize().await),
    }
    peer
}

/// Calls a tool under this id and token, and gets its handle.
async fn defer_as(
    peer: &Peer,
    id: &str,
    token: &str,
    tool: &str,
    args: serde_json::Value,
) -> Answer {
    let mut params = call_params(tool, args);
    params["_meta"] = json!({"progressToken": token, "unhurry/answer_within": 0});
    let mark = peer.mark();
    peer.request_as(id, "tools/call", params).await;
    let handle = peer.answer_from(mark, id).await;
    assert!(handle.is_handle(), "no handle: {}", handle.raw);
    handle
}

/// Reports progress once the test creates `file`, then ends with `text`.
fn report(file: &str, text: &str) -> serde_json::Value {
    let note = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":1,"message":"{text}"}}}}"#
    );
    let result = json!({"content": [{"type": "text", "text": text}], "resultType": "complete"});
    let end = format!("end {file}");
    json!({"steps": [{"wait_file": file}, {"send": note}, {"wait_file": end}, {"result": result.to_string()}]})
}

#[tokio::test]
async fn c08_two_clients_with_the_same_id_each_get_their_own_answer() {
    let first = Peer::proxied(&[], &[]);
    let second = Setup::proxied().in_home_of(&first).spawn();
    for (peer, file) in [(&first, "a"), (&second, "b")] {
        peer.request_as("1", "initialize", json!({"protocolVersion": "2025-11-25"})).await;
        peer.answer("1").await;
        peer.request_as("1", "tools/call", call_params("wait_file", until(file))).await;
    }
    first.arrived("wait_file", 2).await;
    first.create("b");
    assert_eq!(second.answer_from(1, "1").await.text(), "b");
    first.create("a");
    assert_eq!(first.answer_from(1, "1").await.text(), "a");
    assert_eq!((first.lines().len(), second.lines().len()), (2, 2), "nobody gets more");
}

#[tokio::test]
async fn c10_string_and_number_are_two_ids_and_keep_their_types() {
    let peer = open(false).await;
    for (id, file) in [("1", "number"), ("\"1\"", "string")] {
        peer.request_as(id, "tools/call", call_params("wait_file", until(file))).await;
    }
    peer.arrived("wait_file", 2).await;
    let inside = ids_inside(&peer, "wait_file");
    assert_ne!(inside[0], inside[1]);
    let mark = peer.mark();
    peer.create("string");
    assert_eq!(peer.answer_from(mark, "\"1\"").await.text(), "string");
    peer.create("number");
    assert_eq!(peer.answer_from(mark, "1").await.text(), "number");
}

#[tokio::test]
async fn c10_the_handle_and_the_poll_keep_the_type_of_the_id() {
    let peer = open(false).await;
    for id in ["\"1\"", "1", "\"7.0\"", "-0", "\"a\\u0062\""] {
        let handle = defer_as(&peer, id, "t", "wait_file", until(id)).await;
        let mark = peer.mark();
        let poll = json!({"job_id": handle.job_id(), "wait_seconds": 0});
        peer.request_as(id, "tools/call", call_params("job_get", poll)).await;
        assert_eq!(peer.answer_from(mark, id).await.job_id(), handle.job_id());
    }
}

#[tokio::test]
async fn s1_1_1_ids_and_tokens_that_look_like_those_of_the_proxy_are_the_clients_own() {
    let peer = Peer::opened(Setup::proxied().config("[defaults]\nask_progress = true")).await;
    let ids: Vec<String> = (1_000_000_000..1_000_000_020).map(|id: u32| id.to_string()).collect();
    for (id, number) in ids.iter().zip(0..) {
        let mut params = call_params("script", report("go", id));
        if number % 2 == 0 {
            let token = ids[(number + 7) % 20].parse::<u32>().expect("a number");
            params["_meta"] = json!({"progressToken": token});
        }
        peer.request_as(id, "tools/call", params).await;
    }
    peer.create("go");
    peer.create("end go");
    for (id, number) in ids.iter().zip(0..) {
        assert_eq!(peer.answer(id).await.text(), id);
        let notes = peer.notifications().into_iter().map(|note| note.json()["params"].clone());
        let own: Vec<_> = notes.filter(|note| note["message"] == **id).collect();
        assert_eq!(own.len(), (number + 1) % 2, "progress goes to those who asked: {own:?}");
        if let [note] = &own[..] {
            assert_eq!(note["progressToken"].to_string(), ids[(number + 7) % 20]);
        }
    }
}

async fn a_reused_id_and_token(modern: bool) {
    let peer = open(modern).await;
    let job = defer_as(&peer, "7", "t", "script", report("old", "old")).await;
    let mark = peer.mark();
    let mut params = call_params("script", report("new", "new"));
    params["_meta"] = json!({"progressToken": "t"});
    peer.request_as("7", "tools/call", params).await;
    peer.arrived("script", 2).await;
    let inside = ids_inside(&peer, "script");
    assert_ne!(inside[0], inside[1], "the server must tell them apart");

    ["old", "new"].iter().for_each(|file| peer.create(file));
    let note = peer.wait_method("notifications/progress").await;
    assert_eq!(
        note.json()["params"],
        json!({"progressToken": "t", "progress": 1, "message": "new"})
    );
    peer.create("end old");
    assert_eq!(peer.finish(job.clone()).await.text(), "old");
    peer.create("end new");
    assert_eq!(peer.answer_from(mark, "7").await.text(), "new");
    assert_eq!(peer.notifications().len(), 1, "progress of the job stays inside");
}

#[tokio::test]
async fn s1_1_1_a_reused_id_and_token_of_a_background_call_legacy() {
    a_reused_id_and_token(false).await;
}

#[tokio::test]
async fn s1_1_1_a_reused_id_and_token_of_a_background_call_modern() {
    a_reused_id_and_token(true).await;
}

#[tokio::test]
async fn s1_1_1_the_progress_of_each_goes_where_it_belongs() {
    let peer = open(false).await;
    let job = defer_as(&peer, "7", "t", "script", report("old", "old")).await;
    let other = defer_as(&peer, "7", "t", "script", report("new", "new")).await;
    peer.create("old");
    let shown =
        async |job: &Answer| peer.look(job.job_id()).await.handle()["progress"]["message"].clone();
    let look = || async { (shown(&job).await == "old").then_some(()) };
    eventually(look).await.unwrap_or_else(|| peer.fail("no progress in the job"));
    assert!(shown(&other).await.is_null(), "the other job has none");
}

async fn a_cancel_of_a_reused_id(modern: bool) {
    let peer = open(modern).await;
    let job = defer_as(&peer, "7", "t", "wait_file", until("old")).await;
    peer.request_as("7", "tools/call", call_params("wait_file", until("new"))).await;
    peer.arrived("wait_file", 2).await;
    peer.cancel("7", "the user").await;
    assert_eq!(peer.cancelled().await, ids_inside(&peer, "wait_file")[1]);
    peer.create("old");
    assert_eq!(peer.finish(job).await.text(), "old");
    assert_eq!(peer.received("notifications/cancelled").len(), 1);
    assert_eq!(peer.answers("7").len(), 1, "the handle, and nothing for what was cancelled");
}

#[tokio::test]
async fn s1_1_1_a_cancel_of_a_reused_id_hits_the_new_call_only_legacy() {
    a_cancel_of_a_reused_id(false).await;
}

#[tokio::test]
async fn s1_1_1_a_cancel_of_a_reused_id_hits_the_new_call_only_modern() {
    a_cancel_of_a_reused_id(true).await;
}

#[tokio::test]
async fn s1_1_1_a_reused_id_of_any_other_request_gets_its_own_answer() {
    let peer = open(false).await;
    let job = defer_as(&peer, "7", "t", "wait_file", until("go")).await;
    let mark = peer.mark();
    peer.request_as("7", "x/echo_params", json!({"_meta": {"progressToken": "t"}, "n": 1})).await;
    let answer = peer.answer_from(mark, "7").await;
    assert_eq!(answer.result()["n"], 1);
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
}

async fn a_late_answer_to_a_reused_id(modern: bool) {
    let peer = open(modern).await;
    let result = r#"{"content":[{"type":"text","text":"old"}],"resultType":"complete"}"#;
    let steps = json!([{"wait_file": "old"}, {"result": result}]);
    let stubborn = json!({"steps": steps, "ignore_cancel": true});
    let job = defer_as(&peer, "5", "t", "script", stubborn).await;
    assert_eq!(peer.job_cancel(job.job_id()).await.status(), "cancelled");
    let mark = peer.mark();
    peer.request_as("5", "tools/call", call_params("wait_file", until("new"))).await;
    peer.arrived("wait_file", 1).await;
    peer.create("old");
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.settle().await;
    peer.create("new");
    assert_eq!(peer.answer_from(mark, "5").await.text(), "new");
    assert_eq!(peer.answers("5").len(), 2, "the handle, and the answer to the new call");
}

#[tokio::test]
async fn s5_2_a_late_answer_of_a_cancelled_job_is_not_that_of_its_reused_id_legacy() {
    a_late_answer_to_a_reused_id(false).await;
}

#[tokio::test]
async fn s5_2_a_late_answer_of_a_cancelled_job_is_not_that_of_its_reused_id_modern() {
    a_late_answer_to_a_reused_id(true).await;
}

/// Has the server answer a call under this spelling of its id, with progress before that.
async fn spelled(id: &str, spelling: &str) {
    let peer = open(false).await;
    let note = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{spelling},"progress":1}}}}"#
    );
    let result = format!(r#"{{"jsonrpc":"2.0","id":{spelling},"result":{{"a" :1.10}}}}"#);
    let mark = peer.mark();
    let script = json!({"steps": [{"send": note}, {"send": result}]}).to_string();
    peer.send_raw(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"script","arguments":{script},"_meta":{{"progressToken":{id}}}}}}}"#
    ))
    .await;
    let answer = peer.answer_from(mark, id).await;
    assert_eq!((answer.raw_id(), answer.raw_result()), (id, r#"{"a" :1.10}"#));
    let note = peer.wait_method("notifications/progress").await;
    assert_eq!(path(&note.text, &["params", "progressToken"]), Some(id));
}

#[tokio::test]
async fn s1_1_1_a_server_that_spells_a_number_otherwise_is_understood() {
    spelled("1", "1.0").await;
    spelled("10", "1e1").await;
}

#[tokio::test]
async fn s1_1_1_a_server_that_spells_a_string_otherwise_is_understood() {
    spelled(r#""1""#, r#""\u0031""#).await;
    spelled(r#""a/b""#, r#""a\/b""#).await;
}

#[tokio::test]
async fn s1_1_1_a_subscription_under_a_reused_id_keeps_the_clients_id() {
    let peer = Peer::proxied(&[], &["--dual", "--unanswered", "subscriptions/listen"]);
    peer.become_modern("test-client", json!({}));
    let job = defer_as(&peer, "7", "t", "wait_file", until("go")).await;
    peer.request_as("7", "subscriptions/listen", json!({"notifications": {}})).await;
    let listen = peer.journal_method("subscriptions/listen").await;
    let inside = listen.raw_id();
    assert_ne!(inside, "7");

    let meta = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": "INSIDE"}});
    let params = meta.to_string().replace("\"INSIDE\"", inside);
    let methods = ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"];
    let notes = methods.map(|method| {
        json!({"send": format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)})
    });
    let end = format!(r#"{{"jsonrpc":"2.0","id":{inside},"result":{params}}}"#);
    let mark = peer.mark();
    peer.call("script", json!({"steps": [notes[0], notes[1], {"send": end}, {"result": "{}"}]}))
        .await;
    let seen = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#;
    for method in methods {
        assert_eq!(
            support::json::member(&peer.wait_method(method).await.text, "params"),
            Some(seen)
        );
    }
    assert_eq!(peer.answer_from(mark, "7").await.raw_result(), seen);
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
}
