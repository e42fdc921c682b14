//! What the demonstration prints.

use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::layout::layout;
use super::scene::{BUDGET, PATIENCE, Scene, Wait, WaitEnd};
use super::server::SLOW;
use super::timeline::{BarEnd, Case, Mark, Row, draw};
use super::transcript::{Direction, Entry};

/// Columns before a message.
const MARGIN: usize = 10;

/// What is run now, for whoever waits for it.
pub(crate) fn introduction() -> String {
    format!(
        "A tool that takes {0} s, and a client that gives up after {1} s: without unhurry, and \
         with\n`unhurry --answer-within {BUDGET}`. Both are run now, which takes {0} s.\n\n",
        SLOW.as_secs(),
        PATIENCE.as_secs()
    )
}

/// Who waited for whom.
pub(crate) fn timeline(without: &Scene, with: &Scene) -> String {
    let fate = if without.waits.iter().any(|wait| wait.end == WaitEnd::GaveUp) {
        "lost"
    } else {
        "received"
    };
    let cases = [
        Case {
            title: "without unhurry".to_owned(),
            rows: vec![client(without), server(without, fate)],
        },
        Case {
            title: "with unhurry".to_owned(),
            rows: vec![client(with), answers(with), server(with, "received")],
        },
    ];
    draw(&cases) + "\n"
}

fn client(scene: &Scene) -> Row<'_> {
    let marks = scene.waits.iter().map(|wait| bar(wait, scene.start)).collect();
    let longest = scene.waits.iter().map(|wait| wait.to - wait.from).max().unwrap_or_default();
    let gave_up = scene.waits.iter().any(|wait| wait.end == WaitEnd::GaveUp);
    let note = if gave_up {
        format!("gave up after {}", seconds(longest))
    } else {
        format!("{} at most", seconds(longest))
    };
    Row { name: "  client waits", marks, note }
}

fn bar(wait: &Wait, start: Instant) -> Mark<'_> {
    let end = if wait.end == WaitEnd::GaveUp { BarEnd::GaveUp } else { BarEnd::Answer };
    Mark::Bar { from: wait.from - start, to: wait.to - start, label: &wait.tool, end }
}

fn answers(scene: &Scene) -> Row<'_> {
    let marks = scene.waits.iter().map(|wait| word(wait, scene.start)).collect();
    Row { name: "  client gets", marks, note: String::new() }
}

fn word(wait: &Wait, start: Instant) -> Mark<'_> {
    let text = match wait.end {
        WaitEnd::Handle => "job_id",
        WaitEnd::Result => "result",
        WaitEnd::GaveUp => "",
    };
    Mark::Word { at: wait.to - start, text }
}

fn server<'a>(scene: &Scene, fate: &str) -> Row<'a> {
    let to = scene.answered - scene.start;
    let marks = vec![Mark::Bar { from: Duration::ZERO, to, label: "", end: BarEnd::Answer }];
    Row { name: "  server works", marks, note: format!("answer at {}: {fate}", seconds(to)) }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// The messages of both cases: shortened, or as lines of JSON as they were on the wire.
pub(crate) fn messages(without: &Scene, with: &Scene, verbose: bool) -> String {
    let mut text = String::from(
        "The messages: \"-->\" is what the client sends, \"<--\" what it gets; seconds count from the \
         slow call.\n",
    );
    if !verbose {
        text += "They are shortened; `unhurry demo --verbose` shows them whole.\n";
    }
    for (title, scene) in [("without unhurry", without), ("with unhurry", with)] {
        let _ = writeln!(text, "\n{title}");
        for entry in &scene.transcript {
            text += &match entry {
                Entry::Note(note) => format!("# {note}\n"),
                Entry::Message { direction, at, line } => {
                    let head = head(*direction, *at, scene.start);
                    match verbose {
                        true => format!("# {}\n{line}\n", head.trim_end()),
                        false => head + &message(line) + "\n",
                    }
                }
            };
        }
    }
    text
}

/// Which way a message went, and when. Before the slow call there is no time to tell.
fn head(direction: Direction, at: Instant, start: Instant) -> String {
    let arrow = match direction {
        Direction::Sent => "-->",
        Direction::Received => "<--",
    };
    let time = at.checked_duration_since(start);
    let time = time.map_or(String::new(), |time| format!("{:.1}", time.as_secs_f64()));
    format!("{:MARGIN$}", format!("{arrow}  {time}"))
}

/// A message without its envelope: method and parameters, or what was answered.
fn message(line: &str) -> String {
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    let Some(method) = message["method"].as_str() else {
        let answer = message.get("result").or(message.get("error")).unwrap_or(&Value::Null);
        return tool_names(answer).unwrap_or_else(|| layout(answer, MARGIN, MARGIN));
    };
    match &message["params"] {
        Value::Object(params) if !params.is_empty() => {
            let column = MARGIN + method.chars().count() + 1;
            format!("{method} {}", layout(&message["params"], column, MARGIN))
        }
        _ => method.to_owned(),
    }
}

/// The names in a list of tools: their schemas would hide them.
fn tool_names(result: &Value) -> Option<String> {
    let names = result.get("tools")?.as_array()?.iter().filter_map(|tool| tool["name"].as_str());
    Some(format!("tools: {}", names.collect::<Vec<_>>().join(", ")))
}
