//! Ten thousand calls at once, and answers that race with the end of their budget (contract §4.1, §4.3):
//! one message for each call, and no result lost.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};
use support::{Answer, Line, Peer, Setup, call_params, process, turn};

const MANY: usize = 10_000;
/// What a call in flight may take, in a debug build.
const BYTES_A_CALL: u64 = 4 << 10;

/// Ids by their number, so that no line has to be looked through twice.
type Answers = HashMap<u64, Answer>;

/// Sends so many requests at once; their ids follow one another from `first` on.
async fn send_all(peer: &Peer, first: u64, params: impl Iterator<Item = Value>) {
    let mut text = String::new();
    for (id, params) in (first..).zip(params) {
        let line = r#"{"jsonrpc":"2.0","method":"tools/call""#;
        writeln!(text, r#"{line},"id":{id},"params":{params}}}"#).expect("text can be written");
    }
    peer.send_bytes(text.as_bytes()).await;
}

/// Waits for so many answers from the mark on; each must be the only one to its request.
async fn collect(peer: &Peer, mark: usize, count: usize) -> Answers {
    let seen = Cell::new(0);
    let is_last = |line: &Line| {
        seen.set(seen.get() + usize::from(line.id().is_some() && line.method().is_none()));
        seen.get() == count
    };
    peer.wait_line_from(mark, is_last).await;
    peer.settle().await;
    let mut answers = Answers::new();
    for line in peer.lines().into_iter().skip(mark) {
        let answer = Answer::new(&line.text);
        let id = answer.json["id"].as_u64().expect("nothing but answers comes");
        assert!(answers.insert(id, answer).is_none(), "a second answer to {id}");
    }
    assert_eq!(answers.len(), count + 1, "the answers, and the one of settle()");
    answers
}

/// A blocked server, and ten thousand calls that wait for it.
async fn ten_thousand(budget: &str) -> (Peer, usize, u64) {
    let toml = format!(
        "[defaults]\nanswer_within = {budget:?}\n[tools.wait_file]\nanswer_within = \"never\"\n\
         [jobs]\nmax_running = 20000\n"
    );
    let peer = Peer::opened(Setup::proxied().config(&toml).flags(&["--block"])).await;
    peer.ask("tools/list", json!({})).await;
    peer.start("wait_file", json!({"path": peer.path("free")})).await;
    peer.arrived("wait_file", 1).await;
    let (mark, before) = (peer.mark(), process::memory(peer.pid()));
    let sleep = |number| call_params("sleep", json!({"text": format!("call {number}")}));
    send_all(&peer, 100_000, (0..MANY).map(sleep)).await;
    (peer, mark, before)
}

fn assert_small(peer: &Peer, before: u64) {
    let grown = process::memory(peer.pid()).saturating_sub(before);
    let bound = BYTES_A_CALL * MANY as u64 + (8 << 20);
    assert!(grown < bound, "{} bytes a call", grown / MANY as u64);
}

#[tokio::test]
async fn ten_thousand_calls_wait_at_once_and_all_are_answered() {
    let _turn = turn().await;
    let (peer, mark, before) = ten_thousand("10m").await;
    // Answered by the proxy itself, after all that came before it.
    peer.ask("ping", json!({})).await.result();
    assert_eq!(peer.mark(), mark + 1, "no call has its answer yet");
    assert_small(&peer, before);
    peer.create("free");
    let answers = collect(&peer, mark + 1, MANY + 1).await;
    for number in 0..MANY {
        let answer = &answers[&(100_000 + number as u64)];
        assert_eq!(answer.text(), format!("call {number}"));
    }
    assert_eq!(peer.calls_of("sleep").len(), MANY);
}

#[tokio::test]
async fn ten_thousand_calls_become_jobs_at_once_and_no_result_is_lost() {
    let _turn = turn().await;
    let (peer, mark, before) = ten_thousand("300ms").await;
    let handles = handles(&peer, mark).await;
    assert_small(&peer, before);
    peer.create("free");
    peer.wait_line_from(mark, |line| line.text.contains("there")).await;
    let mark = peer.mark();
    let get = |number| {
        let id = handles[&(100_000 + number as u64)].job_id().to_owned();
        call_params("job_get", json!({"job_id": id, "wait_seconds": 1}))
    };
    send_all(&peer, 200_000, (0..MANY).map(get)).await;
    let mut answers = collect(&peer, mark, MANY).await;
    for number in 0..MANY {
        let answer = answers.remove(&(200_000 + number as u64)).expect("an answer");
        assert_eq!(peer.finish(answer).await.text(), format!("call {number}"));
    }
    assert_eq!(peer.calls_of("sleep").len(), MANY);
}

/// The handles of all calls, while the server still is blocked.
async fn handles(peer: &Peer, mark: usize) -> Answers {
    let seen = Cell::new(0);
    let is_last = |_: &Line| {
        seen.set(seen.get() + 1);
        seen.get() == MANY
    };
    peer.wait_line_from(mark, is_last).await;
    let lines = peer.lines();
    let answers = lines.iter().skip(mark).map(|line| Answer::new(&line.text));
    let answers: Answers =
        answers.map(|answer| (answer.json["id"].as_u64().expect("an id"), answer)).collect();
    assert_eq!(answers.len(), MANY, "one handle for each call");
    assert!(answers.values().all(Answer::is_handle));
    answers
}

// The race.

const BUDGET: i64 = 275;
const RACES: usize = 20;
const RACERS: usize = 50;

#[tokio::test]
async fn s4_1_answers_that_race_with_the_end_of_the_budget_come_once_and_are_never_lost() {
    let _turn = turn().await;
    let peer = Peer::open(&["--answer-within", &format!("{BUDGET}ms")]).await;
    peer.ask("tools/list", json!({})).await;
    let (mut centre, mut in_time, mut late) = (BUDGET, 0, 0);
    for race in 0..RACES {
        let (first, mark) = (1_000_000 + (race * RACERS) as u64, peer.mark());
        let sleep = |racer: usize| {
            let ms = centre - 10 + (racer % 21) as i64;
            call_params("sleep", json!({"ms": ms, "text": format!("race {race}, {racer}")}))
        };
        send_all(&peer, first, (0..RACERS).map(sleep)).await;
        let answers = collect(&peer, mark, RACERS).await;
        let handles = answers.values().filter(|answer| answer.is_handle()).count();
        (in_time, late) = (in_time + RACERS - handles, late + handles);
        // The next race comes closer to the moment itself, whatever this machine adds.
        centre += (RACERS / 2) as i64 / 5 - handles as i64 / 5;
        for racer in 0..RACERS {
            let answer = answers[&(first + racer as u64)].clone();
            let end = peer.finish(answer).await;
            assert_eq!(end.text(), format!("race {race}, {racer}"));
        }
    }
    assert!(in_time > 0 && late > 0, "no race: {in_time} in time, {late} late");
    assert_eq!(peer.calls_of("sleep").len(), RACES * RACERS);
}
