//! What goes back to a legacy client, and on which stream (protocol §6.2, contract §1.1, C47).

use serde_json::{Value, json};
use support::http::Response;
use support::{HttpPeer, Line, Peer, TOOLS_CHANGED, call_params};

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// Lets the server write lines while the client waits for nothing.
async fn send_apart(peer: &Peer, client: &HttpPeer, lines: &[&str]) {
    let number = peer.calls_of("script").len();
    let file = format!("apart-{number}");
    let mut steps = vec![json!({"wait_file": file})];
    steps.extend(lines.iter().map(|line| json!({"send_apart": line})));
    steps.push(json!({"result": "{}"}));
    client.defer("script", json!({"steps": steps})).await;
    peer.create(&file);
    peer.ended("script", number + 1).await;
}

async fn with_progress(client: &HttpPeer, tool: &str, args: Value, token: Value) -> Response {
    let mut params = call_params(tool, args);
    params["_meta"] = json!({"progressToken": token});
    client.open("tools/call", params).await
}

fn token_of(line: &Line) -> Value {
    line.json()["params"]["progressToken"].clone()
}

// JSON or events.

#[tokio::test]
async fn s6_2_an_answer_alone_is_json() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    for (tool, args) in
        [("echo", json!({})), ("sleep", json!({"ms": 300})), ("rpc_error", json!({}))]
    {
        let response = client.start(tool, args).await;
        assert_eq!((response.status, response.header("content-type")), (200, "application/json"));
    }
}

#[tokio::test]
async fn s6_2_progress_and_then_the_answer_are_events_with_ids_of_their_own() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let mut ids = vec![];
    for token in [json!("abc"), json!(7), json!(0)] {
        let mut stream =
            with_progress(&client, "progress", json!({"steps": 3}), token.clone()).await;
        assert!(stream.is_events());
        assert!(stream.header("cache-control").contains("no-cache"));
        let mut messages = 0;
        while let Some(event) = stream.event().await {
            messages += usize::from(event.is_message());
            ids.extend(event.id);
            let line = Line::new(event.data.expect("no comment is needed here").as_bytes());
            line.assert_protocol();
            if line.is_notification() {
                assert_eq!(token_of(&line), token);
            }
        }
        assert_eq!(messages, 4, "three of progress, and the answer that ends the stream");
    }
    assert_eq!(ids.len(), 12);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 12, "unique in the session");
}

#[tokio::test]
async fn s6_2_a_client_that_takes_json_alone_gets_the_answer_alone() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let call =
        json!({"name": "progress", "arguments": {"steps": 3}, "_meta": {"progressToken": 1}});
    let message = client.request("tools/call", call);
    let mut response = client.post_with(&message, &[("accept", "application/json")]).await;
    assert_eq!(response.header("content-type"), "application/json");
    assert_eq!(response.answer().await.text(), "3 steps");
    assert_eq!(response.seen.len(), 1);
}

// The standing stream.

#[tokio::test]
async fn s6_2_the_standing_stream_gets_what_belongs_to_no_call_once() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let mut standing = client.get_stream().await;
    assert!(standing.is_events() && standing.status == 200);
    let mut others = peer.legacy().await.get_stream().await;
    send_apart(&peer, &client, &[&note(TOOLS_CHANGED)]).await;
    let seen = standing.until_method(TOOLS_CHANGED).await;
    send_apart(&peer, &client, &[&note("notifications/x")]).await;
    standing.until_method("notifications/x").await;
    assert_eq!(standing.seen.len(), 2, "nothing twice: {seen:?} {:?}", standing.seen);
    let nothing = tokio::time::timeout(std::time::Duration::from_millis(300), others.message());
    assert!(nothing.await.is_err(), "another session's stream");
}

/// A child does not say what belongs to a call; what can belong to none goes past the one that is open.
#[tokio::test]
async fn s6_2_news_of_a_child_come_on_the_standing_stream_though_a_call_is_open() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let mut standing = client.get_stream().await;
    let updated = "notifications/resources/updated";
    let log = "notifications/message";
    let steps = json!([{"send": note(TOOLS_CHANGED)}, {"send": note(updated)}, {"send": note(log)},
        {"result": r#"{"content":[{"type":"text","text":"done"}]}"#}]);
    let mut call = client.start("script", json!({"steps": steps})).await;
    assert_eq!(call.answer().await.text(), "done");
    assert_eq!(call.seen.len(), 2, "the log line and the answer: {:?}", call.seen);
    standing.until_method(TOOLS_CHANGED).await;
    standing.until_method(updated).await;
}

#[tokio::test]
async fn s6_2_what_comes_while_nobody_listens_waits_for_the_standing_stream() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    send_apart(&peer, &client, &[&note(TOOLS_CHANGED)]).await;
    client.get_stream().await.until_method(TOOLS_CHANGED).await;
}

#[tokio::test]
async fn s6_2_the_newest_standing_stream_takes_over() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let mut first = client.get_stream().await;
    let mut second = client.get_stream().await;
    assert!(first.ended().await.is_empty());
    send_apart(&peer, &client, &[&note(TOOLS_CHANGED)]).await;
    second.until_method(TOOLS_CHANGED).await;
}

// Requests of the server.

/// Answers the question that comes on a stream; the answer that the stream ends with.
async fn answered(client: &HttpPeer, mut stream: Response) -> String {
    let question = stream.until_method("elicitation/create").await;
    client.respond(&question, r#"{"action":"accept","n":1.10}"#).await;
    stream.answer().await.text().to_owned()
}

#[tokio::test]
async fn c47_a_question_reaches_the_client_that_called_and_its_answer_the_server() {
    let peer = Peer::serve("", &[]);
    let (client, other) = (peer.legacy().await, peer.legacy().await);
    let _apart = other.get_stream().await;
    let stream = client.start("ask", json!({})).await;
    assert_eq!(answered(&client, stream).await, r#"{"action":"accept","n":1.10}"#);
}

#[tokio::test]
async fn c47_a_question_may_have_the_id_of_the_call_itself() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let question = json!({"request": {"method": "elicitation/create", "id": "$ID"}});
    for _ in ["the first", "the second"] {
        let steps = json!([question, {"result": r#"{"got":$ANSWER}"#}]);
        let mut stream = client.start("script", json!({"steps": steps})).await;
        let question = stream.until_method("elicitation/create").await;
        client.respond(&question, "1.10").await;
        assert_eq!(stream.answer().await.raw_result(), r#"{"got":1.10}"#);
    }
}

#[tokio::test]
async fn c47_two_sessions_that_are_asked_under_one_id_each_answer_their_own() {
    let peer = Peer::serve("", &[]);
    let (a, b) = (peer.legacy().await, peer.legacy().await);
    let steps = json!([{"request": {"method": "elicitation/create", "id": "\"q\""}}, {"result": "$ANSWER"}]);
    let ask = json!({"steps": steps});
    let (mut at_a, mut at_b) = tokio::join!(a.start("script", ask.clone()), b.start("script", ask));
    let for_a = at_a.until_method("elicitation/create").await;
    let for_b = at_b.until_method("elicitation/create").await;
    b.respond(&for_b, "\"b\"").await;
    a.respond(&for_a, "\"a\"").await;
    assert_eq!(at_a.answer().await.raw_result(), "\"a\"");
    assert_eq!(at_b.answer().await.raw_result(), "\"b\"");
}

#[tokio::test]
async fn s1_1_a_question_for_a_job_comes_on_the_standing_stream() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let mut standing = client.get_stream().await;
    let handle = client.defer("ask", json!({"ms": 500})).await;
    let question = standing.until_method("elicitation/create").await;
    client.respond(&question, "7").await;
    assert_eq!(client.finish(handle).await.text(), "7");
}

#[tokio::test]
async fn s1_1_a_question_that_reaches_nobody_is_answered_for_the_client() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    client.set_accept("application/json");
    let answer = client.call("ask", json!({})).await;
    assert!(answer.text().contains("-32601"), "{}", answer.raw);
    // Nor does a notification of a client make a stream of it.
    client.notify("x/note", json!({})).await;
    let answer = client.call("ask", json!({})).await;
    assert!(answer.text().contains("-32601"), "{}", answer.raw);
}

// Resumption.

/// A call with progress on its stream: what was read of it, and where it waits for `file`.
async fn cut(client: &HttpPeer, file: &str) -> (Response, String) {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    let result = r#"{"content":[{"type":"text","text":"whole"}]}"#;
    let steps =
        json!([{"send": progress}, {"wait_file": file}, {"send": progress}, {"result": result}]);
    let mut stream = with_progress(client, "script", json!({"steps": steps}), json!("t")).await;
    stream.until_method("notifications/progress").await;
    let last = stream.last_event_id.clone().expect("events have ids");
    (stream, last)
}

#[tokio::test]
async fn s6_2_a_stream_that_broke_is_resumed_and_brings_the_answer_that_came_meanwhile() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let (stream, last) = cut(&client, "go").await;
    drop(stream);
    client.until_jobs(1).await;
    peer.create("go");
    peer.ended("script", 1).await;
    let mut resumed = client.resume(&last).await;
    let answer = resumed.answer().await;
    assert_eq!((answer.text(), answer.raw_id()), ("whole", "2"), "{}", answer.raw);
    assert!(resumed.event().await.is_none(), "the stream ends with the answer");
    assert!(peer.received("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn s6_2_a_stream_is_resumed_before_the_answer_and_waits_for_it() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let (stream, last) = cut(&client, "go").await;
    drop(stream);
    client.until_jobs(1).await;
    let mut resumed = client.resume(&last).await;
    assert!(resumed.is_events());
    peer.create("go");
    assert_eq!(resumed.answer().await.text(), "whole");
    assert_eq!(peer.calls_of("script").len(), 1);
}

#[tokio::test]
async fn s6_2_a_stream_resumed_before_its_connection_is_seen_to_break_goes_on() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let (mut stream, last) = cut(&client, "go").await;
    let mut resumed = client.resume(&last).await;
    assert!(stream.event().await.is_none(), "each message goes to one stream");
    peer.create("go");
    assert_eq!(resumed.answer().await.text(), "whole");
}

#[tokio::test]
async fn s4_1_a_resumed_stream_gets_the_handle_at_the_budget() {
    let peer = Peer::serve("defaults.answer_within = \"2s\"\n", &[]);
    let client = peer.legacy().await;
    let (stream, last) = cut(&client, "go").await;
    drop(stream);
    client.until_jobs(1).await;
    let handle = client.resume(&last).await.answer().await;
    assert!(handle.is_handle() && handle.raw_id() == "2", "{}", handle.raw);
    peer.create("go");
    assert_eq!(client.finish(handle).await.text(), "whole");
}

#[tokio::test]
async fn s6_2_events_that_were_missed_are_sent_again_and_no_others() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let mut standing = client.get_stream().await;
    let notes = ["x/0", "x/1", "x/2", "x/3"].map(note);
    send_apart(&peer, &client, &notes.each_ref().map(String::as_str)).await;
    standing.until_method("x/0").await;
    standing.until_method("x/1").await;
    let seen = standing.last_event_id.clone().expect("events have ids");
    standing.until_method("x/3").await;
    drop(standing);
    send_apart(&peer, &client, &[&note("x/4")]).await;
    let mut resumed = client.resume(&seen).await;
    resumed.until_method("x/4").await;
    let methods: Vec<_> = resumed.seen.iter().filter_map(Line::method).collect();
    assert_eq!(methods, ["x/2", "x/3", "x/4"]);
}

#[tokio::test]
async fn s6_2_an_event_of_another_session_or_of_none_resumes_nothing() {
    let peer = Peer::serve("", &[]);
    let (client, other) = (peer.legacy().await, peer.legacy().await);
    let (_stream, last) = cut(&client, "go").await;
    for id in [last.as_str(), "99-1", "x", "1", "-", "18446744073709551616-1"] {
        assert_eq!(other.resume(id).await.status, 404, "{id}");
    }
    peer.create("go");
}

#[tokio::test]
async fn s6_2_a_stream_that_ended_well_is_resumed_to_its_end() {
    let peer = Peer::serve("", &[]);
    let client = peer.legacy().await;
    let (mut stream, last) = cut(&client, "go").await;
    peer.create("go");
    let answer = stream.answer().await;
    drop(stream);
    let mut resumed = client.resume(&last).await;
    assert_eq!(resumed.answer().await.raw, answer.raw, "as if it had been lost on the way");
}
