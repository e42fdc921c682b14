//! Reading a long result in pages (CONTRACT §5.1).
//!
//! Pages are cut in the raw text of the JSON strings, at whole characters and whole escapes, so
//! that the pages joined are the original to the byte.

use crate::rpc::message::quoted;
use crate::rpc::object::{Member, Members, elements};
use crate::rpc::splice::span;

/// Room kept on each page for the block that names the next one, and again under `_meta`: enough
/// for the longest names that MCP allows.
const TRAILER: usize = 1536;

/// A result, cut.
pub struct Pages<'a> {
    /// members that stand on every page, as `"key":value`
    common: Vec<Member<'a>>,
    structured: Option<&'a str>,
    /// the content blocks of each page, raw JSON
    blocks: Vec<Vec<String>>,
}

impl<'a> Pages<'a> {
    /// Cuts a result that is longer than `page_bytes`; `None` where it fits on one page or has no
    /// content to cut.
    pub fn cut(result: &'a str, page_bytes: usize) -> Option<Self> {
        if result.len() <= page_bytes {
            return None;
        }
        let members = Members::parse(result)?;
        let mut content = elements(members.get("content")?)?;
        let apart = |m: &&Member| matches!(&*m.name(), "content" | "structuredContent");
        let common: Vec<_> = members.iter().filter(|m| !apart(m)).copied().collect();
        let fixed: usize = common.iter().map(|m| m.key.len() + m.value.len() + 2).sum();
        let room = page_bytes.saturating_sub(fixed + TRAILER).max(page_bytes / 4).max(1);
        let structured = members.get("structuredContent");
        let fits = structured.is_none_or(|structured| structured.len() <= room);
        // What stands nowhere else must not be lost: it is read as text, as MCP asks servers for.
        let as_text;
        if let (false, Some(structured)) = (fits, structured)
            && !content.iter().any(|block| text_of(block).is_some())
        {
            as_text = text_block(structured);
            content.push(&as_text);
        }
        let structured = structured.filter(|_| fits);
        let mut cutter = Cutter { room, left: room, pages: vec![Vec::new()] };
        cutter.left -= structured.map_or(0, str::len);
        for block in content {
            cutter.add(block);
        }
        Some(Pages { common, structured, blocks: cutter.pages })
    }

    /// How many pages there are.
    pub fn count(&self) -> usize {
        self.blocks.len()
    }

    /// Page `number`, from 1, as a raw result; `trailer` is our own block at its end.
    pub fn page(&self, number: usize, trailer: Option<String>) -> String {
        let mut blocks = self.blocks[number - 1].clone();
        blocks.extend(trailer);
        let mut out = format!(r#"{{"content":[{}]"#, blocks.join(","));
        if let (1, Some(structured)) = (number, self.structured) {
            out.push_str(r#","structuredContent":"#);
            out.push_str(structured);
        }
        for member in &self.common {
            out.push_str(&format!(",{}:{}", member.key, member.value));
        }
        out.push('}');
        out
    }
}

struct Cutter {
    room: usize,
    left: usize,
    pages: Vec<Vec<String>>,
}

impl Cutter {
    fn add(&mut self, block: &str) {
        if block.len() <= self.left {
            return self.push(block.to_owned());
        }
        match text_of(block) {
            Some(text) => self.add_text(block, text),
            // Images, audio and resources are never cut; they may make a page of their own.
            None => {
                if !self.page_is_empty() {
                    self.turn();
                }
                self.push(block.to_owned());
            }
        }
    }

    /// `text`: the raw text between the quotes of the block's `text` member.
    fn add_text(&mut self, block: &str, mut text: &str) {
        let at = span(block, text);
        let around = block.len() - text.len();
        loop {
            let space = self.left.saturating_sub(around);
            if text.len() > space && space < self.room / 8 && !self.page_is_empty() {
                self.turn();
                continue;
            }
            let (piece, rest) = text.split_at(cut_at(text, space));
            self.push(format!("{}{piece}{}", &block[..at.start], &block[at.end..]));
            if rest.is_empty() {
                return;
            }
            text = rest;
            self.turn();
        }
    }

    fn push(&mut self, block: String) {
        self.left = self.left.saturating_sub(block.len() + 1);
        self.pages.last_mut().expect("never empty").push(block);
    }

    fn page_is_empty(&self) -> bool {
        self.pages.last().is_none_or(Vec::is_empty) && self.left == self.room
    }

    fn turn(&mut self) {
        self.pages.push(Vec::new());
        self.left = self.room;
    }
}

/// The raw text of a text block, without its quotes.
fn text_of(block: &str) -> Option<&str> {
    let members = Members::parse(block)?;
    if members.text("type")? != "text" {
        return None;
    }
    members.get("text")?.strip_prefix('"')?.strip_suffix('"')
}

/// The longest cut of raw JSON string text within `space` bytes that splits no character and no
/// escape; at least one character.
fn cut_at(text: &str, space: usize) -> usize {
    if text.len() <= space {
        return text.len();
    }
    let mut at = 0;
    while at < text.len() {
        let next = at + unit(&text[at..]);
        if next > space && at > 0 {
            return at;
        }
        at = next;
    }
    at
}

/// The length of the first character of raw JSON string text; a pair of surrogate escapes is one.
fn unit(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes {
        [b'\\', b'u', ..] if bytes.len() >= 6 => {
            let pair = is_surrogate(&text[2..6], 0xD800)
                && text[6..].starts_with("\\u")
                && text.get(8..12).is_some_and(|low| is_surrogate(low, 0xDC00));
            if pair { 12 } else { 6 }
        }
        [b'\\', ..] => 2.min(bytes.len()),
        _ => text.chars().next().map_or(1, char::len_utf8),
    }
}

fn is_surrogate(hex: &str, from: u32) -> bool {
    u32::from_str_radix(hex, 16).is_ok_and(|code| (from..from + 0x400).contains(&code))
}

/// A text block of our own.
pub fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pages: &Pages) -> String {
        (1..=pages.count())
            .map(|n| {
                let page: serde_json::Value = serde_json::from_str(&pages.page(n, None)).unwrap();
                let blocks = page["content"].as_array().unwrap().clone();
                blocks.iter().map(|b| b["text"].as_str().unwrap().to_owned()).collect::<String>()
            })
            .collect()
    }

    #[test]
    fn c60_pages_joined_are_the_original_whatever_the_size() {
        let text = r#"aé€😀\n\ud83d\ude00\"\\\u20ac"#.repeat(40);
        let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        let original: serde_json::Value = serde_json::from_str(&result).unwrap();
        for page_bytes in [1, 7, 64, 100, 333, 1200] {
            let pages = Pages::cut(&result, page_bytes).unwrap();
            assert!(pages.count() > 1, "{page_bytes}");
            assert_eq!(joined(&pages), original["content"][0]["text"].as_str().unwrap());
        }
    }

    #[test]
    fn structured_content_without_text_is_read_as_text_s5_1() {
        let data = format!(r#"{{"rows":["{}"]}}"#, "x\\n\u{e9}".repeat(2000));
        let result = format!(r#"{{"content":[],"structuredContent":{data}}}"#);
        let pages = Pages::cut(&result, 4096).unwrap();
        assert!(pages.count() > 1 && !pages.page(1, None).contains("structuredContent"));
        assert_eq!(joined(&pages), data);
    }

    #[test]
    fn what_is_no_text_is_never_cut_and_is_error_is_on_every_page_s5_1() {
        let image = format!(r#"{{"type":"image","data":"{}"}}"#, "A".repeat(5000));
        let text = format!(r#"{{"type":"text","text":"{}","x":1.10}}"#, "b".repeat(9000));
        let result = format!(
            r#"{{"isError":true,"content":[{text},{image}],"structuredContent":{{"a":1}},"_meta":{{"k":-0}}}}"#
        );
        let pages = Pages::cut(&result, 4096).unwrap();
        let all: Vec<_> = (1..=pages.count()).map(|n| pages.page(n, None)).collect();
        assert!(all.iter().all(|p| p.contains(r#""isError":true"#) && p.contains(r#""k":-0"#)));
        assert!(all[0].contains(r#""structuredContent":{"a":1}"#) && all[0].contains("1.10"));
        assert!(all.last().unwrap().contains(&image));
    }
}
