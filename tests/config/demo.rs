//! `unhurry demo` (contract §2): the timeline, the messages, and its failure.

use serde_json::Value;
use support::cli::{Ran, Run};

fn demo(arguments: &[&str]) -> String {
    let Ran { code, stdout, stderr } = Run::new(&[&["demo"], arguments].concat()).go();
    assert_eq!((code, &*stderr), (0, ""), "{stdout}");
    stdout
}

/// The place of the first line that begins so.
fn line(text: &str, begin: &str) -> usize {
    let found = text.lines().position(|line| line.starts_with(begin));
    found.unwrap_or_else(|| panic!("no line begins with {begin:?}: {text}"))
}

#[test]
fn s2_the_demo_opens_with_a_timeline_of_both_cases() {
    let text = demo(&[]);
    let places = ["seconds", "without unhurry", "with unhurry", "The messages:", "-->"];
    let places = places.map(|begin| line(&text, begin));
    assert!(places.is_sorted() && places[0] <= 3, "{places:?}: {text}");
    let timeline: Vec<&str> = text.lines().take(places[3]).collect();
    let bars = |name: &str, note: &str| {
        let row = timeline.iter().find(|line| line.starts_with(name) && line.contains(note));
        row.unwrap_or_else(|| panic!("no {name:?} with {note:?}: {text}")).matches('├').count()
    };
    // Seconds alone, since a busy machine is a little late.
    assert_eq!(bars("  client waits", "✗"), 1);
    assert_eq!(bars("  client waits", "2."), 3);
    assert_eq!(bars("  server works", "answer at 5."), 1);
    assert_eq!(bars("  server works", "received"), 1);
    assert!(timeline.iter().any(|line| line.contains("gave up after 3.")), "{text}");
    assert!(timeline.iter().any(|line| line.contains("s: lost")), "{text}");
}

#[test]
fn s2_the_demo_shortens_its_messages() {
    let text = demo(&[]);
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "{long:#?}");
    assert!(text.contains("…\""), "{text}");
    assert!(text.contains("demo --verbose"), "{text}");
}

#[test]
fn s2_the_demo_shows_whole_messages_when_asked_to() {
    let text = demo(&["--verbose"]);
    let after_timeline = &text[text.find("The messages:").expect("they have a heading")..];
    assert!(!after_timeline.contains('…'), "{after_timeline}");
    let messages: Vec<Value> = after_timeline
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"), "{after_timeline}");
    let handle = messages
        .iter()
        .map(|message| &message["result"]["structuredContent"])
        .find(|content| content["done"] == false)
        .expect("a handle");
    let id = handle["job_id"].as_str().expect("a job id");
    assert_eq!(handle["next_action"]["args"]["job_id"], id);
    let asked = messages.iter().filter(|message| message["params"]["name"] == "job_get");
    assert!(asked.into_iter().all(|call| call["params"]["arguments"]["job_id"] == id));
    let cancelled = messages.iter().find(|message| message["method"] == "notifications/cancelled");
    assert!(cancelled.is_some(), "the client that gives up says so");
}

/// A stdout that is full is none of a demonstration's faults, and is told.
#[cfg(target_os = "linux")]
#[test]
fn s2_a_demo_that_fails_says_what_to_do_and_ends_with_70() {
    use std::fs::OpenOptions;
    use std::process::{Command, Stdio};

    let full = OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let mut command = Command::new(env!("CARGO_BIN_EXE_unhurry"));
    let output = command.arg("demo").stdout(full).stderr(Stdio::piped()).output();
    let output = output.expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{stderr}");
    assert!(
        stderr.starts_with("unhurry: the demonstration failed: cannot write to stdout"),
        "{stderr}"
    );
    assert!(stderr.contains("send it to a terminal or a file that has room"), "{stderr}");
}
