//! Which budget holds (contract §3), as the caller sees it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Answer, Peer, SOON, Setup};

/// A session of the client with this name.
async fn open_as(client: &str, setup: Setup) -> Peer {
    let peer = setup.spawn();
    peer.initialize_as(client, "1.0.0", "2025-11-25").await;
    peer
}

/// A call that takes 900 ms: its own result, or a handle.
async fn slow(peer: &Peer, tool: &str) -> Answer {
    let answer = peer.call(tool, json!({"ms": 900, "text": "slow"})).await;
    assert!(answer.is_handle() || answer.text().contains("slow"), "{}", answer.raw);
    answer
}

#[tokio::test]
async fn s3_an_exact_name_beats_the_longest_glob_beats_defaults() {
    let peer = Peer::open_with(
        r#"
        defaults.answer_within = "10s"
        tools."*l*".answer_within = "10s"
        tools."sl*p".answer_within = "300ms"
        tools."f*".answer_within = "300ms"
        tools.fail.answer_within = "10s"
        "#,
    )
    .await;
    assert!(slow(&peer, "sleep").await.is_handle(), "the longest glob");
    assert!(!slow(&peer, "fail").await.is_handle(), "the exact name");
    let other = peer.call("big", json!({"ms": 900, "bytes": 1})).await;
    assert_eq!(other.text(), "x", "the defaults");
}

#[tokio::test]
async fn c69_s3_a_client_has_its_own_budget_and_wait() {
    let toml = "defaults.answer_within = \"10s\"\nclients.\"short-*\".answer_within = \"300ms\"\n";
    let peer = open_as("other", Setup::proxied().config(toml)).await;
    assert!(!slow(&peer, "sleep").await.is_handle());
    let peer = open_as("short-client", Setup::proxied().config(toml)).await;
    let handle = slow(&peer, "sleep").await;
    assert!(handle.is_handle(), "{}", handle.raw);
    let (handle, start) = (peer.job("never").await, Instant::now());
    let args = json!({"job_id": handle.job_id(), "wait_seconds": 600});
    assert!(peer.job_get(args).await.is_handle());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn s3_no_tool_and_no_wish_outlasts_the_clients_section() {
    let toml = "tools.\"*\".answer_within = \"15s\"\nclients.short.answer_within = \"300ms\"\n";
    let peer = open_as("short", Setup::proxied().config(toml)).await;
    assert!(slow(&peer, "sleep").await.is_handle(), "[tools]");
    let meta = json!({"unhurry/answer_within": 15});
    let answer = peer.call_with_meta("sleep", json!({"ms": 900, "x": 1}), meta).await;
    assert!(answer.is_handle(), "a wish: {}", answer.raw);
}

#[tokio::test]
async fn s3_the_built_in_table_does_not_override_a_default_that_the_user_set() {
    let setups = [
        Setup::proxied().options(&SOON),
        Setup::proxied().config("[defaults]\nanswer_within = \"300ms\"\n"),
        Setup::proxied().env("UNHURRY_DEFAULTS__ANSWER_WITHIN", "300ms"),
    ];
    for setup in setups {
        let peer = open_as("codex-mcp-client", setup).await;
        assert!(slow(&peer, "sleep").await.is_handle());
    }
}

#[tokio::test]
async fn s3_the_built_in_table_holds_for_a_client_with_a_short_cap() {
    let peer = open_as("mcp", Setup::proxied()).await;
    let start = Instant::now();
    peer.job("never").await;
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test]
async fn s2_flags_win_over_the_environment_which_wins_over_the_file() {
    let name = "UNHURRY_DEFAULTS__ANSWER_WITHIN";
    let file = "[defaults]\nanswer_within = \"10s\"\n";
    let peer = Peer::opened(Setup::proxied().config(file).env(name, "300ms")).await;
    assert!(slow(&peer, "sleep").await.is_handle(), "environment over file");
    let flag = ["--answer-within", "10s"];
    let setup = Setup::proxied().config("[defaults]\nanswer_within = \"300ms\"\n");
    let peer = Peer::opened(setup.env(name, "300ms").options(&flag)).await;
    assert!(!slow(&peer, "sleep").await.is_handle(), "flag over environment");
}

#[tokio::test]
async fn s4_1_only_a_budget_of_zero_waits_250_ms() {
    let peer = open_as("any", Setup::proxied().options(&["--answer-within", "20ms"])).await;
    assert!(peer.call("sleep", json!({"ms": 240})).await.is_handle(), "20 ms are kept");
}

#[tokio::test]
async fn s3_a_tool_that_is_never_deferred_is_exempt_from_all_of_it() {
    let toml = "defaults.answer_within = \"300ms\"\ntools.sleep.answer_within = \"never\"\nclients.short.answer_within = \"300ms\"\n";
    let peer = open_as("short", Setup::proxied().config(toml)).await;
    let meta = json!({"unhurry/answer_within": 0});
    let answer = peer.call_with_meta("sleep", json!({"ms": 900}), meta).await;
    assert_eq!((answer.text(), answer.job()), ("slept", &Value::Null));
    let sent: Value =
        serde_json::from_str(peer.calls_of("sleep")[0].raw_params().unwrap()).unwrap();
    assert_eq!(sent["_meta"], json!({}), "the wish is not forwarded");
}

#[tokio::test]
async fn s3_never_by_default_yields_to_a_tool_that_is_deferred() {
    let toml = "defaults.answer_within = \"never\"\ntools.wait_file.answer_within = \"300ms\"\n";
    let peer = Peer::open_with(toml).await;
    assert!(!slow(&peer, "sleep").await.is_handle());
    let handle = peer.job("go").await;
    let poll = peer.start("job_get", json!({"job_id": handle.job_id()})).await;
    peer.settle().await;
    assert!(peer.answers(&poll).is_empty(), "the default wait is 25 s where the budget is never");
    peer.create("go");
    assert_eq!(peer.answer(&poll).await.text(), "go is open");
}

#[tokio::test]
async fn s5_1_the_default_wait_is_25_s_where_the_budget_is_zero() {
    let peer = Peer::open(&["--answer-within", "0s"]).await;
    let handle = peer.job("go").await;
    let poll = peer.start("job_get", json!({"job_id": handle.job_id()})).await;
    peer.settle().await;
    assert!(peer.answers(&poll).is_empty());
    peer.create("go");
    assert_eq!(peer.answer(&poll).await.text(), "go is open");
}

#[tokio::test]
async fn s5_1_a_tools_own_budget_plays_no_part_in_the_wait() {
    let toml = "defaults.answer_within = \"400ms\"\ntools.wait_file.answer_within = \"10m\"\n";
    let peer = Peer::open_with(toml).await;
    let meta = json!({"unhurry/answer_within": 0});
    let handle = peer.call_with_meta("wait_file", peer.gate("never"), meta).await;
    assert!(peer.job_get(json!({"job_id": handle.job_id()})).await.is_handle());
}
