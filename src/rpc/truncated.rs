//! What can be read of a message above `max_message`, of which only the two ends are left.

use serde_json::value::RawValue;

use super::id::Id;

/// The raw id of a message of which only the two ends are left: most writers put it first or last.
pub(crate) fn id_at_an_end(head: &[u8], tail: &[u8]) -> Option<String> {
    let number_or_string = |text: &str| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let raw = values.next()?.ok()?.get();
        Id::parse(raw).map(|_| raw.to_owned())
    };
    let head = String::from_utf8_lossy(head);
    let start = head.split_once("\"id\":").filter(|(before, _)| before.len() < 24);
    if let Some(id) = start.and_then(|(_, rest)| number_or_string(rest)) {
        return Some(id);
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, end) = tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\":")?;
    number_or_string(end).filter(|id| id == end.trim())
}

/// Whether a message of which only the beginning is left is a request: its method stands before
/// anything that an answer has.
pub(crate) fn is_request(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let at = |key: &str| head.find(key).unwrap_or(usize::MAX);
    at("\"method\":") < at("\"result\":").min(at("\"error\":"))
}
