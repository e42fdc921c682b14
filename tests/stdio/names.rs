//! Our two tools in the server's list: their place and their names (contract §1.1, §5.3).

use serde_json::{Value, json};
use support::{Peer, SOON, Setup, tools};

/// A session with a server that has tools with these names.
async fn open(names: &[&str], setup: Setup) -> Peer {
    Peer::opened(setup.tools(&tools(names).to_string())).await
}

/// The names on a page, and the cursor of the next.
async fn page(peer: &Peer, params: Value) -> (Vec<String>, Value) {
    let list = peer.ask("tools/list", params).await;
    let names = list.tool_names().into_iter().map(str::to_owned);
    (names.collect(), list.result()["nextCursor"].clone())
}

#[tokio::test]
async fn s1_1_our_tools_are_added_once_after_those_of_the_first_page() {
    let peer =
        open(&["a", "b", "c", "d", "e"], Setup::proxied().flags(&["--page-size", "2"])).await;
    let (names, cursor) = page(&peer, json!({})).await;
    assert_eq!(
        (names, &cursor),
        (["a", "b", "job_get", "job_cancel"].map(Into::into).into(), &json!("2"))
    );
    let (names, cursor) = page(&peer, json!({"cursor": cursor})).await;
    assert_eq!((names, &cursor), (["c", "d"].map(Into::into).into(), &json!("4")));
    assert_eq!(page(&peer, json!({"cursor": cursor})).await, (vec!["e".into()], Value::Null));
}

#[tokio::test]
async fn s1_1_a_server_without_tools_is_left_as_it_is() {
    let peer = Setup::proxied().flags(&["--no-tools", "--instructions", "Be quick."]).spawn();
    let greeting = peer.initialize().await;
    assert_eq!(greeting.result()["instructions"], "Be quick.");
    assert_eq!(peer.ask("tools/list", json!({})).await.error_code(), -32601);
    let peer = open(&[], Setup::proxied()).await;
    assert_eq!(page(&peer, json!({})).await, (vec![], Value::Null));
}

#[tokio::test]
async fn s1_1_a_paragraph_is_appended_to_the_instructions_unless_announce_is_off() {
    let greet =
        async |setup: Setup| setup.spawn().initialize().await.result()["instructions"].clone();
    let flags = ["--instructions", "Be quick."];
    let both = greet(Setup::proxied().flags(&flags)).await;
    let alone = greet(Setup::proxied()).await;
    let paragraph = alone.as_str().expect("instructions");
    assert!(paragraph.contains("next_action"), "{paragraph}");
    assert_eq!(both, format!("Be quick.\n\n{paragraph}"));
    let off = "[jobs]\nannounce = false\n";
    assert_eq!(greet(Setup::proxied().config(off).flags(&flags)).await, "Be quick.");
    assert_eq!(greet(Setup::proxied().config(off)).await, Value::Null);
}

#[tokio::test]
async fn s5_3_a_prefix_names_our_tools_everywhere() {
    let peer = Peer::open(&[&SOON[..], &["--tool-prefix", "x_"]].concat()).await;
    let (names, _) = page(&peer, json!({})).await;
    assert_eq!(names[names.len() - 2..], ["x_job_get", "x_job_cancel"]);
    let handle = peer.job("go").await;
    assert_eq!(handle.next_action().expect("an action").tool, "x_job_get");
    assert!(handle.text().contains("call x_job_get with"), "{}", handle.raw);
    assert_eq!(peer.call("job_get", json!({})).await.error_code(), -32602, "it is the server's");
    peer.create("go");
    let end = peer.finish(handle).await;
    let cancel = peer.call("x_job_cancel", json!({"job_id": end.job_id()})).await;
    assert_eq!(cancel.status(), "completed");
}

#[tokio::test]
async fn s5_3_names_that_the_server_has_are_left_to_it() {
    let peer = open(
        &["job_get", "a", "job_cancel"],
        Setup::proxied().options(&SOON).flags(&["--page-size", "2"]),
    )
    .await;
    let (names, _) = page(&peer, json!({})).await;
    assert_eq!(names, ["job_get", "a", "unhurry_job_get", "unhurry_job_cancel"], "page 2 counts");
    assert_eq!(peer.call("job_get", json!({"text": "the server's"})).await.text(), "the server's");
    let handle = peer.call("a", json!({"path": peer.path("go")})).await;
    assert_eq!(handle.next_action().expect("an action").tool, "unhurry_job_get");
    peer.create("go");
    let end = peer.finish(handle).await;
    assert_eq!(end.text(), "there");
    let args = json!({"job_id": end.job_id()});
    assert_eq!(peer.call("unhurry_job_cancel", args).await.status(), "completed");
}

#[tokio::test]
async fn s5_3_only_the_name_that_clashes_changes_without_a_list_too() {
    let peer = open(&["a", "job_get"], Setup::proxied().options(&SOON)).await;
    let handle = peer.call("a", json!({"path": peer.path("never")})).await;
    assert_eq!(handle.next_action().expect("an action").tool, "unhurry_job_get");
    assert_eq!(peer.job_cancel(handle.job_id()).await.status(), "cancelled");
}

#[tokio::test]
async fn s5_3_the_name_stays_for_the_session() {
    let peer = open(&["a"], Setup::proxied().options(&SOON)).await;
    page(&peer, json!({})).await;
    let tools = json!([{"name": "job_get", "inputSchema": {"type": "object"}}]);
    peer.change_tools(&tools.to_string());
    let (names, _) = page(&peer, json!({})).await;
    assert_eq!(names[names.len() - 2..], ["job_get", "job_cancel"]);
    assert!(peer.job_get(json!({})).await.structured()["jobs"].is_array());
}

#[tokio::test]
async fn s5_3_a_call_of_a_server_that_nobody_listed_reads_its_list_once() {
    let peer = Peer::open(&SOON).await;
    for _ in 0..3 {
        peer.call("echo", json!({})).await;
    }
    peer.settle().await;
    assert_eq!(peer.told("tools/list"), 1);
}
