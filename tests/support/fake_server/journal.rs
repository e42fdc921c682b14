//! The journal: what a test reads to learn what the server was told.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process;

use serde_json::{Map, Value, json};

/// An append-only file of JSON objects, each with the `pid` of its process. It may be shared: every
/// entry is one write.
pub(crate) struct Journal(Option<File>);

impl Journal {
    /// Opens `path`; without one nothing is kept.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        Self(path.map(|path| {
            OpenOptions::new().create(true).append(true).open(path).expect("the journal opens")
        }))
    }

    /// A line as it was received. What is not UTF-8 shows as U+FFFD and is marked `utf8: false`.
    pub(crate) fn line(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let mut entry = json!({"line": text});
        if str::from_utf8(line).is_err() {
            entry["utf8"] = false.into();
        }
        self.append(entry);
    }

    /// A request of HTTP: its body as the line, and all else about it.
    pub(crate) fn request(&self, body: &str, http: Value) {
        self.append(json!({"line": body, "http": http}));
    }

    /// Something that happened, with more members from `detail`.
    pub(crate) fn event(&self, event: &str, detail: Value) {
        let mut entry = json!({"event": event});
        if let Value::Object(detail) = detail {
            members(&mut entry).extend(detail);
        }
        self.append(entry);
    }

    fn append(&self, mut entry: Value) {
        let Some(mut file) = self.0.as_ref() else { return };
        members(&mut entry).insert("pid".into(), process::id().into());
        file.write_all(format!("{entry}\n").as_bytes()).expect("the journal is written");
    }
}

fn members(entry: &mut Value) -> &mut Map<String, Value> {
    entry.as_object_mut().expect("an entry is an object")
}
