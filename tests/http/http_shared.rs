//! Modern clients of one principal share a child: each gets what is its own, and nothing else
//! (protocol §6.3, §9, contract §10).

use std::time::Duration;

use serde_json::{Value, json};
use support::http::Response;
use support::{HttpPeer, Line, Peer, SUBSCRIPTION, TOOLS_CHANGED, call_params};
use tokio::time::timeout;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The ids of the processes that the calls of `tool` reached, each once.
fn reached(peer: &Peer, tool: &str) -> Vec<u32> {
    let mut pids: Vec<u32> = peer.calls_of(tool).iter().map(|call| call.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

// Children.

#[tokio::test]
async fn s10_modern_clients_share_one_child_for_each_principal() {
    let peer = Peer::serve("", &["--dual"]);
    for token in ["a", "a", "b", "b"] {
        peer.modern_as(token).await.call("echo", json!({"text": token})).await;
    }
    for _ in ["nobody", "nobody else"] {
        peer.modern().await.call("echo", json!({})).await;
    }
    assert_eq!((reached(&peer, "echo").len(), peer.started().len()), (3, 3));
    let of = |text: &str| {
        let calls = peer.calls_of("echo").into_iter();
        let own = calls.filter(|call| call.line.contains(text)).map(|call| call.pid);
        own.collect::<Vec<_>>()
    };
    let (a, b) = (of(r#""text":"a""#), of(r#""text":"b""#));
    assert!(a[0] == a[1] && b[0] == b[1] && a[0] != b[0], "{a:?} {b:?}");
}

#[tokio::test]
async fn s9_1_both_eras_are_served_at_once_each_by_a_child_of_its_own() {
    let peer = Peer::serve("", &["--dual"]);
    let (modern, legacy, other) =
        (peer.modern_as("a").await, peer.legacy_as("a").await, peer.legacy_as("a").await);
    let args = |text: &str| json!({"ms": 200, "text": text});
    let (m, l, o) = tokio::join!(
        modern.call("sleep", args("m")),
        legacy.call("sleep", args("l")),
        other.call("sleep", args("o")),
    );
    assert_eq!((m.text(), l.text(), o.text()), ("m", "l", "o"));
    assert_eq!(m.result()["resultType"], "complete");
    assert_eq!(l.result()["resultType"], Value::Null);
    assert_eq!((reached(&peer, "sleep").len(), peer.started().len()), (3, 3));
    assert_eq!(peer.received("initialize").len(), 2);
}

// Subscriptions.

async fn listen(client: &HttpPeer) -> Response {
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut stream = client.open("subscriptions/listen", params).await;
    let first = stream.message().await.expect("the acknowledgement");
    assert_eq!(first.method().as_deref(), Some(ACKNOWLEDGED), "it comes first");
    stream
}

fn subscription(line: &Line) -> Value {
    line.json()["params"]["_meta"][SUBSCRIPTION].clone()
}

/// Lets the server tell all its subscribers.
async fn change(client: &HttpPeer, method: &str) {
    let note = format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"_meta":{{"{SUBSCRIPTION}":$SUBSCRIPTION}}}}}}"#
    );
    client.call("script", json!({"steps": [{"send_apart": note}, {"result": "{}"}]})).await;
}

#[tokio::test]
async fn s9_25_subscriptions_of_equal_ids_each_carry_their_clients_own() {
    let peer = Peer::serve("", &["--dual"]);
    let clients = [peer.modern_as("a").await, peer.modern_as("a").await];
    let mut streams = [listen(&clients[0]).await, listen(&clients[1]).await];
    let caller = peer.modern_as("a").await;
    change(&caller, TOOLS_CHANGED).await;
    for stream in &mut streams {
        let told = stream.until_method(TOOLS_CHANGED).await;
        assert_eq!((subscription(&told), stream.seen.len()), (json!(1), 2));
        assert_eq!(subscription(&stream.seen[0]), json!(1));
    }
    let ids: Vec<_> = peer
        .received("subscriptions/listen")
        .iter()
        .map(|e| Line::new(e.line.as_bytes()).id().map(str::to_owned))
        .collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "one name for each inside: {ids:?}");
}

#[tokio::test]
async fn s9_25_a_subscription_outlasts_the_budget_and_ends_with_its_client() {
    let peer = Peer::serve("defaults.answer_within = \"500ms\"\n", &["--dual"]);
    let (listener, stays, caller) =
        (peer.modern_as("a").await, peer.modern_as("a").await, peer.modern_as("a").await);
    let (stream, mut other) = (listen(&listener).await, listen(&stays).await);
    drop(stream);
    peer.journal_method("notifications/cancelled").await;
    caller.call("sleep", json!({"ms": 1000})).await;
    change(&caller, TOOLS_CHANGED).await;
    other.until_method(TOOLS_CHANGED).await;
    assert_eq!(other.seen.len(), 2, "{:?}", other.seen);
    assert_eq!(peer.received("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn s9_25_a_subscription_is_told_nothing_of_other_principals() {
    let peer = Peer::serve("", &["--dual"]);
    let mut stream = listen(&peer.modern_as("a").await).await;
    change(&peer.modern_as("b").await, TOOLS_CHANGED).await;
    assert!(timeout(Duration::from_millis(300), stream.message()).await.is_err());
}

// Progress and logs.

#[tokio::test]
async fn s9_8_progress_under_equal_tokens_goes_to_whoever_asked() {
    let peer = Peer::serve("", &["--dual"]);
    let clients = [peer.modern_as("a").await, peer.modern_as("a").await];
    let open = async |client: &HttpPeer, steps: u64| {
        let mut params = call_params("progress", json!({"steps": steps, "ms": 300}));
        params["_meta"] = json!({"progressToken": "t"});
        let mut stream = client.open("tools/call", params).await;
        let answer = stream.answer().await;
        assert_eq!(answer.text(), format!("{steps} steps"));
        for line in &stream.seen[..steps as usize] {
            let params = &line.json()["params"];
            assert_eq!((&params["progressToken"], &params["total"]), (&json!("t"), &json!(steps)));
        }
        assert_eq!(stream.seen.len() as u64, steps + 1);
    };
    tokio::join!(open(&clients[0], 3), open(&clients[1], 5));
}

/// A call in which the server logs a line while two clients wait.
fn logs(file: &str, level: Option<&str>) -> Value {
    let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let steps = json!([{"wait_file": file}, {"send": line}, {"result": "{}"}]);
    let mut params = call_params("script", json!({"steps": steps}));
    if let Some(level) = level {
        params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
    }
    params
}

#[tokio::test]
async fn s9_26_log_lines_go_to_a_request_that_asked_for_them() {
    let peer = Peer::serve("", &["--dual"]);
    let (silent, loud) = (peer.modern_as("a").await, peer.modern_as("a").await);
    let release = async {
        peer.arrived("script", 2).await;
        peer.create("loud");
        peer.ended("script", 1).await;
        peer.create("silent");
    };
    let (mut quiet, mut told, ()) = tokio::join!(
        silent.open("tools/call", logs("silent", None)),
        loud.open("tools/call", logs("loud", Some("info"))),
        release,
    );
    told.until_method("notifications/message").await;
    told.answer().await;
    quiet.answer().await;
    assert_eq!((quiet.seen.len(), told.seen.len()), (1, 2), "{:?} {:?}", quiet.seen, told.seen);
}

#[tokio::test]
async fn s9_26_log_lines_that_nobody_asked_for_are_dropped() {
    let peer = Peer::serve("", &["--dual"]);
    let client = peer.modern_as("a").await;
    peer.create("now");
    let mut response = client.open("tools/call", logs("now", None)).await;
    assert_eq!(response.header("content-type"), "application/json");
    response.answer().await;
}
