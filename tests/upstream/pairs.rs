//! Every pair of transports and eras: what is promised holds whatever the client and the server speak
//! (contract §1, §1.2, §4, §5, §6).

use serde_json::{Value, json};
use support::json::{elements, member};
use support::{
    Answer, Line, MODERN, Peer, SUBSCRIPTION, Setup, TOOLS_CHANGED, Transport, call_message,
    call_params, turn,
};

/// One row of the table.
#[derive(Clone, Copy)]
struct Pair {
    /// Streamable HTTP downstream, else stdio.
    served: bool,
    /// The server's transport; a child of the proxy where there is none.
    upstream: Option<Transport>,
    revision: &'static str,
}

/// Runs each scenario with each pair, in a module named after the pair.
macro_rules! table {
    ($($pair:ident: $served:literal, $upstream:expr, $revision:expr;)*) => { $(
        mod $pair {
            use super::*;
            scenarios! { Pair { served: $served, upstream: $upstream, revision: $revision } }
        }
    )* };
}

macro_rules! scenarios {
    ($pair:expr) => {
        scenarios! { $pair,
            s1_a_fast_call_is_as_without_the_proxy
            s4_a_slow_call_gets_a_handle_and_its_result_later
            s1_1_progress_comes_whole_and_in_order_under_the_clients_token
            s6_a_users_cancel_reaches_the_server
            s5_2_job_cancel_reaches_the_server
            c47_a_question_of_the_server_is_asked_and_answered
            s8_4_a_question_of_a_job_is_asked_and_answered
            s1_1_the_two_tools_are_listed_after_the_servers_own
            s1_1_a_log_message_reaches_the_client
            c80_list_changed_comes_once
            s1_1_5_mb_are_the_same_bytes_both_ways
            s1_1_errors_of_both_kinds_are_the_servers
            s1_1_a_batch_is_answered_by_one_array_where_it_is_legal
        }
    };
    ($pair:expr, $($scenario:ident)*) => { $(
        #[tokio::test]
        async fn $scenario() {
            let pair = $pair;
            super::$scenario(pair, pair.open().await).await;
        }
    )* };
}

table! {
    stdio_child_2025_03_26: false, None, "2025-03-26";
    stdio_child_2025_11_25: false, None, "2025-11-25";
    stdio_child_2026_07_28: false, None, MODERN;
    stdio_http_2025_03_26: false, Some(Transport::Http), "2025-03-26";
    stdio_http_2025_11_25: false, Some(Transport::Http), "2025-11-25";
    stdio_http_2026_07_28: false, Some(Transport::Http), MODERN;
    stdio_sse_2024_11_05: false, Some(Transport::Sse), "2024-11-05";
    stdio_sse_2025_11_25: false, Some(Transport::Sse), "2025-11-25";
    http_child_2025_03_26: true, None, "2025-03-26";
    http_child_2025_11_25: true, None, "2025-11-25";
    http_child_2026_07_28: true, None, MODERN;
    http_http_2025_03_26: true, Some(Transport::Http), "2025-03-26";
    http_http_2025_11_25: true, Some(Transport::Http), "2025-11-25";
    http_http_2026_07_28: true, Some(Transport::Http), MODERN;
    http_sse_2024_11_05: true, Some(Transport::Sse), "2024-11-05";
    http_sse_2025_11_25: true, Some(Transport::Sse), "2025-11-25";
}

impl Pair {
    fn is_modern(self) -> bool {
        self.revision == MODERN
    }

    /// A client whose server is found over `transport = "auto"` and checks all headers.
    async fn open(self) -> Peer {
        let mut setup = Setup::proxied().flags(&["--strict"]);
        setup = if self.is_modern() { setup.flags(&["--modern"]) } else { setup };
        setup = if self.served { setup.served() } else { setup };
        setup = match self.upstream {
            Some(transport) => setup.upstream(transport),
            None => setup,
        };
        let peer = setup.spawn();
        if self.is_modern() {
            peer.become_modern("test-client", json!({"elicitation": {"form": {}}}));
        } else {
            peer.initialize_under(self.revision).await;
        }
        peer
    }

    /// The result of a tool that answers with text, as the fake server writes it.
    fn text_result(self, text: &str) -> String {
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        if self.is_modern() {
            result["resultType"] = "complete".into();
        }
        result.to_string()
    }
}

async fn s1_a_fast_call_is_as_without_the_proxy(pair: Pair, peer: Peer) {
    let answer = peer.call("echo", json!({"text": "hi"})).await;
    assert_eq!(answer.raw_result(), pair.text_result("hi"));
    let odd = r#"{ "content":[],"n":[1.10,1e400,-0,9007199254740993],"x":{"b":1,"a":2} }"#;
    assert_eq!(peer.call("raw", json!({"result": odd})).await.raw_result(), odd);
    assert_eq!((peer.calls_of("echo").len(), peer.calls_of("raw").len()), (1, 1));
    assert_eq!(peer.jobs().await, Vec::<Value>::new(), "no job is left");
}

async fn s4_a_slow_call_gets_a_handle_and_its_result_later(pair: Pair, peer: Peer) {
    let handle = peer.park("go").await;
    assert_eq!(handle.status(), "working");
    assert_eq!(handle.structured().is_object(), pair.revision >= "2025-06-18");
    assert_eq!(handle.json["result"]["resultType"] == "complete", pair.is_modern());
    let looked = peer.look(handle.job_id()).await;
    assert_eq!((looked.job_id(), looked.status()), (handle.job_id(), "working"));
    peer.create("go");
    let result = peer.finish(looked).await;
    assert_eq!((result.text(), result.status()), ("go", "completed"));
    assert_eq!(peer.finish(handle).await.text(), "go", "reading does not consume");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
}

async fn s1_1_progress_comes_whole_and_in_order_under_the_clients_token(_: Pair, peer: Peer) {
    for token in [json!("abc"), json!(0)] {
        let mark = peer.mark();
        let meta = json!({"progressToken": token});
        let answer = peer.call_with_meta("progress", json!({"steps": 5, "ms": 50}), meta).await;
        assert_eq!(answer.text(), "5 steps");
        let lines = peer.lines().split_off(mark);
        let before_the_answer = lines.iter().take_while(|line| line.method().is_some());
        let notes: Vec<Value> =
            before_the_answer.map(|line| line.json()["params"].clone()).collect();
        let steps: Vec<_> = notes.iter().map(|note| note["progress"].as_u64()).collect();
        assert_eq!(steps, [1, 2, 3, 4, 5].map(Some));
        assert!(notes.iter().all(|note| note["progressToken"] == token), "{notes:?}");
    }
}

/// The server stops, told by the means of its transport and era.
async fn stops(pair: Pair, peer: &Peer) {
    peer.journal_wait(|entry| entry.event == "call_ended" && entry.json["tool"] == "sleep").await;
    let hangs_up = pair.is_modern() && pair.upstream.is_some();
    assert_eq!(peer.told("notifications/cancelled"), usize::from(!hangs_up));
    let hung_up = peer
        .journal()
        .iter()
        .any(|entry| entry.event == "disconnect" && entry.json["method"] == "tools/call");
    assert_eq!(hung_up, hangs_up);
    peer.assert_works().await;
    assert_eq!(peer.calls_of("sleep").len(), 1);
}

async fn s6_a_users_cancel_reaches_the_server(pair: Pair, peer: Peer) {
    let id = peer.start("sleep", json!({"ms": 60_000})).await;
    peer.arrived("sleep", 1).await;
    peer.cancel(&id, "the user").await;
    stops(pair, &peer).await;
    if !pair.served {
        assert_eq!(peer.answers(&id), []);
    }
}

async fn s5_2_job_cancel_reaches_the_server(pair: Pair, peer: Peer) {
    let handle = peer.defer("sleep", json!({"ms": 60_000})).await;
    assert_eq!(peer.job_cancel(handle.job_id()).await.status(), "cancelled");
    stops(pair, &peer).await;
    assert_eq!(peer.look(handle.job_id()).await.status(), "cancelled");
}

async fn c47_a_question_of_the_server_is_asked_and_answered(pair: Pair, peer: Peer) {
    if pair.is_modern() {
        return input_is_required(&peer).await;
    }
    let id = peer.start("ask", json!({"message": "Which?"})).await;
    let question = peer.wait_method("elicitation/create").await;
    assert_eq!(question.json()["params"]["message"], "Which?");
    peer.respond(&question, r#"{"action":"accept","content":{"n":1.10}}"#).await;
    assert_eq!(peer.answer(&id).await.text(), r#"{"action":"accept","content":{"n":1.10}}"#);
}

/// A question of 2026-07-28 is a result, and its answer goes with a call of its own.
async fn input_is_required(peer: &Peer) {
    let first = peer.call("ask", json!({})).await;
    assert_eq!(first.result()["resultType"], "input_required");
    assert_eq!(first.result()["inputRequests"]["choice"]["method"], "elicitation/create");
    let responses = json!({"choice": {"action": "accept", "content": {}}});
    let params = json!({"name": "ask", "arguments": {}, "inputResponses": responses,
        "requestState": first.result()["requestState"]});
    let second = peer.ask("tools/call", params).await;
    assert_eq!(second.text(), responses.to_string());
}

async fn s8_4_a_question_of_a_job_is_asked_and_answered(pair: Pair, peer: Peer) {
    let handle = peer.defer("ask", json!({"ms": 400})).await;
    if pair.is_modern() {
        let question = peer.follow(&handle).await;
        assert_eq!(question.result()["resultType"], "input_required", "{}", question.raw);
        let responses = json!({"choice": {"action": "accept", "content": {}}});
        let arguments = json!({"job_id": handle.job_id()});
        let params = json!({"name": "job_get", "arguments": arguments,
            "inputResponses": responses, "requestState": question.result()["requestState"]});
        let end = peer.ask("tools/call", params).await;
        return assert_eq!(peer.finish(end).await.text(), responses.to_string());
    }
    let question = peer.wait_method("elicitation/create").await;
    peer.respond(&question, r#"{"action":"decline","n":1.10}"#).await;
    assert_eq!(peer.finish(handle).await.text(), r#"{"action":"decline","n":1.10}"#);
}

async fn s1_1_the_two_tools_are_listed_after_the_servers_own(_: Pair, peer: Peer) {
    let list = peer.ask("tools/list", json!({})).await;
    let tools = list.result()["tools"].as_array().expect("tools");
    let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!((names.len(), &names[13..]), (15, &["job_get", "job_cancel"][..]));
    assert!(tools.iter().all(|tool| tool.get("outputSchema").is_none()), "a handle fits none");
}

async fn s1_1_a_log_message_reaches_the_client(pair: Pair, peer: Peer) {
    let message = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.10}}"#;
    let mut params = call_params("script", json!({"steps": [{"send": message}, {"result": "7"}]}));
    if pair.is_modern() {
        params["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
    }
    assert_eq!(peer.ask("tools/call", params).await.raw_result(), "7");
    assert_eq!(peer.wait_method("notifications/message").await.text, message);
}

async fn c80_list_changed_comes_once(pair: Pair, peer: Peer) {
    let mut changed = format!(r#"{{"jsonrpc":"2.0","method":"{TOOLS_CHANGED}"}}"#);
    let mut subscription = String::new();
    if pair.is_modern() {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        subscription = peer.request("subscriptions/listen", wanted).await;
        peer.wait_method("notifications/subscriptions/acknowledged").await;
        changed = format!(
            r#"{{"jsonrpc":"2.0","method":"{TOOLS_CHANGED}","params":{{"_meta":{{"{SUBSCRIPTION}":$SUBSCRIPTION}}}}}}"#
        );
    }
    peer.script(json!([{"send_apart": changed}, {"result": "{}"}])).await;
    let note = peer.wait_method(TOOLS_CHANGED).await;
    if pair.is_modern() {
        assert_eq!(note.json()["params"]["_meta"][SUBSCRIPTION].to_string(), subscription);
    }
    peer.settle().await;
    let notes = peer.notifications();
    assert_eq!(notes.iter().filter(|note| note.has_method(TOOLS_CHANGED)).count(), 1);
}

async fn s1_1_5_mb_are_the_same_bytes_both_ways(pair: Pair, peer: Peer) {
    let _turn = turn().await;
    let pattern = "5 MB: é🦀\u{2028}\"\\\n";
    let text = pattern.repeat(5_000_000 / pattern.len());
    let answer = peer.call("echo", json!({"text": text})).await;
    assert!(answer.raw_result() == pair.text_result(&text), "{} bytes differ", answer.raw.len());
    assert_eq!(peer.calls_of("echo").len(), 1);
}

async fn s1_1_errors_of_both_kinds_are_the_servers(_: Pair, peer: Peer) {
    let error = r#"{"code":-7,"message":"\u006eo","data":{"n":1.10}}"#;
    assert_eq!(peer.call("raw", json!({"error": error})).await.raw_error(), error);
    let failed = r#"{"isError":true,"content":[{"type":"text","text":"no"}],"n":1.10}"#;
    let answer = peer.call("raw", json!({"result": failed})).await;
    assert_eq!((answer.raw_result(), answer.is_error()), (failed, true));
    assert_eq!(peer.ask("x/unknown", json!({})).await.error_code(), -32601);
}

/// Elsewhere there is nothing to show.
async fn s1_1_a_batch_is_answered_by_one_array_where_it_is_legal(pair: Pair, peer: Peer) {
    if pair.revision != "2025-03-26" {
        return;
    }
    let call = |id: &str, text: &str| call_message(id, "echo", json!({"text": text}));
    peer.send_raw(&json!([call("a", "1"), call("b", "2")]).to_string()).await;
    let is_array = |line: &Line| line.text.starts_with('[');
    let array = peer.wait_line(is_array).await;
    let answers = elements(&array.text).expect("an array");
    let mut texts: Vec<_> = answers
        .into_iter()
        .map(|answer| {
            (member(answer, "id").map(str::to_owned), Answer::new(answer).text().to_owned())
        })
        .collect();
    texts.sort();
    assert_eq!(texts, [(Some("\"a\"".into()), "1".into()), (Some("\"b\"".into()), "2".into())]);
}
