//! Reading a long result in pages (contract §5.1).
//!
//! Pages are cut in the raw text of the JSON strings, at whole characters and whole escapes, so
//! that the pages joined are the original to the byte.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::rpc::object::{Member, Members, elements};
use crate::rpc::splice::span;
use crate::rpc::string::{quoted, string};

use super::duplicates::digest;

/// Room kept on each page for the block that names the next one, and again under `_meta`: enough
/// for the longest names that MCP allows.
const TRAILER: usize = 1536;

/// A text block without other members: what stands before its text, and behind it.
const BARE: [&str; 2] = [r#"{"type":"text","text":""#, r#""}"#];

/// The longest that [`char_len()`] returns: a pair of surrogate escapes.
const LONGEST_CHAR: usize = 12;

/// A result that is cut into pages. Only the places of the cuts are kept; a page is written when it
/// is asked for.
pub(crate) struct Pages<'a> {
    /// members that stand on every page, as `"key":value`
    common: Vec<Member<'a>>,
    structured: Option<&'a str>,
    /// the blocks before they were cut, raw JSON
    content: Vec<Cow<'a, str>>,
    pages: Vec<Vec<Piece>>,
}

/// A block, or a part of it, on a page: `[..head]`, `text` and `[tail..]` of the block's raw JSON;
/// where `bare`, `text` between [`BARE`].
struct Piece {
    bare: bool,
    /// the index of the block in `Pages::content`
    block: usize,
    head: usize,
    text: Range<usize>,
    tail: usize,
}

impl<'a> Pages<'a> {
    /// Cuts a result that is longer than `page_bytes`; `None` where it fits on one page or has no
    /// content to cut.
    pub(crate) fn cut(result: &'a str, page_bytes: usize) -> Option<Self> {
        if result.len() <= page_bytes {
            return None;
        }
        let members = Members::parse(result)?;
        let blocks = elements(members.get("content")?)?;
        let mut content: Vec<_> = blocks.into_iter().map(Cow::Borrowed).collect();
        let apart = |m: &&Member| matches!(&*m.name(), "content" | "structuredContent");
        let common: Vec<_> = members.iter().filter(|m| !apart(m)).copied().collect();
        let fixed: usize = common.iter().map(|m| m.key.len() + m.value.len() + 2).sum();
        let room = page_bytes.saturating_sub(fixed + TRAILER).max(page_bytes / 4).max(1);
        let structured = members.get("structuredContent");
        let fits = structured.is_none_or(|structured| structured.len() <= room);
        // A `structuredContent` that does not fit becomes a text block where there is no text
        // block, which MCP asks servers to repeat it in.
        if let (false, Some(structured)) = (fits, structured)
            && !is_said_in_text(&content, structured)
        {
            content.push(Cow::Owned(text_block(structured)));
        }
        let structured = structured.filter(|_| fits);
        let mut cutter = Cutter { room, left: room, pages: vec![Vec::new()] };
        cutter.left -= structured.map_or(0, str::len);
        for (number, block) in content.iter().enumerate() {
            cutter.add(number, block);
        }
        Some(Pages { common, structured, content, pages: cutter.pages })
    }

    /// How many pages there are.
    pub(crate) fn count(&self) -> usize {
        self.pages.len()
    }

    /// Page `number`, from 1, as a raw result; `trailer` is our own block at its end.
    pub(crate) fn page(&self, number: usize, trailer: Option<String>) -> String {
        let mut out = String::from(r#"{"content":["#);
        for (at, piece) in self.pages[number - 1].iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            piece.write(&self.content[piece.block], &mut out);
        }
        if let Some(trailer) = trailer {
            out.push_str(if self.pages[number - 1].is_empty() { "" } else { "," });
            out.push_str(&trailer);
        }
        out.push(']');
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

impl Piece {
    fn write(&self, block: &str, out: &mut String) {
        let (head, tail) = match self.bare {
            true => (BARE[0], BARE[1]),
            false => (&block[..self.head], &block[self.tail..]),
        };
        out.push_str(head);
        out.push_str(&block[self.text.clone()]);
        out.push_str(tail);
    }
}

/// Cuts blocks into pages.
struct Cutter {
    /// bytes that a page holds
    room: usize,
    /// bytes that are left on the last page
    left: usize,
    pages: Vec<Vec<Piece>>,
}

impl Cutter {
    /// Adds a block; `number`: its index in `Pages::content`.
    fn add(&mut self, number: usize, block: &str) {
        if block.len() <= self.left {
            return self.add_whole(number, block);
        }
        match text_of(block) {
            Some(text) => self.add_text(number, block, span(block, text)),
            // Images, audio and resources are never cut, even where one fills more than a page.
            None => {
                if !self.page_is_empty() {
                    self.next_page();
                }
                self.add_whole(number, block);
            }
        }
    }

    fn add_whole(&mut self, number: usize, block: &str) {
        let len = block.len();
        self.push(Piece { bare: false, block: number, head: 0, text: 0..len, tail: len }, len);
    }

    /// Adds a text block, cut where it has to be; `text`: the range of the raw text in it, between
    /// the quotes.
    fn add_text(&mut self, number: usize, block: &str, text: Range<usize>) {
        let mut around = block.len() - text.len();
        // So much around the text is not repeated on each page, which would hold little else.
        let wide = around > self.room / 2;
        let mut start = text.start;
        loop {
            let rest = &block[start..text.end];
            let space = self.left.saturating_sub(around);
            if rest.len() > space && space < self.room / 8 && !self.page_is_empty() {
                self.next_page();
                continue;
            }
            let end = start + cut_at(rest, space);
            let (head, tail, bare) = (text.start, text.end, wide && start > text.start);
            let len = around + end - start;
            self.push(Piece { bare, block: number, head, text: start..end, tail }, len);
            if end == text.end {
                return;
            }
            start = end;
            if wide {
                around = BARE[0].len() + BARE[1].len();
            }
            self.next_page();
        }
    }

    /// Adds a piece to the last page; `len`: its length there.
    fn push(&mut self, piece: Piece, len: usize) {
        self.left = self.left.saturating_sub(len + 1);
        self.pages.last_mut().expect("never empty").push(piece);
    }

    fn page_is_empty(&self) -> bool {
        self.pages.last().is_none_or(Vec::is_empty) && self.left == self.room
    }

    /// Begins a new page.
    fn next_page(&mut self) {
        self.pages.push(Vec::new());
        self.left = self.room;
    }
}

/// The raw text of a text block, without its quotes.
fn text_of(block: &str) -> Option<&str> {
    quoted_text_of(block)?.strip_prefix('"')?.strip_suffix('"')
}

fn quoted_text_of(block: &str) -> Option<&str> {
    let members = Members::parse(block)?;
    if members.text("type")? != "text" {
        return None;
    }
    members.get("text")
}

/// Whether one of the blocks is a text that is the same JSON as `value`, raw JSON.
fn is_said_in_text(blocks: &[Cow<str>], value: &str) -> bool {
    let wanted = LazyCell::new(|| digest(value));
    let is_same = |text: &str| {
        // Most texts are no JSON, which their first character shows.
        text.trim_start().as_bytes().first() == value.as_bytes().first()
            && serde_json::from_str::<&RawValue>(text)
                .is_ok_and(|json| digest(json.get()) == *wanted)
    };
    blocks.iter().any(|block| quoted_text_of(block).and_then(string).is_some_and(|t| is_same(&t)))
}

/// Where to cut raw JSON string text so that the part before is as long as possible within `space`
/// bytes, but at least one character, and no character and no escape is split. `text` must start
/// with a whole character.
fn cut_at(text: &str, space: usize) -> usize {
    if text.len() <= space {
        return text.len();
    }
    let end = text.floor_char_boundary(space);
    // The search begins a little before the end. It may begin within a pair of surrogates; its last
    // steps are whole characters again.
    let mut at = text.floor_char_boundary(end.saturating_sub(LONGEST_CHAR));
    // Behind an odd number of backslashes it would begin within an escape.
    at -= text.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2;
    loop {
        let next = at + char_len(&text[at..]);
        if next > end {
            return at.max(char_len(text));
        }
        at = next;
    }
}

/// The length of the first character of raw JSON string text; a pair of surrogate escapes is one.
fn char_len(text: &str) -> usize {
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

/// Whether these are the hex digits of a surrogate; `from`: the first high or low one.
fn is_surrogate(hex: &str, from: u32) -> bool {
    u32::from_str_radix(hex, 16).is_ok_and(|code| (from..from + 0x400).contains(&code))
}

/// A text block of our own.
pub(crate) fn text_block(text: &str) -> String {
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
    fn k15_structured_content_that_no_text_says_is_read_as_text_s5_1() {
        let data = format!(r#"{{"n":1.10,"rows":["{}"]}}"#, "x".repeat(9000));
        let other = format!(r#" {{ "rows":["{}"] , "n":1.10}} "#, "x".repeat(9000));
        for (text, is_there) in [
            ("9000 rows", false),
            ("{\"rows\":9000}", false),
            ("{\"rows\"", false),
            (&data, true),
            (&other, true),
            (&data.replace("1.10", "1.1"), false),
        ] {
            let block = text_block(text);
            let result = format!(r#"{{"content":[{block}],"structuredContent":{data}}}"#);
            let pages = Pages::cut(&result, 4096).unwrap();
            let rest = if is_there { "" } else { &data };
            assert!(joined(&pages) == format!("{text}{rest}"), "{}", &text[..9]);
        }
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

    #[test]
    fn wide_members_around_a_text_stand_on_its_first_page_alone_s5_1() {
        let meta = format!(r#"{{"k":"{}"}}"#, "m".repeat(70_000));
        let wide = format!(r#"{{"type":"text","text":"{}","_meta":{meta}}}"#, r"w\n".repeat(7_000));
        let other = format!(r#"{{"type":"text","text":"{}"}}"#, "o".repeat(100_000));
        let result = format!(r#"{{"content":[{other},{wide},{other}]}}"#);
        let pages = Pages::cut(&result, 64 << 10).unwrap();
        assert_eq!(pages.count(), 5);
        let all: Vec<_> = (1..=pages.count()).map(|n| pages.page(n, None)).collect();
        assert_eq!(all.iter().filter(|page| page.contains(&meta)).count(), 1);
        let (other, wide) = ("o".repeat(100_000), "w\n".repeat(7_000));
        assert!(joined(&pages) == format!("{other}{wide}{other}"));
    }

    #[test]
    fn c60_five_megabytes_come_in_full_pages_that_are_the_original_joined() {
        let text = r#"plain text aé€😀\n\ud83d\ude00\"\\\u20ac"#.repeat(120_000);
        let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        assert!(result.len() > 5 << 20);
        let pages = Pages::cut(&result, 64 << 10).unwrap();
        let least = (64 << 10) - TRAILER - 26 - LONGEST_CHAR;
        assert!(pages.count() <= text.len().div_ceil(least), "each page is full");
        let all = (1..=pages.count()).map(|n| pages.page(n, None));
        let raw: String = all
            .map(|page| {
                assert!(page.len() <= 64 << 10);
                let block = &elements(Members::parse(&page).unwrap().get("content").unwrap());
                text_of(block.as_ref().unwrap()[0]).unwrap().to_owned()
            })
            .collect();
        assert!(raw == text, "to the byte");
        let original: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert!(joined(&pages) == original["content"][0]["text"].as_str().unwrap());
    }

    #[test]
    fn c60_a_cut_from_behind_is_the_cut_from_the_start() {
        let text = r#"a€\\\\\\n\\u\ud83d\ud83d\ude00\ude00😀\\ud83d\ude00\\\ud83d\ude00d\u00e9\\"#;
        let mut whole = vec![0];
        while let Some(&last) = whole.last().filter(|last| **last < text.len()) {
            whole.push(last + char_len(&text[last..]));
        }
        for (nth, start) in whole.iter().enumerate().take(whole.len() - 1) {
            for space in 0..=text.len() - start + 1 {
                let fits = whole.iter().rfind(|at| **at <= start + space).unwrap();
                let expected = fits.max(&whole[nth + 1]) - start;
                assert_eq!(cut_at(&text[*start..], space), expected, "{start} {space}");
            }
        }
    }
}
