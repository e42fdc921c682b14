//! Edits of messages: splices of byte ranges. What no edit names stays the bytes that came in.
//!
//! contract §1.1 lists all that may be edited; those of `_meta` are here, the others stand beside
//! the message they change (`relay/catalog.rs`, `relay/greeting.rs`, `relay/input.rs`).

use std::ops::Range;

use super::message::{Envelope, quoted};
use super::object::Members;

/// A set of replacements in one text. Their ranges must not overlap: an object or array is edited
/// once.
#[derive(Default)]
pub struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces `part`, a slice of `text`.
    pub fn replace(&mut self, text: &str, part: &str, with: impl Into<String>) {
        self.0.push((span(text, part), with.into()));
    }

    /// Edits one JSON object, a slice of `text`: takes members out (`None`), and sets others to
    /// raw JSON, in place where they are there and else at the end. Only one such edit may be made
    /// of an object.
    pub fn edit_object(&mut self, text: &str, object: &str, changes: &[(&str, Option<&str>)]) {
        let Some(members) = Members::parse(object) else { return };
        let mut kept = 0;
        for (index, member) in members.iter().enumerate() {
            let name = member.name();
            let change = changes.iter().find(|(key, _)| *key == name);
            match change {
                Some((_, None)) => self.remove_member(text, &members, index, kept == 0),
                Some((_, Some(value))) => self.replace(text, member.value, *value),
                None => {}
            }
            kept += usize::from(!matches!(change, Some((_, None))));
        }
        let new = changes.iter().filter(|(key, _)| members.position(key).is_none());
        let new: Vec<_> = new
            .filter_map(|(key, value)| Some(format!("{}:{}", quoted(key), value.as_ref()?)))
            .collect();
        if !new.is_empty() {
            let end = span(text, object).end - 1;
            let comma = if kept == 0 { "" } else { "," };
            self.0.push((end..end, format!("{comma}{}", new.join(","))));
        }
    }

    /// Sets one member of an object.
    pub fn set_member(&mut self, text: &str, object: &str, key: &str, value: &str) {
        self.edit_object(text, object, &[(key, Some(value))]);
    }

    /// Takes the member at `index` out of an object, with the comma before it, or, where nothing
    /// before it stays (`first`), with the comma after it.
    pub fn remove_member(&mut self, text: &str, members: &Members, index: usize, first: bool) {
        let own = span(text, members.at(index).key).start..span(text, members.at(index).value).end;
        let range = match (first, index + 1 < members.len()) {
            (false, _) => span(text, members.at(index - 1).value).end..own.end,
            (true, true) => own.start..span(text, members.at(index + 1).key).start,
            (true, false) => own,
        };
        self.0.push((range, String::new()));
    }

    /// Takes the element at `index` out of an array, with the comma before it, or, where nothing
    /// before it stays (`first`), with the comma after it.
    pub fn remove_element(&mut self, text: &str, elements: &[&str], index: usize, first: bool) {
        let own = span(text, elements[index]);
        let range = match (first, elements.get(index + 1)) {
            (false, _) => span(text, elements[index - 1]).end..own.end,
            (true, Some(next)) => own.start..span(text, next).start,
            (true, None) => own,
        };
        self.0.push((range, String::new()));
    }

    /// Inserts `with` right before the end of `array`, a slice of `text` that is a JSON array;
    /// `first`: no element before it stays.
    pub fn append_elements(&mut self, text: &str, array: &str, with: &str, first: bool) {
        let end = span(text, array).end - 1;
        let comma = if first { "" } else { "," };
        self.0.push((end..end, format!("{comma}{with}")));
    }

    /// The text with all replacements made.
    pub fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| (range.start, range.end));
        let grown: usize = self.0.iter().map(|(_, with)| with.len()).sum();
        let mut out = String::with_capacity(text.len() + grown);
        let mut at = 0;
        for (range, with) in &self.0 {
            debug_assert!(at <= range.start, "edits overlap");
            if range.start < at {
                continue;
            }
            out.push_str(&text[at..range.start]);
            out.push_str(with);
            at = range.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

/// Where `part` stands in `text`; `part` must be a slice of it.
pub fn span(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    debug_assert!(start + part.len() <= text.len());
    start..start + part.len()
}

/// §1.1.1: the id renamed, or restored.
pub fn with_id(text: &str, id: &str, with: &str) -> String {
    let mut edits = Edits::new();
    edits.replace(text, id, with);
    edits.apply(text)
}

/// §1.1.4: the budget that the caller asked for is ours; it is taken out of `_meta`.
pub const ANSWER_WITHIN: &str = "unhurry/answer_within";

/// §1.1.2: the key under which the schema of a deferrable tool is kept.
pub const OUTPUT_SCHEMA: &str = "unhurry/outputSchema";

/// §4.2: the key under which every answer about a job has its status.
pub const JOB: &str = "unhurry/job";

/// What becomes of a request's `_meta` on its way to the server.
#[derive(Default)]
pub struct MetaEdit<'a> {
    /// §1.1.4: take out `unhurry/answer_within`
    pub drop_answer_within: bool,
    /// §1.1.1, §1.1.4: the progress token to put in, as raw JSON
    pub token: Option<&'a str>,
}

/// §1.1.4: edits of `params._meta` of a request, given the envelope parsed from `text`.
pub fn edit_meta(edits: &mut Edits, text: &str, envelope: &Envelope, change: &MetaEdit) {
    let token = change.token.map(|token| format!(r#"{{"progressToken":{token}}}"#));
    let Some(params) = envelope.params else {
        if let Some(meta) = token {
            edits.set_member(text, text, "params", &format!(r#"{{"_meta":{meta}}}"#));
        }
        return;
    };
    let Some(members) = Members::parse(params) else { return };
    match (members.get("_meta"), token) {
        (Some(meta), _) => {
            let mut changes = Vec::new();
            if change.drop_answer_within {
                changes.push((ANSWER_WITHIN, None));
            }
            if change.token.is_some() {
                changes.push(("progressToken", change.token));
            }
            edits.edit_object(text, meta, &changes);
        }
        (None, Some(meta)) => edits.set_member(text, params, "_meta", &meta),
        (None, None) => {}
    }
}

/// §5.1: a result with `_meta["unhurry/job"]`, nothing else changed. `job` is raw JSON.
pub fn with_job(result: &str, job: &str) -> String {
    let mut edits = Edits::new();
    match Members::parse(result).and_then(|members| members.get("_meta")) {
        // `_meta` that is no object is invalid, and not ours to mend.
        Some(meta) => edits.set_member(result, meta, JOB, job),
        None => {
            edits.set_member(result, result, "_meta", &format!("{{{}:{job}}}", quoted(JOB)));
        }
    }
    edits.apply(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(text: &str, change: MetaEdit) -> String {
        let envelope = Envelope::parse(text).unwrap();
        let mut edits = Edits::new();
        edit_meta(&mut edits, text, &envelope, &change);
        edits.apply(text)
    }

    #[test]
    fn answer_within_is_taken_out_and_nothing_else_s1_1_4() {
        let drop = || MetaEdit { drop_answer_within: true, token: None };
        let text = r#"{"params":{"_meta":{ "unhurry/answer_within" : 1 }}}"#;
        assert_eq!(meta(text, drop()), r#"{"params":{"_meta":{  }}}"#);
        let text = r#"{"params":{"_meta":{"a":1.10,"unhurry/answer_within":1,"b":2}}}"#;
        assert_eq!(meta(text, drop()), r#"{"params":{"_meta":{"a":1.10,"b":2}}}"#);
        let text = r#"{"params":{"_meta":{"a":1.10 , "unhurry/answer_within":1}}}"#;
        assert_eq!(meta(text, drop()), r#"{"params":{"_meta":{"a":1.10}}}"#);
    }

    #[test]
    fn a_token_is_put_in_wherever_there_is_none_s1_1_4() {
        let with = |drop| MetaEdit { drop_answer_within: drop, token: Some("\"t\"") };
        assert_eq!(
            meta(r#"{"method":"x"}"#, with(false)),
            r#"{"method":"x","params":{"_meta":{"progressToken":"t"}}}"#
        );
        assert_eq!(
            meta(r#"{"params":{}}"#, with(false)),
            r#"{"params":{"_meta":{"progressToken":"t"}}}"#
        );
        assert_eq!(
            meta(r#"{"params":{"_meta":{"unhurry/answer_within":1}}}"#, with(true)),
            r#"{"params":{"_meta":{"progressToken":"t"}}}"#
        );
        assert_eq!(
            meta(
                r#"{"params":{"_meta":{"progressToken":7,"unhurry/answer_within":1}}}"#,
                with(true)
            ),
            r#"{"params":{"_meta":{"progressToken":"t"}}}"#
        );
    }

    #[test]
    fn members_can_be_taken_out_and_put_in_anywhere() {
        let edited = |object: &str, changes: &[(&str, Option<&str>)]| {
            let mut edits = Edits::new();
            edits.edit_object(object, object, changes);
            edits.apply(object)
        };
        let (out, set) = (None, Some("9"));
        assert_eq!(edited(r#"{"a":1}"#, &[("a", out), ("t", set)]), r#"{"t":9}"#);
        assert_eq!(edited(r#"{ "a":1 }"#, &[("a", out), ("t", set)]), r#"{  "t":9}"#);
        assert_eq!(edited(r#"{"a":1,"b":2}"#, &[("b", out), ("t", set)]), r#"{"a":1,"t":9}"#);
        assert_eq!(edited(r#"{"a":1,"a":2}"#, &[("a", out)]), "{}");
        assert_eq!(edited(r#"{"a":1,"b":2,"c":3}"#, &[("b", out), ("c", out)]), r#"{"a":1}"#);
        assert_eq!(edited(r#"{"t":1,"b":2}"#, &[("b", out), ("t", set)]), r#"{"t":9}"#);
        assert_eq!(edited("{}", &[("t", set), ("u", set)]), r#"{"t":9,"u":9}"#);
    }

    #[test]
    fn elements_can_be_taken_out_anywhere_in_an_array() {
        let text = "[1 , 2, 3 ,4]";
        let without = |gone: &[usize]| {
            let (elements, mut edits) =
                (super::super::object::elements(text).unwrap(), Edits::new());
            let mut first = true;
            for index in 0..elements.len() {
                match gone.contains(&index) {
                    true => edits.remove_element(text, &elements, index, first),
                    false => first = false,
                }
            }
            edits.apply(text)
        };
        assert_eq!(without(&[0]), "[2, 3 ,4]");
        assert_eq!(without(&[0, 1]), "[3 ,4]");
        assert_eq!(without(&[2, 3]), "[1 , 2]");
        assert_eq!(without(&[0, 2]), "[2 ,4]");
        assert_eq!(without(&[0, 1, 2, 3]), "[]");
    }

    #[test]
    fn the_job_is_added_to_meta_and_nothing_else_s5_1() {
        assert_eq!(with_job(r#"{"a":1e400}"#, "1"), r#"{"a":1e400,"_meta":{"unhurry/job":1}}"#);
        assert_eq!(with_job(r#"{}"#, "1"), r#"{"_meta":{"unhurry/job":1}}"#);
        assert_eq!(
            with_job(r#"{"_meta":{"x":-0}, "b":2}"#, "1"),
            r#"{"_meta":{"x":-0,"unhurry/job":1}, "b":2}"#
        );
    }
}
