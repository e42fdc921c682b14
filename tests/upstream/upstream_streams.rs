//! The streams of a server over HTTP: cut, resumed, lost, and those that belong to no request
//! (contract §7, §9; protocol §6.2).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Entry, Line, Peer, Setup, call_params, eventually};

const NOTE: &str = "notifications/x/note";
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const RESUMABLE: [&str; 3] = ["--event-ids", "--retry", "20"];

fn note(number: u64) -> Value {
    let line = json!({"jsonrpc": "2.0", "method": NOTE, "params": {"n": number}});
    json!({"send": line.to_string()})
}

/// The numbers of the notes that came.
fn notes(peer: &Peer) -> Vec<u64> {
    let notes = peer.notifications().into_iter();
    let notes = notes.filter(|line| line.has_method(NOTE));
    notes.filter_map(|line| line.json()["params"]["n"].as_u64()).collect()
}

/// The GETs that resumed a stream.
fn resumptions(peer: &Peer) -> Vec<Entry> {
    let gets = peer.journal().into_iter();
    gets.filter(|entry| entry.header("last-event-id").is_some()).collect()
}

fn openings(peer: &Peer) -> usize {
    peer.told("initialize")
}

// Resumption.

#[tokio::test]
async fn s9_a_stream_that_is_cut_again_and_again_is_resumed() {
    let peer = Peer::opened(Setup::remote(&RESUMABLE)).await;
    let steps = json!([
        note(1), "close_stdout", note(2), "end_stream", note(3), "close_stdout", {"sleep": 100},
        note(4), "end_stream", {"result": "{\"n\":1.10}"}
    ]);
    assert_eq!(peer.script(steps).await.raw_result(), "{\"n\":1.10}");
    assert_eq!(notes(&peer), [1, 2, 3, 4], "nothing is lost, nothing comes twice");
    assert_eq!(peer.calls_of("script").len(), 1, "the call is not repeated");
    let session = peer.calls_of("script")[0].header("mcp-session-id").map(str::to_owned);
    for get in resumptions(&peer) {
        assert_eq!(get.header("mcp-session-id").map(str::to_owned), session);
        assert_eq!(get.header("accept"), Some("text/event-stream"));
    }
    assert_eq!(openings(&peer), 1);
}

#[tokio::test]
async fn s9_a_stream_cut_right_after_its_priming_event_is_resumed() {
    for ending in ["close_stdout", "end_stream"] {
        let peer = Peer::opened(Setup::remote(&RESUMABLE)).await;
        let steps = json!([ending, {"wait_file": peer.path("go")}, {"result": "7"}]);
        let call = peer.start("script", json!({"steps": steps})).await;
        let get = peer.journal_wait(|entry| entry.header("last-event-id").is_some()).await;
        assert!(get.header("last-event-id").is_some_and(|id| id.ends_with("-0")));
        peer.create("go");
        assert_eq!(peer.answer(&call).await.raw_result(), "7");
    }
}

#[tokio::test]
async fn s9_a_job_outlives_a_server_that_cuts_every_stream() {
    let peer = Peer::opened(Setup::remote(&RESUMABLE).flags(&["--cut-after", "100"])).await;
    let handle = peer.park("go").await;
    let several = || async { (resumptions(&peer).len() >= 4).then_some(()) };
    eventually(several).await.expect("the stream is resumed each time");
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go");
    assert_eq!(peer.calls_of("wait_file").len(), 1);
}

#[tokio::test]
async fn s9_the_server_says_how_long_to_wait_before_a_stream_is_resumed() {
    let peer = Peer::opened(Setup::remote(&["--event-ids", "--retry", "400"])).await;
    let call = peer.start_until("go").await;
    let cut = Instant::now();
    peer.upstream().cut_streams().await;
    let is_of_the_call = |entry: &Entry| entry.header("last-event-id").is_some();
    peer.journal_wait(is_of_the_call).await;
    assert!(cut.elapsed() >= Duration::from_millis(400), "{:?}", cut.elapsed());
    peer.create("go");
    assert_eq!(peer.answer(&call).await.text(), "go");
}

#[tokio::test]
async fn s9_a_server_that_does_not_know_the_event_has_lost_the_call() {
    let peer = Peer::opened(Setup::remote(&RESUMABLE)).await;
    let call = peer.start("sleep", json!({"ms": 60_000})).await;
    peer.arrived("sleep", 1).await;
    let gone = json!({"on": "GET", "status": 404});
    peer.upstream().fault(gone).await;
    peer.upstream().cut_streams().await;
    is_unknown(&peer, &call).await;
}

/// The call failed, its model is told how, and the next call works.
async fn is_unknown(peer: &Peer, call: &str) {
    peer.answer(call).await.assert_outcome_unknown();
    peer.assert_works().await;
    let calls = peer.received("tools/call").len() - peer.calls_of("echo").len();
    assert_eq!(calls, peer.calls_of("echo").len(), "no call is repeated");
}

#[tokio::test]
async fn s7_a_legacy_stream_cut_without_ids_is_an_unknown_outcome() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    for ending in ["close_stdout", "end_stream"] {
        let call = peer.start("script", json!({"steps": [ending, {"sleep": 60_000}]})).await;
        is_unknown(&peer, &call).await;
    }
    assert_eq!(openings(&peer), 1, "the session goes on");
}

#[tokio::test]
async fn s7_a_modern_stream_that_is_cut_is_an_unknown_outcome() {
    let peer = Peer::opened_modern(Setup::remote(&["--event-ids"]));
    let call = peer.start("sleep", json!({"ms": 60_000})).await;
    peer.arrived("sleep", 1).await;
    peer.upstream().cut_streams().await;
    is_unknown(&peer, &call).await;
    let posts = peer.journal().into_iter().filter(Entry::is_http);
    assert!(posts.into_iter().all(|entry| entry.http_method() == Some("POST")));
}

#[tokio::test]
async fn s7_a_job_whose_stream_is_cut_fails_for_good() {
    for modern_era in [false, true] {
        let peer = if modern_era {
            Peer::opened_modern(Setup::remote(&[]))
        } else {
            Peer::opened(Setup::remote(&[])).await
        };
        let handle = peer.defer("sleep", json!({"ms": 60_000})).await;
        peer.upstream().cut_streams().await;
        let end = peer.finish(handle).await;
        assert_eq!((end.status(), end.is_error()), ("failed", true));
        assert!(end.text().contains("outcome unknown"), "{}", end.raw);
        assert_eq!(peer.calls_of("sleep").len(), 1);
    }
}

#[tokio::test]
async fn s1_1_a_request_that_is_no_call_fails_with_its_stream() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    let fault = json!({"on": "prompts/list", "drop": true});
    peer.upstream().fault(fault).await;
    assert_eq!(peer.ask("prompts/list", json!({})).await.error_code(), -32603);
    assert_eq!(peer.told("prompts/list"), 1);
}

// What is on a stream besides messages.

#[tokio::test]
async fn s9_comments_retries_and_other_events_are_passed_over() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    let odd = ": alive\n\nretry: 7\n\nevent: ping\ndata: {}\n\ndata: \n\ndata: no JSON\n\nx: y\n\n";
    let steps = json!([{"write": odd}, note(1), {"write": odd}, {"result": "7"}]);
    assert_eq!(peer.script(steps).await.raw_result(), "7");
    assert_eq!(notes(&peer), [1]);
    peer.lines().iter().for_each(Line::assert_protocol);
}

#[tokio::test]
async fn s9_events_with_cr_lf_and_in_single_bytes_are_read() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    let event = "event: message\r\nid: 9\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":$ID,\"result\":7}\r\n\r\n";
    assert_eq!(peer.script(json!([{"write": event}])).await.raw_result(), "7");
}

// Servers that answer with JSON.

#[tokio::test]
async fn s9_a_server_may_answer_everything_with_json() {
    let peer = Peer::opened(Setup::remote(&["--json"])).await;
    let handle = peer.park("go").await;
    let steps = json!([note(1), note(2), {"result": "7"}]);
    assert_eq!(peer.script(steps).await.raw_result(), "7");
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go");
    peer.wait_line(|line| line.json()["params"]["n"] == 2).await;
    assert_eq!(notes(&peer), [1, 2], "they come on the stream of the GET");
}

#[tokio::test]
async fn s9_progress_that_comes_on_the_get_reaches_its_caller() {
    let peer = Peer::opened(Setup::remote(&["--json"])).await;
    let meta = json!({"progressToken": "abc"});
    let call = call_params("progress", json!({"steps": 2, "ms": 300}));
    let mut params = call;
    params["_meta"] = meta;
    let id = peer.request("tools/call", params).await;
    let first = peer.wait_method("notifications/progress").await;
    assert_eq!(first.json()["params"]["progressToken"], "abc");
    assert_eq!(peer.answer(&id).await.text(), "2 steps");
}

#[tokio::test]
async fn s1_1_a_question_on_the_stream_of_the_get_is_asked_and_answered() {
    for flags in [&["--questions-apart"][..], &["--questions-apart", "--json"]] {
        for served in [false, true] {
            let setup = if served { Setup::remote(flags).served() } else { Setup::remote(flags) };
            let peer = Peer::opened(setup).await;
            let id = peer.start("ask", json!({})).await;
            let question = peer.wait_method("elicitation/create").await;
            peer.respond(&question, "1.10").await;
            assert_eq!(peer.answer(&id).await.text(), "1.10");
        }
    }
}

// The stream of the GET.

#[tokio::test]
async fn s9_the_stream_of_the_get_is_opened_again_when_it_is_cut() {
    let peer = Peer::opened(Setup::remote(&RESUMABLE)).await;
    let is_get = |entry: &Entry| entry.http_method() == Some("GET");
    peer.journal_wait(is_get).await;
    peer.upstream().cut_streams().await;
    let again =
        || async { (peer.journal().iter().filter(|e| is_get(e)).count() >= 2).then_some(()) };
    eventually(again).await.expect("it is opened again");
    peer.script(json!([{"send_apart": CHANGED}, {"result": "{}"}])).await;
    peer.wait_method("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn s9_a_server_without_a_stream_of_its_own_serves_all_the_same() {
    let fault = json!({"on": "GET", "status": 405}).to_string();
    let peer = Peer::opened(Setup::remote(&["--fault", &fault])).await;
    let handle = peer.park("go").await;
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go");
    let gets = peer.journal().into_iter().filter(|entry| entry.http_method() == Some("GET"));
    assert!(gets.count() <= 1, "it is asked once");
}

/// Not even one that answers its GET as it would a forgotten session's.
#[tokio::test]
async fn s9_a_404_to_every_get_is_no_reason_to_begin_again_and_again() {
    let fault = json!({"on": "GET", "status": 404}).to_string();
    let peer = Peer::opened(Setup::remote(&["--fault", &fault])).await;
    for _ in 0..20 {
        assert_eq!(peer.call("sleep", json!({"ms": 20, "text": "hi"})).await.text(), "hi");
    }
    assert_eq!((openings(&peer), peer.calls_of("sleep").len()), (1, 20));
}

/// Nor one that does so once its stream was cut.
#[tokio::test]
async fn s9_a_404_to_a_stream_that_was_cut_is_one_renewal_at_most() {
    let peer = Peer::opened(Setup::remote(&RESUMABLE)).await;
    peer.journal_wait(|entry| entry.http_method() == Some("GET")).await;
    peer.upstream().fault(json!({"on": "GET", "status": 404})).await;
    peer.upstream().cut_streams().await;
    for _ in 0..20 {
        assert_eq!(peer.call("sleep", json!({"ms": 20, "text": "hi"})).await.text(), "hi");
    }
    assert!(openings(&peer) <= 2, "{} times", openings(&peer));
    assert_eq!(peer.calls_of("sleep").len(), 20);
}

// Cancels.

#[tokio::test]
async fn s6_a_call_is_cancelled_before_its_answer_begins() {
    for modern_era in [false, true] {
        let flags = ["--late-headers"];
        let peer = if modern_era {
            Peer::opened_modern(Setup::remote(&flags))
        } else {
            Peer::opened(Setup::remote(&flags)).await
        };
        let id = peer.start("sleep", json!({"ms": 60_000})).await;
        peer.arrived("sleep", 1).await;
        peer.cancel(&id, "the user").await;
        peer.journal_wait(|entry| entry.event == "call_ended").await;
        assert_eq!(peer.told("notifications/cancelled"), usize::from(!modern_era));
        let hung_up = peer.journal().iter().any(|entry| entry.event == "disconnect");
        assert_eq!(hung_up, modern_era);
        peer.settle().await;
        assert_eq!(peer.answers(&id), []);
    }
}

#[tokio::test]
async fn c03_what_a_server_says_after_a_cancel_goes_nowhere() {
    let peer = Peer::opened(Setup::remote(&[])).await;
    let id = peer.start("sleep", json!({"ms": 300, "ignore_cancel": true})).await;
    peer.arrived("sleep", 1).await;
    peer.cancel(&id, "the user").await;
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.settle().await;
    assert_eq!(peer.answers(&id), []);
}
