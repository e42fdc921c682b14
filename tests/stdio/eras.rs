//! Eras are mirrored, never translated (contract §1.2).

use serde_json::json;
use support::json::member;
use support::{Entry, Peer, SOON, SUBSCRIPTION, Setup, until};

fn methods(peer: &Peer) -> Vec<String> {
    peer.journal().iter().filter_map(Entry::method).collect()
}

/// The answers to the openings of both eras are those of the server itself.
async fn openings_are_the_servers(flags: &[&str]) {
    let (peer, plain) = (Setup::proxied().config("[jobs]\nannounce = false"), Setup::direct());
    let (peer, plain) = (peer.flags(flags).spawn(), plain.flags(flags).spawn());
    let legacy = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    for (method, params) in [("server/discover", json!({})), ("initialize", legacy)] {
        if method == "server/discover" {
            [&peer, &plain].iter().for_each(|peer| peer.become_modern("dual", json!({})));
        }
        let answer = peer.ask(method, params.clone()).await;
        assert_eq!(answer.raw, plain.ask(method, params).await.raw);
    }
    let lines =
        |peer: &Peer| peer.journal().into_iter().map(|entry| entry.line).collect::<Vec<_>>();
    assert_eq!(lines(&peer), lines(&plain), "the server is asked the same");
}

#[tokio::test]
async fn s1_2_a_legacy_servers_refusal_and_greeting_pass_untouched() {
    openings_are_the_servers(&[]).await;
}

#[tokio::test]
async fn s1_2_a_modern_servers_greeting_and_refusal_pass_untouched() {
    openings_are_the_servers(&["--modern"]).await;
}

#[tokio::test]
async fn s1_2_a_dual_servers_greetings_pass_untouched() {
    openings_are_the_servers(&["--dual"]).await;
}

#[tokio::test]
async fn s1_2_a_modern_only_server_refuses_a_legacy_clients_calls_itself() {
    let peer = Peer::proxied(&[], &["--modern"]);
    let plain = Peer::direct(&["--modern"]);
    assert_eq!(peer.initialize().await.raw, plain.initialize().await.raw);
    let args = json!({"text": "hi"});
    let refusal = peer.call("echo", args.clone()).await;
    assert_eq!(refusal.raw_error(), plain.call("echo", args).await.raw_error());
}

#[tokio::test]
async fn s1_2_a_dual_client_falls_back_to_initialize_with_the_same_legacy_server() {
    let peer = Peer::proxied(&[], &[]);
    let modern = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert_eq!(peer.ask("server/discover", modern).await.error_code(), -32601);
    assert_eq!(peer.initialize().await.result()["protocolVersion"], "2025-11-25");
    let job = peer.park("go").await;
    assert!(job.result().get("resultType").is_none(), "a legacy handle");
    assert!(job.structured().is_object());
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
    assert_eq!(peer.journal().iter().filter(|entry| entry.event == "start").count(), 1);
}

#[tokio::test]
async fn s1_2_a_legacy_server_that_dies_of_the_probe_is_there_for_initialize() {
    let peer = Peer::proxied(&[], &["--discover-dies"]);
    let modern = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert_eq!(peer.ask("server/discover", modern).await.error_code(), -32603);
    assert_eq!(peer.initialize().await.result()["protocolVersion"], "2025-11-25");
    peer.assert_works().await;
}

#[tokio::test]
async fn s1_2_a_legacy_client_opens_a_dual_server_as_legacy() {
    let peer = Peer::open_to(&["--dual"]).await;
    let job = peer.park("go").await;
    peer.create("go");
    let result = peer.finish(job).await;
    assert!(result.result().get("resultType").is_none());
    assert!(!methods(&peer).contains(&"server/discover".to_owned()), "{:?}", methods(&peer));
    assert!(!peer.journal().iter().any(|entry| entry.line.contains("2026-07-28")));
}

#[tokio::test]
async fn s1_2_a_modern_client_never_causes_a_handshake() {
    let peer = Peer::opened_modern(Setup::proxied());
    let job = peer.park("go").await;
    assert_eq!(job.result()["resultType"], "complete");
    assert_eq!(peer.look(job.job_id()).await.result()["resultType"], "complete");
    peer.create("go");
    let result = peer.finish(job).await;
    assert_eq!((result.text(), &result.result()["resultType"]), ("go", &json!("complete")));
    assert!(!methods(&peer).iter().any(|method| method.contains("initialize")));
    let requests = peer.journal();
    let mut requests = requests.iter().filter(|entry| !entry.line.is_empty());
    assert!(requests.all(|entry| entry.line.contains("io.modelcontextprotocol/protocolVersion")));
}

#[tokio::test]
async fn s1_2_a_modern_server_that_died_is_started_again_without_a_handshake() {
    let peer = Peer::opened_modern(Setup::proxied());
    assert!(peer.call("exit", json!({"code": 3})).await.is_error());
    peer.assert_works().await;
    assert!(!methods(&peer).iter().any(|method| method.contains("initialize")));
}

#[tokio::test]
async fn s1_2_the_version_that_the_server_chose_decides_over_the_clients() {
    let peer = Peer::proxied(&[], &["--protocol", "2025-03-26"]);
    assert_eq!(peer.initialize().await.result()["protocolVersion"], "2025-03-26");
    let job = peer.park("go").await;
    assert!(job.structured().is_null(), "no structured content before 2025-06-18");
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
}

// Subscriptions.

fn note(method: &str, id: &str) -> serde_json::Value {
    let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION}":{id}}},"x":1.10}}"#);
    json!({"send": format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)})
}

/// A modern session under a budget of 0.3 s with an open subscription of this raw id.
async fn listening(id: &str) -> Peer {
    let flags = ["--unanswered", "subscriptions/listen"];
    let peer = Peer::opened_modern(Setup::proxied().options(&SOON).flags(&flags));
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    peer.request_as(id, "subscriptions/listen", wanted).await;
    peer.journal_method("subscriptions/listen").await;
    peer
}

/// The params of what the client got of a method.
async fn params_of(peer: &Peer, method: &str) -> String {
    let line = peer.wait_method(method).await;
    member(&line.text, "params").expect("params").to_owned()
}

#[tokio::test]
async fn s1_1_1_messages_of_a_subscription_carry_the_clients_id() {
    for id in ["7", "\"seven\""] {
        let peer = listening(id).await;
        let inside = peer.journal_method("subscriptions/listen").await;
        let inside = member(&inside.line, "id").expect("an id");
        let methods = [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        ];
        let mut steps: Vec<_> = methods.iter().map(|method| note(method, inside)).collect();
        steps.push(json!({"result": "{}"}));
        peer.script(json!(steps)).await;
        for method in methods {
            let expected = format!(r#"{{"_meta":{{"{SUBSCRIPTION}":{id}}},"x":1.10}}"#);
            assert_eq!(params_of(&peer, method).await, expected);
        }
    }
}

#[tokio::test]
async fn s1_2_a_subscription_has_no_budget_and_leaves_that_of_calls() {
    let peer = listening("7").await;
    let job = peer.call("wait_file", until("go")).await;
    assert!(job.is_handle(), "a call that came later has its handle");
    assert!(peer.answers("7").is_empty());
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
    let steps = [note("notifications/tools/list_changed", "7"), json!({"result": "{}"})];
    peer.script(json!(steps)).await;
    params_of(&peer, "notifications/tools/list_changed").await;
    assert!(peer.answers("7").is_empty());
}

#[tokio::test]
async fn s1_2_a_cancel_of_a_subscription_reaches_the_server() {
    let peer = listening("7").await;
    peer.cancel("7", "McpError: MCP error -32001: Request timed out").await;
    let cancel = peer.journal_method("notifications/cancelled").await;
    assert!(cancel.line.contains(r#""requestId":7"#), "{}", cancel.line);
    assert!(peer.jobs().await.is_empty());
}

#[tokio::test]
async fn s1_1_1_a_subscription_that_the_server_ends_names_the_clients_id() {
    let peer = listening("7").await;
    let end = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    peer.script(json!([{"send": end}, {"result": "{}"}])).await;
    assert_eq!(params_of(&peer, "notifications/cancelled").await, r#"{"requestId":7}"#);
}
