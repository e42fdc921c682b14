//! Lists, and what is answered while a server is blocked by its own tool (contract §1.1.2, §1.1.5,
//! §5.3).

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Peer, Setup, tools, until};

const OURS: [&str; 2] = ["job_get", "job_cancel"];

/// A session with a server that lists these tools, so many a page.
async fn open(tools: &Value, page: usize, options: &[&str]) -> Peer {
    let setup = Setup::proxied().options(options).tools(&tools.to_string());
    let peer = setup.flags(&["--page-size", &page.to_string()]).spawn();
    peer.initialize_under("2025-06-18").await;
    peer
}

/// The names on all pages, in order.
async fn all_names(peer: &Peer) -> Vec<String> {
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = peer.ask("tools/list", params).await;
        all.extend(page.tool_names().into_iter().map(str::to_owned));
        match &page.result()["nextCursor"] {
            Value::Null => return all,
            cursor => params = json!({"cursor": cursor}),
        }
    }
}

fn many(count: usize) -> Value {
    let names: Vec<String> = (0..count).map(|number| format!("tool_{number}")).collect();
    tools(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn c63_the_first_of_three_pages_has_its_own_tools_and_ours() {
    let peer = open(&many(120), 40, &[]).await;
    let page = peer.ask("tools/list", json!({})).await;
    assert_eq!(page.result()["nextCursor"], "40");
    let names = page.tool_names();
    assert_eq!(names.len(), 42);
    assert_eq!((names[0], names[39]), ("tool_0", "tool_39"));
    assert_eq!(names[40..], OURS);
}

#[tokio::test]
async fn c63_all_pages_together_have_every_tool_once_and_in_order() {
    let peer = open(&many(120), 40, &[]).await;
    for _ in 0..2 {
        let mut all = all_names(&peer).await;
        assert_eq!(all.drain(40..42).collect::<Vec<_>>(), OURS);
        let expected: Vec<String> = (0..120).map(|number| format!("tool_{number}")).collect();
        assert_eq!(all, expected);
    }
}

#[tokio::test]
async fn c63_a_tool_of_a_page_that_the_client_has_not_read_can_be_called() {
    let peer = open(&many(120), 40, &[]).await;
    peer.ask("tools/list", json!({})).await;
    let job = peer.defer("tool_119", until("go")).await;
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
}

#[tokio::test]
async fn c37_a_list_in_pages_is_answered_though_the_client_has_closed_stdin() {
    let peer = open(&many(60), 1, &[]).await;
    let list = peer.request("tools/list", json!({})).await;
    peer.journal_wait(|entry| entry.line.contains("cursor")).await;
    peer.close_stdin().await;
    assert_eq!(peer.answer(&list).await.tool_names().len(), 3);
}

#[tokio::test]
async fn c03_a_cancelled_list_is_not_answered_while_its_pages_are_read() {
    let peer = open(&many(120), 1, &[]).await;
    let list = peer.request("tools/list", json!({})).await;
    peer.journal_wait(|entry| entry.line.contains("cursor")).await;
    peer.cancel(&list, "the user").await;
    assert_eq!(peer.ask("tools/list", json!({})).await.tool_names()[1..], OURS);
    assert!(peer.answers(&list).is_empty());
}

#[tokio::test]
async fn c80_ours_are_in_the_first_list_and_no_change_is_announced_for_jobs() {
    let peer = open(&tools(&["a"]), 9, &[]).await;
    assert_eq!(
        peer.ask("tools/list", json!({})).await.tool_names(),
        ["a", "job_get", "job_cancel"]
    );
    let job = peer.defer("a", until("go")).await;
    peer.create("go");
    peer.finish(job).await;
    let cancelled = peer.defer("a", until("never")).await;
    peer.call("job_cancel", json!({"job_id": cancelled.job_id()})).await;
    assert!(peer.notifications().is_empty());
}

#[tokio::test]
async fn c80_a_change_that_the_server_announces_is_relayed_once() {
    let peer = open(&tools(&["a"]), 9, &[]).await;
    peer.ask("tools/list", json!({})).await;
    let note =
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed", "params":{"x":1.10}}"#;
    peer.call("a", json!({"steps": [{"send": note}, {"result": "{}"}]})).await;
    peer.settle().await;
    let notes = peer.notifications();
    assert_eq!((notes.len(), &*notes[0].text), (1, note));
}

// Names.

/// Which job the answer of ours to a listing shows first.
async fn ours_works(peer: &Peer, get: &str, cancel: &str) {
    let job = peer.defer("a", until("never")).await;
    assert_eq!(job.next_action().expect("an action").tool, get);
    let list = peer.call(get, json!({})).await;
    assert_eq!(list.structured()["jobs"][0]["job_id"], job.job_id());
    let cancelled = peer.call(cancel, json!({"job_id": job.job_id()})).await;
    assert_eq!(cancelled.status(), "cancelled");
}

async fn theirs_works(peer: &Peer, name: &str) {
    assert_eq!(peer.call(name, json!({"text": "theirs"})).await.text(), "theirs");
}

#[tokio::test]
async fn c81_a_clash_gives_ours_another_name_and_both_are_callable() {
    let peer = open(&tools(&["a", "job_get"]), 9, &[]).await;
    let expected = ["a", "job_get", "unhurry_job_get", "job_cancel"];
    assert_eq!(all_names(&peer).await, expected);
    theirs_works(&peer, "job_get").await;
    ours_works(&peer, "unhurry_job_get", "job_cancel").await;
}

#[tokio::test]
async fn c81_a_clash_with_both_on_a_page_that_nobody_has_read() {
    let peer = open(&tools(&["a", "b", "job_get", "job_cancel"]), 2, &[]).await;
    let list = peer.ask("tools/list", json!({})).await;
    let page = list.tool_names();
    assert_eq!(page, ["a", "b", "unhurry_job_get", "unhurry_job_cancel"]);
    theirs_works(&peer, "job_get").await;
    theirs_works(&peer, "job_cancel").await;
    ours_works(&peer, "unhurry_job_get", "unhurry_job_cancel").await;
}

#[tokio::test]
async fn c81_a_clash_is_known_to_a_client_that_has_not_listed_anything() {
    let peer = open(&tools(&["a", "job_get"]), 9, &[]).await;
    theirs_works(&peer, "job_get").await;
    ours_works(&peer, "unhurry_job_get", "job_cancel").await;
}

#[tokio::test]
async fn c81_a_prefix_of_the_users_own_avoids_the_clash() {
    let peer = open(&tools(&["a", "job_get"]), 9, &["--tool-prefix", "x_"]).await;
    assert_eq!(all_names(&peer).await, ["a", "job_get", "x_job_get", "x_job_cancel"]);
    theirs_works(&peer, "job_get").await;
    ours_works(&peer, "x_job_get", "x_job_cancel").await;
}

#[tokio::test]
async fn c81_a_name_once_given_stays_for_the_session() {
    let peer = open(&tools(&["a"]), 9, &[]).await;
    peer.ask("tools/list", json!({})).await;
    peer.change_tools(&tools(&["a", "job_get"]).to_string());
    assert!(all_names(&peer).await.ends_with(&OURS.map(str::to_owned)));
    ours_works(&peer, "job_get", "job_cancel").await;
}

#[tokio::test]
async fn s4_5_the_output_schema_of_a_tool_is_hidden_unless_it_is_never_deferred() {
    let config = "[tools.b]\nanswer_within = \"never\"";
    let schema = r#""outputSchema":{"type":"object","x":1e400}"#;
    let mut text = String::new();
    write!(text, r#"[{{"name":"a",{schema},"z":1.10}},{{"name":"b",{schema},"z":1.10}}]"#).unwrap();
    let peer = Setup::proxied().config(config).tools(&text).spawn();
    peer.initialize_under("2025-06-18").await;
    let list = peer.ask("tools/list", json!({})).await;
    let tools = support::json::member(list.raw_result(), "tools").and_then(support::json::elements);
    let tools = tools.expect("a list of tools");
    let kept = ["_meta", "unhurry/outputSchema"];
    assert_eq!(support::json::path(tools[0], &kept), Some(r#"{"type":"object","x":1e400}"#));
    assert_eq!(support::json::member(tools[0], "outputSchema"), None);
    assert_eq!(tools[1], format!(r#"{{"name":"b",{schema},"z":1.10}}"#));
}

// While a call runs.

/// A session with a server that reads nothing while a call runs, and its running call.
async fn blocked(budget: &str) -> (Peer, String) {
    let peer = Peer::opened_and_listed(
        Setup::proxied().options(&["--answer-within", budget]).flags(&["--block"]),
    )
    .await;
    let call = peer.start_until("go").await;
    (peer, call)
}

#[tokio::test]
async fn c26_a_ping_is_answered_by_the_proxy_while_a_call_runs() {
    let (peer, call) = blocked("20s").await;
    let ping = peer.ask("ping", json!({})).await;
    assert_eq!(ping.raw_result(), "{}");
    let late = peer.start("job_get", json!({})).await;
    peer.answer(&late).await;
    peer.create("go");
    assert_eq!(peer.answer(&call).await.text(), "go");
    peer.settle().await;
    assert!(peer.received("ping").is_empty());
}

#[tokio::test]
async fn c26_a_ping_is_answered_by_the_proxy_while_a_call_runs_in_the_background() {
    let (peer, call) = blocked("250ms").await;
    let job = peer.answer(&call).await;
    assert_eq!(peer.ask("ping", json!({})).await.raw_result(), "{}");
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
    peer.settle().await;
    assert!(peer.received("ping").is_empty());
}

#[tokio::test]
async fn c26_a_ping_is_answered_by_the_proxy_while_the_server_starts() {
    let peer = Peer::proxied(&[], &["--silent"]);
    peer.request("initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!(peer.ask("ping", json!({})).await.raw_result(), "{}");
    peer.settle().await;
    assert!(peer.received("ping").is_empty());
}

#[tokio::test]
async fn s1_1_5_any_other_ping_is_forwarded() {
    let peer = Peer::open_to(&["--answer", "ping={\"x\":1.10}"]).await;
    assert_eq!(peer.ask("ping", json!({})).await.raw_result(), r#"{"x":1.10}"#);
    peer.call("echo", json!({})).await;
    assert_eq!(peer.ask("ping", json!({})).await.raw_result(), r#"{"x":1.10}"#);
    assert_eq!(peer.received("ping").len(), 2);
}

#[tokio::test]
async fn c26_a_list_that_a_blocked_server_leaves_unanswered_is_given_from_memory() {
    let (peer, call) = blocked("20s").await;
    let before = peer.lines()[1].clone();
    let begin = Instant::now();
    let id = peer.request("tools/list", json!({})).await;
    let answer = peer.answer(&id).await;
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_eq!(answer.raw_result(), Answer::new(&before.text).raw_result());
    assert!(peer.answers(&call).is_empty(), "the call still runs");

    peer.create("go");
    assert_eq!(peer.answer(&call).await.text(), "go");
    peer.settle().await;
    assert_eq!(peer.received("tools/list").len(), 2, "the server answers both");
    assert_eq!(peer.answers(&id).len(), 1, "its late answer is dropped");
}

#[tokio::test]
async fn s1_1_5_a_list_without_a_last_answer_waits_for_the_server() {
    let (peer, call) = blocked("20s").await;
    let known = peer.request("tools/list", json!({})).await;
    let unknown = [
        peer.request("prompts/list", json!({})).await,
        peer.request("tools/list", json!({"cursor": "1"})).await,
        peer.request("tools/list", json!({"x": 1})).await,
    ];
    let later = peer.request("tools/list", json!({})).await;
    peer.answer(&known).await;
    peer.answer(&later).await;
    assert!(unknown.iter().all(|id| peer.answers(id).is_empty()));
    peer.create("go");
    assert_eq!(peer.answer(&call).await.text(), "go");
    for id in &unknown {
        peer.answer(id).await;
    }
    assert_eq!(*peer.answers(&unknown[0])[0].result(), json!({"prompts": []}));
}

#[tokio::test]
async fn s1_1_5_a_list_of_a_server_that_answers_is_its_own() {
    let peer = open(&tools(&["a"]), 9, &[]).await;
    peer.ask("tools/list", json!({})).await;
    let job = peer.defer("a", until("never")).await;
    peer.change_tools(&tools(&["b"]).to_string());
    assert_eq!(peer.ask("tools/list", json!({})).await.tool_names()[0], "b");
    assert_eq!(peer.look(job.job_id()).await.status(), "working");
}

#[tokio::test]
async fn c26_a_second_call_and_a_poll_are_answered_while_a_call_runs() {
    let peer = Peer::open(&[]).await;
    let job = peer.park("go").await;
    let poll = peer.start("job_get", json!({"job_id": job.job_id()})).await;
    peer.assert_works().await;
    assert!(!peer.ask("tools/list", json!({})).await.tool_names().is_empty());
    assert!(peer.answers(&poll).is_empty());
    peer.create("go");
    assert_eq!(peer.answer(&poll).await.text(), "go");
}

#[tokio::test]
async fn s1_1_5_a_list_that_is_slow_while_nothing_runs_is_the_servers_own() {
    let setup = Setup::proxied().tools(&tools(&["a"]).to_string());
    let hold = setup.path("hold").display().to_string();
    let peer = Peer::opened_and_listed(setup.flags(&["--hold-lists", &hold])).await;
    peer.change_tools(&tools(&["b"]).to_string());
    peer.create("hold");
    let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    peer.script(json!([{"send": note}, {"result": "{}"}])).await;
    let list = peer.request("tools/list", json!({})).await;
    // Longer than a blocked server would be waited for.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(peer.answers(&list).is_empty(), "{:?}", peer.answers(&list));
    std::fs::remove_file(&hold).expect("it is there");
    assert_eq!(peer.answer(&list).await.tool_names()[0], "b");
}

#[tokio::test]
async fn s1_1_5_a_list_from_memory_that_was_not_the_last_word_is_followed_by_its_change() {
    let setup = Setup::proxied().options(&["--answer-within", "20s"]).flags(&["--block"]);
    let peer = Peer::opened_and_listed(setup.tools(&tools(&["a"]).to_string())).await;
    let call = peer.start_until("go").await;
    peer.change_tools(&tools(&["b"]).to_string());
    assert_eq!(peer.ask("tools/list", json!({})).await.tool_names()[0], "a");
    assert!(peer.answers(&call).is_empty(), "the call still runs");
    peer.create("go");
    peer.answer(&call).await;
    peer.wait_method("notifications/tools/list_changed").await;
    assert_eq!(peer.ask("tools/list", json!({})).await.tool_names()[0], "b");
    assert_eq!(peer.notifications().len(), 1);
}

#[tokio::test]
async fn s1_1_5_a_list_under_the_id_of_a_background_call_is_given_from_memory_too() {
    let peer = Peer::open_to(&["--block"]).await;
    peer.ask("tools/list", json!({})).await;
    let job = peer.park("go").await;
    let mark = peer.mark();
    peer.request_as(job.raw_id(), "tools/list", json!({})).await;
    assert!(!peer.answer_from(mark, job.raw_id()).await.tool_names().is_empty());
    assert_eq!(peer.look(job.job_id()).await.status(), "working");
    peer.create("go");
    assert_eq!(peer.finish(job).await.text(), "go");
}

// Servers that do not list their tools.

#[tokio::test]
async fn s5_3_a_server_that_dies_of_its_first_list_still_keeps_its_names() {
    // The first process reads `initialize`, `initialized` and the list; the second is the fake server.
    let first = r#"mkdir was_here 2>/dev/null || exec "$@"; read -r _
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
        read -r _; read -r _; exit 3"#;
    for (method, params) in [("tools/list", json!({})), ("tools/call", json!({"name": "job_get"}))]
    {
        let setup = Setup::proxied().server_through(first);
        let peer = Peer::opened(setup.tools(&tools(&["a", "job_get"]).to_string())).await;
        peer.ask(method, params).await;
        assert_eq!(all_names(&peer).await, ["a", "job_get", "unhurry_job_get", "job_cancel"]);
        theirs_works(&peer, "job_get").await;
        ours_works(&peer, "unhurry_job_get", "job_cancel").await;
    }
}

#[tokio::test]
async fn s5_3_a_server_that_never_lists_its_tools_does_not_hold_up_ours() {
    let peer = Peer::open_to(&["--unanswered", "tools/list"]).await;
    let start = Instant::now();
    assert_eq!(peer.job_get(json!({})).await.structured()["jobs"], json!([]));
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}
