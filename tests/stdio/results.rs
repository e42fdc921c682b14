//! What comes back through a job is what the server sent (contract §5.1 "Finished", §1.1).

use serde_json::{Value, json};
use support::{Answer, Peer, SOON, Setup};

/// Numbers that a reader of values spells otherwise.
const DIGITS: &str =
    r#"{"a":9007199254740993,"b":1e400,"c":1.10,"d":-0,"e":0.30000000000000004,"f":1E+2}"#;

/// The raw result without what the proxy adds to its `_meta`.
fn without_job(answer: &Answer) -> String {
    let job = support::json::path(&answer.raw, &["result", "_meta", "unhurry/job"]);
    let ours = format!(r#""unhurry/job":{}"#, job.unwrap_or_else(|| panic!("{}", answer.raw)));
    let result = answer.raw_result();
    let alone = format!(r#","_meta":{{{ours}}}"#);
    let one_of_many = format!(",{ours}");
    if result.contains(&alone) {
        result.replace(&alone, "")
    } else {
        result.replace(&one_of_many, "")
    }
}

/// The end of a call that answers with this raw JSON after its handle went out.
async fn through_a_job(peer: &Peer, key: &str, raw: &str) -> Answer {
    let handle = peer.slow_call("raw", json!({key: raw, "ms": 900})).await;
    peer.finish(handle).await
}

#[tokio::test]
async fn c01_the_result_comes_back_unchanged_after_a_handle() {
    let peer = Peer::open(&SOON).await;
    for raw in [
        r#"{"content":[{"type":"text","text":"\u0041"},{"type":"later","x":[1.0]}],"structuredContent":{"n":1.0},"isError":false,"_meta":{"k":1.10},"x":null}"#,
        r#"{ "x":{"deep":[[]]}, "content":[ ]}"#,
    ] {
        let end = through_a_job(&peer, "result", raw).await;
        assert_eq!(without_job(&end), raw);
        assert_eq!(end.status(), "completed");
    }
}

#[tokio::test]
async fn c13_structured_content_comes_back_after_a_handle() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.call("structured", json!({"ms": 900})).await;
    let end = peer.finish(handle).await;
    assert_eq!(*end.structured(), json!({"answer": 42, "unit": "none"}));
}

#[tokio::test]
async fn c15_reading_does_not_consume() {
    let peer = Peer::open(&SOON).await;
    let first =
        through_a_job(&peer, "result", r#"{"content":[{"type":"text","text":"kept"}]}"#).await;
    for _ in 0..3 {
        let again = peer.look(first.job_id()).await;
        assert_eq!(again.raw_result(), first.raw_result());
    }
}

/// Checks the tombstone of the only job.
async fn assert_tombstone(peer: &Peer, how: &str) {
    let job = peer.jobs().await[0].clone();
    let tombstone = peer.look(job["job_id"].as_str().expect("an id")).await;
    assert!(tombstone.is_error() && tombstone.status() == "expired", "{}", tombstone.raw);
    let handle = tombstone.handle();
    let message = handle["message"].as_str().expect("a message");
    let ended = message.split_once(" ended at ").expect("it says when").1;
    let time: jiff::Timestamp = ended.split_once(' ').unwrap().0.parse().expect("a time");
    assert!(time.duration_since(jiff::Timestamp::now()).abs().as_secs() < 60, "{message}");
    assert!(ended.contains(&format!("({how})")), "{message}");
    assert_eq!((&handle["done"], &handle["status"]), (&json!(true), &json!("expired")));
    assert_eq!(peer.calls_of("fail").len(), 1, "never a new call");
}

#[tokio::test]
async fn c15_s5_1_an_unfetched_result_leaves_a_tombstone_after_result_ttl() {
    let peer =
        Peer::open_with("[defaults]\nanswer_within = \"300ms\"\nresult_ttl = \"100ms\"\n").await;
    peer.call("fail", json!({"ms": 600})).await;
    peer.newest_becomes("expired").await;
    assert_tombstone(&peer, "failed").await;
}

#[tokio::test]
async fn c15_s5_1_a_fetched_result_leaves_a_tombstone_after_fetched_ttl() {
    let peer =
        Peer::open_with("[defaults]\nanswer_within = \"300ms\"\nfetched_ttl = \"100ms\"\n").await;
    let handle = peer.call("fail", json!({"ms": 600})).await;
    peer.newest_becomes("failed").await;
    assert_eq!(peer.finish(handle).await.text(), "failed");
    peer.newest_becomes("expired").await;
    assert_tombstone(&peer, "failed").await;
}

#[tokio::test]
async fn c15_s5_1_an_envelope_of_an_expired_job_says_so() {
    let peer =
        Peer::open_with("[defaults]\nanswer_within = \"300ms\"\nresult_ttl = \"100ms\"\n").await;
    let handle = peer.call("fail", json!({"ms": 600})).await;
    peer.newest_becomes("expired").await;
    let envelope = peer.job_get(json!({"job_id": handle.job_id(), "envelope": true})).await;
    let body = envelope.structured();
    assert_eq!((&body["status"], &body["done"]), (&json!("expired"), &json!(true)));
    assert!(body.get("result").is_none() && body["error"].is_object(), "{body}");
}

#[tokio::test]
async fn c55_digits_are_unchanged_direct_and_through_a_job() {
    let peer = Peer::open(&SOON).await;
    let raw = format!(r#"{{"content":[],"structuredContent":{DIGITS}}}"#);
    assert_eq!(peer.call("raw", json!({"result": raw})).await.raw_result(), raw);
    assert_eq!(without_job(&through_a_job(&peer, "result", &raw).await), raw);
    let error = format!(r#"{{"code":-32000,"message":"m","data":{DIGITS}}}"#);
    let end = through_a_job(&peer, "error", &error).await;
    assert!(end.raw.contains(DIGITS), "{}", end.raw);
}

#[tokio::test]
async fn c55_digits_of_the_arguments_are_unchanged() {
    let peer = Peer::open(&SOON).await;
    for (id, ms) in [("1001", 0), ("1002", 900)] {
        let params = format!(r#"{{"name":"sleep","arguments":{{"ms":{ms},"x":{DIGITS}}}}}"#);
        peer.send_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
        ))
        .await;
        peer.answer(id).await;
        let sent = peer.calls_of("sleep").pop().expect("it arrived");
        assert_eq!(sent.raw_params(), Some(&*params));
    }
}

#[tokio::test]
async fn c56_a_listed_tool_changes_only_as_documented() {
    let tools = json!([
        {"name": "a", "title": "A", "description": "d", "icons": [{"src": "x:y"}], "x-foo": {"b": [1]},
         "inputSchema": {"type": "object", "x-bar": null}, "outputSchema": {"type": "object"},
         "annotations": {"title": "t", "readOnlyHint": true, "x": 1}, "_meta": {"k": "v"},
         "execution": {"taskSupport": "required", "x": 2}},
        {"name": "b", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
    ]);
    let peer = Peer::opened(Setup::proxied().tools(&tools.to_string())).await;
    let mut listed = peer.ask("tools/list", json!({})).await.result()["tools"].clone();
    let ours = listed.as_array_mut().expect("tools").split_off(2);
    let names: Vec<&Value> = ours.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["job_get", "job_cancel"]);
    let mut expected = tools;
    let schema = expected[0].as_object_mut().unwrap().remove("outputSchema").unwrap();
    expected[0]["_meta"]["unhurry/outputSchema"] = schema;
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn c57_is_error_comes_back_after_a_handle() {
    let peer = Peer::open(&SOON).await;
    let raw = r#"{"content":[{"type":"text","text":"disk full"},{"type":"text","text":"2"}],"isError":true}"#;
    let end = through_a_job(&peer, "result", raw).await;
    assert_eq!(without_job(&end), raw);
    assert_eq!((end.is_error(), end.status()), (true, "failed"));
}

#[tokio::test]
async fn s5_1_a_result_that_nobody_polled_for_is_kept() {
    let peer = Peer::open(&SOON).await;
    let handle = peer.job("go").await;
    peer.create("go");
    peer.newest_becomes("completed").await;
    assert_eq!(peer.look(handle.job_id()).await.text(), "go is open");
}

// The status is in every answer, whatever the server's result looks like (§4.2).

#[tokio::test]
async fn k36_a_meta_that_is_no_object_gives_way_to_the_status() {
    let peer = Peer::open(&SOON).await;
    for meta in ["null", "[]", "\"m\"", "1.10"] {
        let raw = |meta: &str| format!(r#"{{ "content":[], "_meta" : {meta} ,"x":1.10}}"#);
        let end = through_a_job(&peer, "result", &raw(meta)).await;
        assert_eq!(end.status(), "completed");
        let ours = support::json::path(&end.raw, &["result", "_meta"]).expect("it is there");
        assert_eq!(end.raw_result(), raw(ours), "nothing else has changed");
    }
}

#[tokio::test]
async fn k36_every_page_has_the_status_where_meta_is_no_object() {
    let setup = Setup::proxied().options(&SOON).config("[jobs]\npage_bytes = \"4KiB\"\n");
    let peer = Peer::opened(setup).await;
    let result = json!({"content": [{"type": "text", "text": "t".repeat(9000)}], "_meta": null});
    let first = through_a_job(&peer, "result", &result.to_string()).await;
    let pages = peer.pages(first).await;
    assert!(pages.len() > 1);
    assert!(pages.iter().all(|page| page.status() == "completed"));
}

#[tokio::test]
async fn k36_a_question_has_the_status_where_its_meta_is_no_object() {
    let peer = Peer::opened_modern(Setup::proxied().options(&SOON));
    let question = r#"{"resultType":"input_required","inputRequests":{},"_meta":null}"#;
    let handle = peer.slow_call("raw", json!({"result": question, "ms": 900})).await;
    peer.newest_becomes("input_required").await;
    let shown = peer.look(handle.job_id()).await;
    assert_eq!((shown.status(), shown.job_id()), ("input_required", handle.job_id()));
    assert_eq!(shown.result()["resultType"], "input_required");
}

#[tokio::test]
async fn k36_a_result_that_is_no_object_is_shown_as_text_with_the_status() {
    let peer = Peer::open(&SOON).await;
    for raw in ["[1.10, {}]", "\"d\\u00e9\"", "7", "false"] {
        let end = through_a_job(&peer, "result", raw).await;
        assert_eq!((end.status(), end.text()), ("completed", raw));
    }
}

#[tokio::test]
async fn k36_the_output_schema_is_kept_where_meta_is_no_object() {
    let tools = r#"[{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"_meta":null}]"#;
    let peer = Peer::opened(Setup::proxied().tools(tools)).await;
    let listed = peer.listed("a").await;
    assert_eq!(listed["_meta"]["unhurry/outputSchema"], json!({"type": "object"}));
    assert!(listed.get("outputSchema").is_none());
}
