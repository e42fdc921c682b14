//! Handles and `job_get` in every era of MCP (contract §1.2, §4.2).

use serde_json::{Value, json};
use support::{Answer, Line, Peer, SOON, Setup};

/// The members of the result, in the order of their names.
fn members(answer: &Answer) -> Vec<&String> {
    answer.result().as_object().expect("an object").keys().collect()
}

#[tokio::test]
async fn s4_2_legacy_clients_before_2025_06_18_get_no_structured_content() {
    for protocol in ["2024-11-05", "2025-03-26"] {
        let peer = Peer::proxied(&SOON, &[]);
        peer.initialize_under(protocol).await;
        let handle = peer.job("go").await;
        let listed = peer.job_get(json!({})).await;
        let unknown = peer.job_get(json!({"job_id": "x"})).await;
        let envelope = peer.job_get(json!({"job_id": handle.job_id(), "envelope": true})).await;
        assert_eq!(members(&handle), ["_meta", "content"]);
        assert_eq!(members(&listed), ["content"]);
        assert_eq!(members(&unknown), ["content", "isError"]);
        assert_eq!(members(&envelope), ["_meta", "content"]);
        assert_eq!(handle.handle()["next_action"]["args"]["job_id"], handle.job_id());
        peer.create("go");
        assert_eq!(peer.finish(handle).await.text(), "go is open");
    }
}

#[tokio::test]
async fn s4_2_later_legacy_clients_get_structured_content_and_no_result_type() {
    for protocol in ["2025-06-18", "2025-11-25"] {
        let peer = Peer::proxied(&SOON, &[]);
        peer.initialize_under(protocol).await;
        let handle = peer.job("never").await;
        assert_eq!(members(&handle), ["_meta", "content", "structuredContent"]);
        assert_eq!(members(&peer.job_cancel(handle.job_id()).await), members(&handle));
    }
}

#[tokio::test]
async fn s4_2_the_revision_that_the_server_chose_counts() {
    let peer = Peer::proxied(&SOON, &["--protocol", "2024-11-05"]);
    let greeting = peer.initialize().await;
    assert_eq!(greeting.result()["protocolVersion"], "2024-11-05");
    assert!(peer.job("never").await.structured().is_null());
}

#[tokio::test]
async fn s1_1_a_fast_modern_call_passes_as_it_is() {
    let peer = Peer::opened_modern(Setup::proxied().options(&SOON));
    let raw = r#"{"content":[],"resultType":"complete","x":1.10}"#;
    assert_eq!(peer.call("raw", json!({"result": raw})).await.raw_result(), raw);
    let sent: Value = serde_json::from_str(peer.calls_of("raw")[0].raw_params().unwrap()).unwrap();
    assert_eq!(sent["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(peer.told("initialize"), 0, "eras are mirrored");
    let listed = peer.ask("tools/list", json!({})).await;
    let names =
        listed.result()["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]);
    assert_eq!(names.filter(|name| *name == "job_get").count(), 1);
}

#[tokio::test]
async fn s4_2_every_answer_to_a_modern_client_says_complete() {
    let peer = Peer::opened_modern(Setup::proxied().options(&SOON));
    let handle = peer.job("never").await;
    assert_eq!(members(&handle), ["_meta", "content", "resultType", "structuredContent"]);
    let action = handle.next_action().expect("an action");
    assert_eq!(action.args, json!({"job_id": handle.job_id(), "seq": 1}));
    for answer in [
        peer.look(handle.job_id()).await,
        peer.job_get(json!({})).await,
        peer.job_get(json!({"job_id": "x"})).await,
        peer.job_get(json!({"page": "x"})).await,
        peer.job_get(json!({"job_id": handle.job_id(), "envelope": true})).await,
        peer.job_cancel(handle.job_id()).await,
        peer.look(handle.job_id()).await,
        handle,
    ] {
        assert_eq!(answer.result()["resultType"], "complete", "{}", answer.raw);
    }
}

#[tokio::test]
async fn c01_a_modern_result_comes_back_unchanged_after_a_handle() {
    let peer = Peer::opened_modern(Setup::proxied().options(&SOON));
    let raw = r#"{"resultType":"complete","content":[{"type":"text","text":"\u0041"}],"_meta":{"k":1.0}}"#;
    let handle = peer.slow_call("raw", json!({"result": raw, "ms": 900})).await;
    let end = peer.finish(handle).await;
    let job =
        support::json::path(&end.raw, &["result", "_meta", "unhurry/job"]).expect("about a job");
    assert_eq!(end.raw_result().replace(&format!(r#","unhurry/job":{job}"#), ""), raw);
    assert_eq!(end.status(), "completed");
}

#[tokio::test]
async fn s5_1_pages_of_a_modern_result_are_complete_each() {
    let peer = Peer::opened_modern(Setup::proxied().options(&SOON));
    let handle = peer.call("big", json!({"bytes": 100_000, "ms": 900})).await;
    let pages = peer.pages(peer.finish(handle).await).await;
    assert_eq!(pages.len(), 2);
    assert!(pages.iter().all(|page| page.result()["resultType"] == "complete"));
}

#[tokio::test]
async fn s5_1_a_modern_wait_ends_with_its_cancel() {
    let peer = Setup::proxied()
        .config("defaults.answer_within = \"15s\"\ntools.wait_file.answer_within = \"0s\"\n")
        .flags(&["--modern"])
        .spawn();
    peer.become_modern("test-client", json!({}));
    let handle = peer.job("go").await;
    let waiting = peer.start("job_get", json!({"job_id": handle.job_id()})).await;
    peer.cancel(&waiting, "stop").await;
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go is open");
    assert!(peer.answers(&waiting).is_empty());
}

#[tokio::test]
async fn s5_2_a_modern_server_is_told_of_a_cancel() {
    let peer = Peer::opened_modern(Setup::proxied().options(&SOON));
    let handle = peer.job("never").await;
    assert_eq!(peer.job_cancel(handle.job_id()).await.status(), "cancelled");
    peer.journal_method("notifications/cancelled").await;
    peer.journal_wait(|entry| entry.event == "call_ended").await;
}

#[tokio::test]
async fn s3_a_modern_client_names_itself_with_each_request() {
    let toml = "defaults.answer_within = \"15s\"\nclients.hasty.answer_within = \"300ms\"\n";
    let peer = Setup::proxied().config(toml).flags(&["--modern"]).spawn();
    peer.become_modern("patient", json!({}));
    assert_eq!(peer.call("sleep", json!({"ms": 900})).await.text(), "slept");
    peer.become_modern("hasty", json!({}));
    assert!(peer.call("sleep", json!({"ms": 900})).await.is_handle());
}

#[tokio::test]
async fn s1_1_a_ping_is_answered_while_the_server_is_blocked_by_its_tool() {
    let peer = Peer::opened(Setup::proxied().options(&SOON).flags(&["--block"])).await;
    peer.ask("tools/list", json!({})).await;
    let handle = peer.job("go").await;
    assert_eq!(peer.ask("ping", json!({})).await.raw_result(), "{}");
    let list = peer.ask("tools/list", json!({})).await;
    assert!(list.result()["tools"].as_array().is_some_and(|tools| tools.len() > 2));
    peer.create("go");
    assert_eq!(peer.finish(handle).await.text(), "go is open");
    peer.lines().iter().for_each(Line::assert_protocol);
}
