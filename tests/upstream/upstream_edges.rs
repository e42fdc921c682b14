//! Servers over HTTP at their beginning and end: handshakes that fail or hang, subscriptions, many
//! calls at once, and a goodbye that nobody takes (contract §7, §9).

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use support::{Entry, Peer, Setup, Transport};

// Handshakes.

#[tokio::test]
async fn c42_a_new_session_that_is_refused_fails_its_call_and_the_next_tries_again() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    peer.upstream().forget_sessions().await;
    peer.upstream().fault(json!({"on": "initialize", "status": 503, "times": 1})).await;
    peer.call("echo", json!({})).await.assert_not_started();
    peer.assert_works().await;
}

#[tokio::test]
async fn c42_a_new_session_that_never_opens_fails_its_call_in_time() {
    let toml = "[upstream]\nstart_timeout = \"500ms\"";
    let peer = Peer::opened_and_listed(Setup::remote(&[]).config(toml)).await;
    peer.upstream().forget_sessions().await;
    peer.upstream().fault(json!({"on": "initialize", "delay_ms": 60_000, "times": 1})).await;
    let since = Instant::now();
    peer.call("echo", json!({})).await.assert_not_started();
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    peer.assert_works().await;
}

#[tokio::test]
async fn s9_a_handshake_that_is_refused_may_be_tried_again() {
    let peer = Setup::remote(&[]).spawn();
    for status in [500, 401, 429] {
        peer.upstream().fault(json!({"on": "initialize", "status": status, "times": 1})).await;
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        let refused = peer.ask("initialize", params).await;
        assert!(refused.error().to_string().contains(&status.to_string()), "{}", refused.raw);
    }
    peer.initialize().await;
    peer.assert_works().await;
}

#[tokio::test]
async fn s9_a_server_slow_to_take_initialized_does_not_hold_up_the_calls() {
    let fault = json!({"on": "notifications/initialized", "delay_ms": 15_000}).to_string();
    let peer = Peer::opened(Setup::remote(&["--fault", &fault])).await;
    let since = Instant::now();
    peer.assert_works().await;
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[tokio::test]
async fn s9_nothing_overtakes_the_handshake() {
    let peer = Setup::remote(&["--slow-start", "200"]).spawn();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let opening = peer.request("initialize", params).await;
    peer.notify("notifications/initialized", json!({})).await;
    let call = peer.start("echo", json!({"text": "hi"})).await;
    assert!(!peer.answer(&opening).await.is_rpc_error());
    assert_eq!(peer.answer(&call).await.text(), "hi");
    let methods: Vec<_> = peer.journal().iter().filter_map(Entry::method).collect();
    assert_eq!(methods[..2], ["initialize", "notifications/initialized"]);
    assert!(peer.calls_of("echo")[0].header("mcp-session-id").is_some());
}

// Streams.

#[tokio::test]
async fn s9_a_stream_of_a_forgotten_session_can_not_be_resumed() {
    let peer = Peer::opened_and_listed(Setup::remote(&["--event-ids", "--retry", "20"])).await;
    let handle = peer.defer("sleep", json!({"ms": 60_000})).await;
    peer.upstream().forget_sessions().await;
    peer.upstream().cut_streams().await;
    let end = peer.finish(handle).await;
    assert!(end.text().contains("outcome unknown"), "{}", end.raw);
    peer.assert_works().await;
    assert_eq!(peer.calls_of("sleep").len(), 1);
}

#[tokio::test]
async fn c28_an_answer_that_comes_twice_is_passed_on_once() {
    let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
    let answer = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":7}\n\n";
    let steps = json!([{"write": answer}, {"write": answer}, {"sleep": 50}, {"result": "8"}]);
    let call = peer.start("script", json!({"steps": steps})).await;
    assert_eq!(peer.answer(&call).await.raw_result(), "7");
    peer.journal_wait(|entry| entry.event == "call_ended").await;
    peer.settle().await;
    assert_eq!(peer.answers(&call).len(), 1);
}

/// A subscription whose stream is cut is over, and its client is told; another one works.
#[tokio::test]
async fn s9_a_subscription_that_is_cut_is_told_to_its_client() {
    for served in [false, true] {
        let setup = Setup::remote(&["--modern"]);
        let peer = if served { setup.served().spawn() } else { setup.spawn() };
        peer.become_modern("test-client", json!({}));
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let first = peer.request("subscriptions/listen", wanted.clone()).await;
        peer.wait_method("notifications/subscriptions/acknowledged").await;
        peer.upstream().cut_streams().await;
        peer.answer(&first).await;
        let mark = peer.mark();
        let second = peer.request("subscriptions/listen", wanted).await;
        let acknowledged = peer.wait_line_from(mark, |line| line.is_notification()).await;
        let id = &acknowledged.json()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(id.to_string(), second);
    }
}

#[tokio::test]
async fn s6_the_cancel_of_a_subscription_ends_it_at_the_server() {
    for served in [false, true] {
        let setup = Setup::remote(&["--modern"]);
        let peer = if served { setup.served().spawn() } else { setup.spawn() };
        peer.become_modern("test-client", json!({}));
        let id = peer.request("subscriptions/listen", json!({"notifications": {}})).await;
        peer.wait_method("notifications/subscriptions/acknowledged").await;
        peer.cancel(&id, "enough").await;
        let hung_up = |entry: &Entry| {
            entry.event == "disconnect" && entry.json["method"] == "subscriptions/listen"
        };
        peer.journal_wait(hung_up).await;
    }
}

// Many.

#[tokio::test]
async fn c28_200_calls_at_once_are_each_answered() {
    for transport in [Transport::Http, Transport::Sse] {
        let peer = Peer::opened_and_listed(Setup::proxied().upstream(transport)).await;
        let mut calls = vec![];
        for number in 0..200 {
            let text = format!("call {number}");
            let id = peer.start("sleep", json!({"ms": 200 - number, "text": text})).await;
            calls.push((id, text));
        }
        for (id, text) in &calls {
            assert_eq!(peer.answer(id).await.text(), text);
        }
        assert_eq!(peer.calls_of("sleep").len(), 200);
    }
}

// The end.

/// The longest that the end may take over stdio (§9), and to be noticed.
const END: Duration = Duration::from_millis(3500);

#[tokio::test]
async fn s9_a_server_that_takes_no_goodbye_holds_nobody_up() {
    for signal in [None, Some(Signal::SIGTERM)] {
        let peer = Peer::opened_and_listed(Setup::remote(&[])).await;
        peer.upstream().fault(json!({"on": "DELETE", "delay_ms": 60_000})).await;
        peer.defer("sleep", json!({"ms": 60_000})).await;
        let since = Instant::now();
        match signal {
            Some(signal) => peer.signal(signal),
            None => peer.close_stdin().await,
        }
        peer.exit().await;
        assert!(since.elapsed() < END, "{:?}", since.elapsed());
    }
}

#[tokio::test]
async fn c37_answers_under_way_are_delivered_at_the_end_of_stdin() {
    for transport in [Transport::Http, Transport::Sse] {
        let peer = Peer::opened_and_listed(Setup::proxied().upstream(transport)).await;
        let mut calls = vec![];
        for _ in 0..5 {
            calls.push(peer.start("sleep", json!({"ms": 100, "text": "hi"})).await);
        }
        peer.close_stdin().await;
        for call in &calls {
            assert_eq!(peer.answer(call).await.text(), "hi");
        }
        assert!(peer.exit().await.success());
    }
}
