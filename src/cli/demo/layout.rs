//! JSON for people: laid out within a width, long texts cut, ids short.

use serde_json::Value;
use uuid::Uuid;

/// The width of a line.
pub(crate) const WIDTH: usize = 100;
/// So much is left of a text in an object or a list that goes into one line.
const TEXT: usize = 44;
/// So many characters are left of an id, as in the logs.
const ID: usize = 8;

/// `value`, written from `column` on: in one line if that can be, else in lines that begin at
/// `indent`.
pub(crate) fn layout(value: &Value, column: usize, indent: usize) -> String {
    // A comma may follow.
    let room = WIDTH.saturating_sub(column + 1);
    let shortest = if value.is_string() { room } else { TEXT };
    let in_one_line = [usize::MAX, shortest].map(|longest| in_line(value, longest));
    if let Some(line) = in_one_line.into_iter().find(|line| line.chars().count() <= room) {
        return line;
    }
    let inner = indent + 2;
    match value {
        Value::Array(values) => {
            in_lines(values.iter().map(|value| layout(value, inner, inner)), '[', ']', indent)
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let name = format!("{name:?}: ");
                let column = inner + name.chars().count();
                name + &layout(value, column, inner)
            };
            in_lines(members.iter().map(member), '{', '}', indent)
        }
        scalar => scalar.to_string(),
    }
}

fn in_lines(parts: impl Iterator<Item = String>, open: char, close: char, indent: usize) -> String {
    let parts: Vec<String> = parts.map(|part| format!("\n{:1$}{part}", "", indent + 2)).collect();
    format!("{open}{}\n{:indent$}{close}", parts.join(","), "")
}

/// `value` in one line; a text in it has at most `longest` characters.
fn in_line(value: &Value, longest: usize) -> String {
    match value {
        Value::String(text) => shortened(text, longest),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(|value| in_line(value, longest)).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let member = |(name, value)| format!("{name:?}: {}", in_line(value, longest));
            let members: Vec<_> = members.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// A text as JSON, cut so that it has at most `longest` characters with its quotes.
fn shortened(text: &str, longest: usize) -> String {
    if Uuid::try_parse(text).is_ok() {
        return format!("\"{}…\"", text.chars().take(ID).collect::<String>());
    }
    let mut json = String::from('"');
    let mut length = 3;
    for character in text.chars() {
        let quoted = Value::from(character.to_string()).to_string();
        let escaped = &quoted[1..quoted.len() - 1];
        length += escaped.len().min(escaped.chars().count());
        if length > longest {
            json.push('…');
            break;
        }
        json.push_str(escaped);
    }
    json + "\""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_short_stands_in_one_line() {
        let value = json!({ "a": [1, null], "b": {}, "c": "text" });
        assert_eq!(layout(&value, 10, 10), r#"{ "a": [1, null], "b": {}, "c": "text" }"#);
    }

    #[test]
    fn ids_are_short_wherever_they_stand() {
        let id = "0b9f6e1c-0000-4000-8000-000000000000";
        assert_eq!(layout(&json!([{ "job_id": id }]), 0, 0), r#"[{ "job_id": "0b9f6e1c…" }]"#);
    }

    #[test]
    fn no_line_is_longer_than_the_width() {
        let long = "\"quoted\" \u{1} and ünïcode, ".repeat(20);
        let value = json!({ "text": long, "list": [{ "type": "text", "text": long }, 1], "n": 1 });
        let text = format!("{:10}{}", "", layout(&value, 10, 10));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches('…').count(), 2, "{text}");
        assert!(text.contains(r#""list": [{ "#), "{text}");
    }
}
