//! What stands between messages, and what breaks them (contract §9; C29, C31, C32, C33, C71, C73).

use std::time::Duration;

use serde_json::{Value, json};
use support::json::string;
use support::{Answer, Line, Peer, SOON, Setup, eventually, process};

const MIB: usize = 1 << 20;
/// What a proxy in a debug build takes by itself, generously.
const ITSELF: usize = 40 * MIB;
/// The result of a script.
const WELL: &str = r#"{"content":[{"type":"text","text":"well"}]}"#;

/// The server still is the first process, and it answers.
async fn same_server_works(peer: &Peer) {
    peer.assert_works().await;
    let starts = peer.journal().into_iter().filter(|entry| entry.event == "start");
    assert_eq!(starts.count(), 1, "the server was started again");
}

fn assert_clean(peer: &Peer) {
    peer.lines().iter().for_each(Line::assert_protocol);
}

fn peak(peer: &Peer) -> usize {
    usize::try_from(process::peak_memory(peer.pid())).expect("a size")
}

/// The text of a result in one block, however it is paged.
async fn whole_text(peer: &Peer, first: Answer) -> String {
    let pages = peer.pages(first).await;
    let last = pages.len() - 1;
    let texts = pages.iter().enumerate().flat_map(|(page, answer)| {
        let blocks = answer.content();
        let own = usize::from(page < last);
        blocks[..blocks.len() - own].iter().filter_map(|block| block["text"].as_str())
    });
    texts.collect()
}

// Lines that are no messages.

const JUNK: &[&str] = &[
    "npx: installed 12 in 3.4 s",
    "\u{1b}[32mready\u{1b}[0m",
    r#"{"level":"info","msg":"up"}"#,
    r#"{"jsonrpc":"2.0","id":"#,
    r#"{"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
    r#"{"id":1,"result":"a log line"}"#,
    "null",
    "42",
    "\"text\"",
    "[]",
    "[1,null,\"x\"]",
    "[{\"level\":\"info\"}]",
    "[INFO] listening",
    "[2026-01-01T00:00:00Z] [main]",
    "{}",
    "}{",
    "   ",
    "",
    "\u{feff}",
    "\u{1}",
];

#[tokio::test]
async fn c29_junk_of_the_server_is_skipped_and_logged_before_and_between_messages() {
    let flags: Vec<&str> = JUNK.iter().flat_map(|line| ["--banner", line]).collect();
    let peer = Peer::open_to(&flags).await;
    let mut steps: Vec<Value> = JUNK.iter().map(|line| json!({"send": line})).collect();
    steps.push(json!({"result": WELL}));
    assert_eq!(peer.script(steps.into()).await.text(), "well");
    same_server_works(&peer).await;
    assert_clean(&peer);
    assert_eq!(peer.lines().len(), 3, "more than the answers: {:?}", peer.lines());
    peer.close_stdin().await;
    peer.stderr_ended().await;
    for shown in ["npx: installed 12 in 3.4 s", "[32mready", r#"\"msg\":\"up\""#] {
        let skipped = peer.stderr().matches(shown).count();
        assert_eq!(skipped, 2, "{shown:?} is logged twice: {}", peer.stderr());
    }
    assert!(!peer.stderr().contains('\u{1b}'), "escape sequences reach the terminal");
}

#[tokio::test]
async fn c29_half_a_line_spoils_only_itself() {
    let peer = Peer::open(&[]).await;
    let steps = json!([{"write": r#"{"jsonrpc":"2.0","id":$ID,"#}, {"sleep": 50}, {"send": ""}, {"result": WELL}]);
    assert_eq!(peer.script(steps).await.text(), "well");
    same_server_works(&peer).await;
}

#[tokio::test]
async fn s9_a_message_may_come_in_two_halves() {
    let peer = Peer::open(&[]).await;
    let halves = [r#"{"jsonrpc":"2.0","id":$ID,"re"#, r#"sult":{"content":[]}}"#];
    let steps = json!([{"write": halves[0]}, {"sleep": 100}, {"send": halves[1]}]);
    assert_eq!(peer.script(steps).await.raw_result(), r#"{"content":[]}"#);
    same_server_works(&peer).await;
}

#[tokio::test]
async fn s9_bom_single_bytes_and_crlf_of_the_server() {
    for flags in
        [&["--bom"][..], &["--crlf"], &["--byte-writes"], &["--bom", "--crlf", "--byte-writes"]]
    {
        let peer = Peer::open_to(flags).await;
        let text = "line\r\nend \u{2028} \u{85} \u{feff} end";
        assert_eq!(peer.call("echo", json!({"text": text})).await.text(), text, "{flags:?}");
        same_server_works(&peer).await;
        assert_clean(&peer);
        assert_eq!(peer.lines().len(), 3);
    }
}

#[tokio::test]
async fn s9_bom_single_bytes_and_crlf_of_the_client() {
    let peer = Peer::proxied(&[], &[]);
    let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    for byte in format!("\u{feff}{opening}\r\n").as_bytes() {
        peer.send_bytes(&[*byte]).await;
    }
    assert_eq!(peer.answer("1").await.result()["protocolVersion"], "2025-11-25");
    peer.send_bytes(b"\r\n\n  \n").await;
    peer.send_bytes(b"  {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\t\r\n").await;
    assert_eq!(peer.answer("2").await.raw_result(), "{}");
    let told: Vec<_> = peer.journal().into_iter().filter(|entry| entry.event.is_empty()).collect();
    assert_eq!(
        told.iter().map(|entry| &*entry.line).collect::<Vec<_>>(),
        [opening, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#]
    );
}

#[tokio::test]
async fn c71_a_crlf_server_through_a_job() {
    let setup = Setup::proxied().options(&SOON);
    let peer = Peer::opened(setup.flags(&["--crlf"])).await;
    let text = "one\u{2028}two\nthree\r";
    let handle = peer.slow_call("sleep", json!({"ms": 600, "text": text})).await;
    assert_eq!(peer.finish(handle).await.text(), text);
    assert_clean(&peer);
}

// Bytes that are no UTF-8.

#[tokio::test]
async fn c73_invalid_utf8_of_the_server_is_replaced() {
    let setup = Setup::proxied().options(&["--answer-within", "600ms"]);
    let peer = Peer::opened(setup).await;
    let start = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"a"#;
    for ms in [0, 1200] {
        let steps = json!([
            {"sleep": ms}, {"write": start}, {"write_hex": "B0A1FF"}, {"send": r#"z"}]}}"#},
        ]);
        let answer = peer.script(steps).await;
        assert_eq!(answer.is_handle(), ms > 0);
        let text = peer.finish(answer).await.text().to_owned();
        assert!(
            text.starts_with('a') && text.ends_with('z') && text.contains('\u{fffd}'),
            "{text}"
        );
    }
    same_server_works(&peer).await;
    assert_clean(&peer);
}

#[tokio::test]
async fn c73_invalid_utf8_of_the_client_is_replaced() {
    let peer = Peer::open(&[]).await;
    let call = r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"#;
    peer.send_bytes(&[call.as_bytes(), b"\xC3\x28\xFF", b"z\"}}}\n"].concat()).await;
    let answer = peer.answer("77").await;
    assert_eq!(answer.text(), "a\u{fffd}(\u{fffd}z");
    assert!(peer.journal().iter().all(|entry| entry.json["utf8"] != false));
    same_server_works(&peer).await;
}

#[tokio::test]
async fn s9_invalid_utf8_alone_on_a_line_ends_nothing() {
    let peer = Peer::open(&[]).await;
    peer.send_bytes(b"\xFF\xFE\x00\n").await;
    let steps = json!([{"write_hex": "FFFE000A"}, {"result": WELL}]);
    assert_eq!(peer.script(steps).await.text(), "well");
    same_server_works(&peer).await;
    assert_clean(&peer);
}

// Long lines.

#[tokio::test]
async fn c31_a_line_of_12_mib_is_delivered() {
    let peer = Peer::open(&[]).await;
    let answer = peer.call("big", json!({"bytes": 12 * MIB})).await;
    assert_eq!(answer.text().len(), 12 * MIB);
    same_server_works(&peer).await;
}

#[tokio::test]
async fn c31_a_line_of_12_mib_is_delivered_through_a_job() {
    let toml = "[defaults]\nanswer_within = \"300ms\"\n[jobs]\npage_bytes = \"5MiB\"\n";
    let peer = Peer::opened(Setup::proxied().config(toml)).await;
    let args = json!({"bytes": 12 * MIB, "ms": 700, "pattern": "0123456789äöü€"});
    let handle = peer.slow_call("big", args).await;
    let first = peer.finish(handle).await;
    let text = whole_text(&peer, first).await;
    let pattern = "0123456789äöü€";
    assert!(text == pattern.repeat(12 * MIB / pattern.len()), "{} bytes", text.len());
    same_server_works(&peer).await;
}

#[tokio::test]
async fn c31_an_answer_above_max_message_fails_its_call_only() {
    let peer = Peer::opened(Setup::proxied().config("[server]\nmax_message = \"1MiB\"\n")).await;
    let other = peer.start("sleep", json!({"ms": 300, "text": "other"})).await;
    let answer = peer.call("big", json!({"bytes": 2 * MIB})).await;
    assert!(answer.is_error(), "{}", answer.raw);
    for part in ["max_message", "1048576 bytes", "check before you repeat it"] {
        assert!(answer.text().contains(part), "no {part:?} in {}", answer.text());
    }
    assert_eq!(peer.answer(&other).await.text(), "other");
    same_server_works(&peer).await;
}

#[tokio::test]
async fn c31_an_answer_above_max_message_fails_its_job() {
    let toml = "[defaults]\nanswer_within = \"300ms\"\n[server]\nmax_message = \"1MiB\"\n";
    let peer = Peer::opened(Setup::proxied().config(toml)).await;
    let handle = peer.call("big", json!({"bytes": 2 * MIB, "ms": 600})).await;
    let end = peer.finish(handle).await;
    assert_eq!((end.status(), end.is_error()), ("failed", true));
    assert!(end.text().contains("max_message"), "{}", end.text());
    same_server_works(&peer).await;
}

#[tokio::test]
async fn c31_an_answer_above_max_message_to_another_request_is_an_error() {
    let list = format!(r#"prompts/list={{"prompts":[],"x":"{}"}}"#, "x".repeat(100_000));
    let setup = Setup::proxied().config("[server]\nmax_message = \"64KiB\"\n");
    let peer = Peer::opened(setup.flags(&["--answer", &list])).await;
    let answer = peer.ask("prompts/list", json!({})).await;
    assert_eq!(answer.error_code(), -32603);
    assert!(answer.raw_error().contains("max_message"), "{}", answer.raw);
    same_server_works(&peer).await;
}

#[tokio::test]
async fn c31_a_request_above_max_message_is_refused_under_its_id() {
    let peer = Peer::opened(Setup::proxied().config("[server]\nmax_message = \"64KiB\"\n")).await;
    let long = "x".repeat(100_000);
    let last = format!(r#"{{"jsonrpc":"2.0","method":"x/{long}","id":"last"}}"#);
    peer.request_as(r#""first""#, "x/echo_params", json!({"long": long})).await;
    peer.send_raw(&last).await;
    for id in [r#""first""#, r#""last""#] {
        let answer = peer.answer(id).await;
        assert_eq!(answer.error_code(), -32600);
        let message = string(&answer.error()["message"].to_string()).expect("a message");
        assert!(message.contains("max_message") && message.contains("65536 bytes"), "{message}");
    }
    peer.notify("x/long", json!({"long": long})).await;
    same_server_works(&peer).await;
    assert!(peer.journal().iter().all(|entry| entry.line.len() < 100_000));
}

#[tokio::test]
async fn c32_200_mib_without_a_line_end_take_bounded_memory() {
    let peer = Peer::opened(Setup::proxied().config("[server]\nmax_message = \"4MiB\"\n")).await;
    let chunk = "x".repeat(64 << 10);
    let steps =
        json!([{"repeat": [chunk, 200 * MIB / chunk.len()]}, {"send": ""}, {"result": WELL}]);
    assert_eq!(peer.script(steps).await.text(), "well");
    let bound = ITSELF + 4 * 4 * MIB;
    assert!(peak(&peer) < bound, "{} bytes, at most {bound}", peak(&peer));
    same_server_works(&peer).await;
    peer.wait_stderr(|line| line.contains("209715200")).await;
    assert_clean(&peer);
}

#[tokio::test]
async fn c32_an_endless_line_of_the_client_takes_bounded_memory() {
    let peer = Peer::opened(Setup::proxied().config("[server]\nmax_message = \"1MiB\"\n")).await;
    let chunk = vec![b'x'; MIB];
    peer.send_bytes(br#"{"jsonrpc":"2.0","id":5,"method":"x/"#).await;
    for _ in 0..64 {
        peer.send_bytes(&chunk).await;
    }
    peer.send_bytes(b"\"}\n").await;
    assert_eq!(peer.answer("5").await.error_code(), -32600);
    assert!(peak(&peer) < ITSELF + 8 * MIB, "{} bytes", peak(&peer));
    same_server_works(&peer).await;
}

#[tokio::test]
async fn s9_memory_of_large_messages_is_given_back() {
    let peer = Peer::open(&[]).await;
    for _ in 0..8 {
        assert_eq!(peer.call("big", json!({"bytes": 8 * MIB})).await.text().len(), 8 * MIB);
    }
    peer.settle().await;
    let now = usize::try_from(process::memory(peer.pid())).expect("a size");
    assert!(now < ITSELF + 48 * MIB, "{now} bytes after 8 answers of 8 MiB");
}

#[tokio::test]
async fn c32_pings_of_a_client_that_does_not_read_take_bounded_memory() {
    // `head` shows the greeting; nobody reads what comes after it.
    let reader = r#"mkfifo out; { head -n 1; exec sleep 600; } <out & exec "$@" >out"#;
    let peer = Peer::opened(Setup::proxied().through(reader)).await;
    peer.start("wait_file", json!({"path": "never"})).await;
    peer.arrived("wait_file", 1).await;
    let ping = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "i".repeat(2000));
    let pings = format!("{ping}\n").repeat(500);
    for _ in 0..100 {
        let sent = peer.send_bytes(pings.as_bytes());
        if tokio::time::timeout(Duration::from_secs(2), sent).await.is_err() {
            break;
        }
    }
    assert!(peak(&peer) < 64 * MIB, "{} bytes", peak(&peer));
}

// stderr.

/// A step that floods stderr, and then the answer.
fn flood() -> Value {
    json!([{"stderr_flood": 256 << 10}, {"result": WELL}])
}

#[tokio::test]
async fn c33_256_kib_of_stderr_before_the_answer_block_nothing() {
    let peer = Peer::open_to(&["--stderr-at-start", "262144"]).await;
    assert_eq!(peer.script(flood()).await.text(), "well");
    same_server_works(&peer).await;
    let passed_on = || async { (peer.stderr().matches('e').count() > 500_000).then_some(()) };
    eventually(passed_on).await.expect("stderr is passed on");
}

#[tokio::test]
async fn c33_nobody_has_to_read_the_stderr_of_the_proxy() {
    let deaf = r#"mkfifo err; exec 3<>err; exec "$@" 2>&3 3>&-"#;
    for level in ["info", "debug"] {
        let setup = Setup::proxied().through(deaf).options(&["--log-level", level]);
        let peer = Peer::opened(setup.flags(&["--stderr-at-start", "262144"])).await;
        for _ in 0..3 {
            assert_eq!(peer.script(flood()).await.text(), "well");
        }
        same_server_works(&peer).await;
        assert!(peak(&peer) < ITSELF, "{} bytes", peak(&peer));
        peer.close_stdin().await;
        assert_eq!(peer.exit().await.code(), Some(0));
        peer.all_gone().await;
    }
}

#[tokio::test]
async fn c33_a_closed_stderr_of_the_proxy_does_no_harm() {
    let peer = Peer::opened(Setup::proxied().through(r#"exec "$@" 2>&-"#)).await;
    assert_eq!(peer.script(flood()).await.text(), "well");
    same_server_works(&peer).await;
    assert_clean(&peer);
}

#[tokio::test]
async fn c33_the_tail_in_an_error_is_bounded() {
    let peer = Peer::open(&[]).await;
    let line = "y".repeat(100_000);
    let steps = json!([{"stderr_flood": 256 << 10}, {"stderr": format!("{line}\n")}, {"stderr": "last"}, {"exit": 3}]);
    let answer = peer.script(steps).await;
    assert!(answer.text().contains("last"), "{}", answer.text());
    assert!(answer.text().len() < 16 << 10, "{} bytes", answer.text().len());
}
