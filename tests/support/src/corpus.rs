//! The awkward messages of `tests/corpus`, and what is found of them.

use std::fs;
use std::path::Path;

use super::Peer;

/// A message of the corpus.
pub struct Case {
    pub name: String,
    pub text: String,
}

/// The cases of the file `NAME.txt`, which `tests/corpus/README.md` describes.
pub fn corpus(name: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let file =
        fs::read_to_string(folder.join(format!("{name}.txt"))).expect("a file of the corpus");
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.zip(1001..).map(|(line, number)| case(line, number)).collect()
}

fn case(line: &str, number: usize) -> Case {
    let (name, text) = line.split_once(": ").unwrap_or_else(|| panic!("no name: {line}"));
    let text = text
        .replace("$N", &number.to_string())
        .replace("$DEEP", &format!("{}{}", "[".repeat(500), "]".repeat(500)))
        .replace("$BIG", &"big ".repeat(50_000))
        .replace("$CR", "\r")
        .replace("$SP", " ")
        .replace("$U2028", "\u{2028}")
        .replace("$UFEFF", "\u{feff}")
        .replace("$U7F", "\u{7f}");
    Case { name: name.to_owned(), text }
}

/// The differences found in a session; it panics about all of them at once.
#[derive(Default)]
pub struct Findings {
    found: Vec<String>,
    /// Line ends in JSON text may have become other white space: no stream of events can hold a CR.
    over_events: bool,
}

impl Findings {
    /// What is found in a session of this peer.
    pub fn of(peer: &Peer) -> Self {
        Self { found: vec![], over_events: peer.has_upstream() }
    }

    /// Whether both are the same, byte by byte.
    pub fn alike(&self, a: &str, b: &str) -> bool {
        let flat = |text: &str| text.replace(['\r', '\n'], " ");
        a == b || (self.over_events && flat(a) == flat(b))
    }

    /// Notes the case unless both are the same.
    pub fn same(&mut self, case: &Case, is: &str, should_be: &str) {
        if !self.alike(is, should_be) {
            self.note(case, &format!("is        {}\n  should be {}", short(is), short(should_be)));
        }
    }

    /// Notes what is wrong with the case.
    pub fn note(&mut self, case: &Case, what: &str) {
        self.found.push(format!("{}\n  {what}", case.name));
    }

    /// Panics unless nothing was found.
    pub fn report(self) {
        let Self { found, .. } = self;
        assert!(found.is_empty(), "{} messages changed:\n{}", found.len(), found.join("\n"));
    }
}

fn short(text: &str) -> String {
    text.chars().take(500).collect()
}
