//! Edits of messages: splices of byte ranges. All other bytes stay as they came in.
//!
//! contract §1.1 lists all that may be edited. Each edit is made where its message is handled;
//! those of `_meta` are in `mcp/meta.rs`.

use std::ops::Range;

use super::object::Members;
use super::string::quoted;

/// A set of replacements in one text. Their ranges must not overlap: an object or array is edited
/// once.
#[derive(Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// No edits.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces `part`, a slice of `text`.
    pub(crate) fn replace(&mut self, text: &str, part: &str, with: impl Into<String>) {
        self.0.push((span(text, part), with.into()));
    }

    /// Edits one JSON object, a slice of `text`: takes members out (`None`), and sets others to
    /// raw JSON, in place where they are there and else at the end. Only one such edit may be made
    /// of an object.
    pub(crate) fn edit_object(
        &mut self,
        text: &str,
        object: &str,
        changes: &[(&str, Option<&str>)],
    ) {
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
    pub(crate) fn set_member(&mut self, text: &str, object: &str, key: &str, value: &str) {
        self.edit_object(text, object, &[(key, Some(value))]);
    }

    /// Takes the member at `index` out of an object, with the comma before it, or, where nothing
    /// before it stays (`first`), with the comma after it.
    pub(crate) fn remove_member(
        &mut self,
        text: &str,
        members: &Members,
        index: usize,
        first: bool,
    ) {
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
    pub(crate) fn remove_element(
        &mut self,
        text: &str,
        elements: &[&str],
        index: usize,
        first: bool,
    ) {
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
    pub(crate) fn append_elements(&mut self, text: &str, array: &str, with: &str, first: bool) {
        let end = span(text, array).end - 1;
        let comma = if first { "" } else { "," };
        self.0.push((end..end, format!("{comma}{with}")));
    }

    /// The text with all replacements made.
    pub(crate) fn apply(mut self, text: &str) -> String {
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
pub(crate) fn span(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    debug_assert!(start + part.len() <= text.len());
    start..start + part.len()
}

/// The message with another id (contract §1.1.1). `id`: a slice of `text`; `with`: raw JSON.
pub(crate) fn with_id(text: &str, id: &str, with: &str) -> String {
    let mut edits = Edits::new();
    edits.replace(text, id, with);
    edits.apply(text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
