//! What a server says of itself, and the one paragraph that is added to it (contract §1.1.3).

use serde_json::{Value, json};
use support::{Answer, Peer, Setup};

const INSTRUCTIONS: [&str; 2] = ["--instructions", "Be \"quick\".\nÄ"];
const SILENT: &str = "[jobs]\nannounce = false";

/// An opening, legacy or modern, through the proxy or, for comparison, without it.
async fn greeting(setup: Setup, flags: &[&str], modern: bool) -> (Peer, Answer) {
    let peer = setup.flags(&["--dual"]).flags(flags).spawn();
    let answer = match modern {
        true => {
            peer.become_modern("test-client", json!({}));
            peer.ask("server/discover", json!({})).await
        }
        // A revision without tasks, so that the capabilities stay as they are (§8).
        false => peer.initialize_under("2025-06-18").await,
    };
    (peer, answer)
}

fn without_instructions(answer: &Answer) -> Value {
    let mut result = answer.result().clone();
    result.as_object_mut().expect("a greeting is an object").remove("instructions");
    result
}

/// Our paragraph: what stands after the instructions of the server.
async fn paragraph(flags: &[&str], modern: bool) -> String {
    let (_, plain) = greeting(Setup::direct(), flags, modern).await;
    let (_, answer) = greeting(Setup::proxied(), flags, modern).await;
    assert_eq!(without_instructions(&answer), without_instructions(&plain), "nothing else changes");
    let own = plain.result()["instructions"].as_str().map(|own| format!("{own}\n\n"));
    let all = answer.result()["instructions"].as_str().expect("there are instructions");
    let ours = all.strip_prefix(&own.unwrap_or_default()).expect("the server's come first");
    ours.to_owned()
}

async fn announces(modern: bool) {
    let alone = paragraph(&[], modern).await;
    assert!(["job_id", "next_action"].iter().all(|word| alone.contains(word)), "{alone}");
    assert!(!alone.contains('\n'), "one paragraph");
    assert_eq!(paragraph(&INSTRUCTIONS, modern).await, alone);
}

#[tokio::test]
async fn s1_1_3_a_paragraph_is_added_or_appended_to_the_instructions_legacy() {
    announces(false).await;
}

#[tokio::test]
async fn s1_1_3_a_paragraph_is_added_or_appended_to_the_instructions_modern() {
    announces(true).await;
}

async fn is_left_alone(setup: impl Fn() -> Setup, flags: &[&str]) {
    for modern in [false, true] {
        let (plain_peer, plain) = greeting(Setup::direct(), flags, modern).await;
        let (peer, answer) = greeting(setup(), flags, modern).await;
        assert_eq!(answer.raw_result(), plain.raw_result());
        if flags.contains(&"--no-tools") {
            let list = peer.ask("tools/list", json!({})).await;
            let plain = plain_peer.ask("tools/list", json!({})).await;
            assert_eq!(list.json.get("error"), plain.json.get("error"));
            assert_eq!(list.json.get("result"), plain.json.get("result"));
        }
    }
}

#[tokio::test]
async fn s1_1_3_announce_false_leaves_the_instructions_alone() {
    is_left_alone(|| Setup::proxied().config(SILENT), &[]).await;
    is_left_alone(|| Setup::proxied().config(SILENT), &INSTRUCTIONS).await;
}

#[tokio::test]
async fn s1_1_2_a_server_without_tools_is_left_as_it_is() {
    is_left_alone(Setup::proxied, &["--no-tools"]).await;
    is_left_alone(Setup::proxied, &["--no-tools", "--instructions", "x"]).await;
}

#[tokio::test]
async fn s1_1_2_an_empty_list_of_a_server_without_tools_stays_empty() {
    let flags = ["--no-tools", "--answer", r#"tools/list={"tools": [] , "x":1.10}"#];
    is_left_alone(Setup::proxied, &flags).await;
}

#[tokio::test]
async fn s1_1_3_instructions_that_are_no_text_do_not_break_the_greeting() {
    let odd = r#"initialize={"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":null}"#;
    let (peer, answer) = greeting(Setup::proxied(), &["--answer", odd], false).await;
    assert!(answer.result()["instructions"].is_string());
    peer.assert_works().await;
}

#[tokio::test]
async fn s1_1_3_a_refusal_passes_as_it_is() {
    let peer = Peer::proxied(&[], &["--modern"]);
    let plain = Peer::direct(&["--modern"]);
    let params = json!({"protocolVersion": "2025-06-18"});
    let refusal = peer.ask("initialize", params.clone()).await;
    assert_eq!(refusal.raw, plain.ask("initialize", params).await.raw);
    assert_eq!(refusal.error_code(), -32022);
}
