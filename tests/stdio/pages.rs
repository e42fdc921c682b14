//! Results longer than `page_bytes` are read in pages (contract §5.1).

use serde_json::{Value, json};
use support::{Answer, Peer, SOON, Setup, tools};

async fn open(page_bytes: &str) -> Peer {
    Peer::open_with(&format!(
        "[defaults]\nanswer_within = \"300ms\"\n[jobs]\npage_bytes = \"{page_bytes}\"\n"
    ))
    .await
}

/// All pages of the result of a call that outlasts its budget.
async fn pages_of(peer: &Peer, tool: &str, args: Value) -> Vec<Answer> {
    let handle = peer.slow_call(tool, args).await;
    let first = peer.finish(handle).await;
    peer.pages(first).await
}

/// The blocks of a page that are the server's own.
fn own_blocks(pages: &[Answer], number: usize) -> Vec<Value> {
    let blocks = pages[number].content();
    blocks[..blocks.len() - usize::from(number + 1 < pages.len())].to_vec()
}

/// The text of all pages, without the blocks that name the next page.
fn joined(pages: &[Answer]) -> String {
    let blocks = (0..pages.len()).flat_map(|number| own_blocks(pages, number));
    blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

fn assert_small(pages: &[Answer], limit: usize) {
    assert!(pages.len() > 1, "one page only");
    for page in pages {
        let size = page.raw_result().len();
        assert!(size <= limit, "a page of {size} bytes: {}", page.raw);
    }
}

#[tokio::test]
async fn c59_700_kb_come_in_pages_of_at_most_page_bytes() {
    let peer = Peer::open(&SOON).await;
    let args = json!({"bytes": 700_000, "ms": 900, "pattern": "0123456789"});
    let pages = pages_of(&peer, "big", args).await;
    assert_small(&pages, 64 << 10);
    assert_eq!(joined(&pages), "0123456789".repeat(70_000));
    assert!(pages.len() <= 12, "{} pages", pages.len());
}

/// The block that names the next page holds both names, twice and more.
#[tokio::test]
async fn c59_long_names_leave_pages_within_page_bytes() {
    let (tool, prefix) = ("t".repeat(128), "p".repeat(32));
    let setup = Setup::proxied().options(&["--answer-within", "300ms", "--tool-prefix", &prefix]);
    let setup = setup.config("[jobs]\npage_bytes = \"4KiB\"\n");
    let peer = Peer::opened(setup.tools(&tools(&[&tool]).to_string())).await;
    let pages = pages_of(&peer, &tool, json!({"ms": 900, "text": "x".repeat(9000)})).await;
    assert_small(&pages, 4 << 10);
}

#[tokio::test]
async fn c60_no_character_is_cut() {
    let pattern = "a\"€\n😀\\é\u{2028}";
    for page_bytes in ["1537B", "2049B", "4099B"] {
        let peer = open(page_bytes).await;
        let args = json!({"bytes": 20_000, "ms": 900, "pattern": pattern});
        let pages = pages_of(&peer, "big", args).await;
        assert_small(&pages, page_bytes.trim_end_matches('B').parse().unwrap());
        assert_eq!(joined(&pages), pattern.repeat(20_000 / pattern.len()));
        assert!(pages.iter().all(|page| !page.raw.contains('\u{fffd}')));
    }
}

#[tokio::test]
async fn c60_no_escape_and_no_pair_of_surrogates_is_cut() {
    let peer = open("2049B").await;
    let text = r"\ud83d\ude00\u20ac\n\\x".repeat(300);
    let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let pages = pages_of(&peer, "raw", json!({"result": result, "ms": 900})).await;
    assert_small(&pages, 2049);
    assert_eq!(joined(&pages), "😀€\n\\x".repeat(300));
}

#[tokio::test]
async fn s5_1_each_page_but_the_last_names_the_next() {
    let peer = open("4KiB").await;
    let pages = pages_of(&peer, "big", json!({"bytes": 9000, "ms": 900})).await;
    let (count, id) = (pages.len(), pages[0].job_id());
    for (page, number) in pages.iter().zip(1..) {
        assert_eq!((&page.job()["page"], &page.job()["pages"]), (&json!(number), &json!(count)));
        assert_eq!((page.job_id(), page.status()), (id, "completed"));
        if number == count {
            assert!(page.next_action().is_none(), "{}", page.raw);
            continue;
        }
        let block = page.content().last().expect("a block")["text"].as_str().expect("a text");
        let block: Value = serde_json::from_str(block).expect("JSON");
        let members: Vec<_> = block.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(members, ["job_id", "message", "next_action", "page", "pages"]);
        assert_eq!(block["next_action"]["args"], json!({"job_id": id, "page": number + 1}));
        for (key, value) in block.as_object().unwrap() {
            assert_eq!(page.job()[key], *value, "{key} is under _meta too");
        }
    }
}

#[tokio::test]
async fn s5_1_a_page_that_does_not_exist_says_how_many_there_are() {
    let peer = open("4KiB").await;
    let pages = pages_of(&peer, "big", json!({"bytes": 9000, "ms": 900})).await;
    let id = pages[0].job_id();
    for page in [json!(0), json!(99), json!(-1), json!("99"), json!(1e30)] {
        let answer = peer.job_get(json!({"job_id": id, "page": page})).await;
        assert!(answer.is_error(), "{}", answer.raw);
        let words = format!("the result has {} pages", pages.len());
        assert!(answer.text().contains(&words), "{}", answer.raw);
        assert_eq!(answer.structured()["pages"], json!(pages.len()));
    }
    let second = peer.job_get(json!({"job_id": id, "page": "2"})).await;
    assert_eq!(second.raw_result(), pages[1].raw_result(), "any page, any time");
}

#[tokio::test]
async fn s5_1_a_short_result_has_one_page() {
    let peer = open("4KiB").await;
    let pages = pages_of(&peer, "sleep", json!({"ms": 900})).await;
    assert_eq!(pages.len(), 1);
    let get = async |page| peer.job_get(json!({"job_id": pages[0].job_id(), "page": page})).await;
    assert_eq!(get(1).await.raw_result(), pages[0].raw_result());
    for page in [0, 2, 99] {
        let answer = get(page).await;
        assert!(answer.is_error() && answer.text().contains("1 page"), "{}", answer.raw);
    }
}

#[tokio::test]
async fn s5_1_what_is_no_text_is_never_cut_and_is_error_and_meta_are_on_every_page() {
    let peer = open("4KiB").await;
    let image = json!({"type": "image", "data": "A".repeat(6000), "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": "B".repeat(3000), "mimeType": "audio/wav"});
    let resource =
        json!({"type": "resource", "resource": {"uri": "x:y", "text": "c".repeat(5000)}});
    let text = json!({"type": "text", "text": "d".repeat(5000), "annotations": {"priority": 1}});
    let result = json!({"content": [text, image, audio, resource], "isError": true, "_meta": {"k": 1}, "x": 2});
    let pages = pages_of(&peer, "raw", json!({"result": result.to_string(), "ms": 900})).await;
    let blocks: Vec<_> = (0..pages.len()).flat_map(|number| own_blocks(&pages, number)).collect();
    for whole in [image, audio, resource] {
        assert_eq!(blocks.iter().filter(|block| **block == whole).count(), 1);
    }
    let texts = blocks.iter().filter(|block| block["type"] == "text");
    assert!(texts.clone().count() > 1);
    assert!(texts.clone().all(|block| block["annotations"] == json!({"priority": 1})));
    for page in &pages {
        let result = page.result();
        assert_eq!((&result["isError"], &result["x"]), (&json!(true), &json!(2)));
        assert_eq!((&result["_meta"]["k"], page.status()), (&json!(1), "failed"));
    }
}

#[tokio::test]
async fn s5_1_structured_content_comes_whole_only_when_it_fits() {
    let peer = open("4KiB").await;
    for (size, comes) in [(100, true), (5000, false)] {
        let structured = json!({"s": "s".repeat(size)});
        let result = json!({"content": [{"type": "text", "text": "t".repeat(6000)}],
            "structuredContent": structured});
        let pages = pages_of(&peer, "raw", json!({"result": result.to_string(), "ms": 900})).await;
        assert_small(&pages, 4 << 10);
        let found = pages.iter().filter(|page| *page.structured() == structured).count();
        assert_eq!(found, usize::from(comes), "{size} bytes");
        let others = pages.iter().filter(|page| !page.structured().is_null()).count();
        assert_eq!(others, found, "never a part of it");
    }
}

#[tokio::test]
async fn s5_1_an_envelope_is_never_paged() {
    let peer = open("4KiB").await;
    let pages = pages_of(&peer, "big", json!({"bytes": 9000, "ms": 900})).await;
    for page in [1, 2] {
        let args = json!({"job_id": pages[0].job_id(), "envelope": true, "page": page});
        let envelope = peer.job_get(args).await;
        let text = &envelope.structured()["result"]["content"][0]["text"];
        assert_eq!(text.as_str().map(str::len), Some(9000));
    }
}

#[tokio::test]
async fn s5_1_fetched_means_that_the_last_page_was_read() {
    let peer = Peer::open_with(
        "[defaults]\nanswer_within = \"300ms\"\nfetched_ttl = \"1ms\"\n[jobs]\npage_bytes = \"4KiB\"\n",
    )
    .await;
    let handle = peer.call("big", json!({"bytes": 9000, "ms": 900})).await;
    let first = peer.finish(handle).await;
    let get = async |page: u64| peer.job_get(json!({"job_id": first.job_id(), "page": page})).await;
    let last = first.job()["pages"].as_u64().expect("the number of pages");
    for page in 1..last {
        assert_eq!(get(page).await.status(), "completed");
    }
    assert_eq!(peer.jobs().await[0]["status"], "completed", "not fetched yet");
    assert_eq!(get(last).await.status(), "completed");
    peer.newest_becomes("expired").await;
}

/// The pages of a result with this text and this `structuredContent`, raw JSON.
async fn pages_of_both(peer: &Peer, text: &str, structured: &str) -> Vec<Answer> {
    let block = json!({"type": "text", "text": text});
    let result = format!(r#"{{"content":[{block}],"structuredContent":{structured}}}"#);
    let pages = pages_of(peer, "raw", json!({"result": result, "ms": 900})).await;
    assert_small(&pages, 4 << 10);
    pages
}

#[tokio::test]
async fn k15_structured_content_that_no_text_says_is_read_as_text_after_the_others() {
    let peer = open("4KiB").await;
    let rows = r#"{"n":9007199254740993,"m":1e400,"z":-0},"#.repeat(300);
    let structured = format!(r#"{{ "rows" : [{rows}1.10], "\u00e9":"\ud83d\ude00"}}"#);
    for text in ["300 rows", r#"{"rows":300}"#, "{"] {
        let pages = pages_of_both(&peer, text, &structured).await;
        assert_eq!(joined(&pages), format!("{text}{structured}"));
        assert_eq!(own_blocks(&pages, 0)[0]["text"], text, "in a block of its own");
    }
}

#[tokio::test]
async fn k15_structured_content_that_a_text_says_is_not_read_twice() {
    let peer = open("4KiB").await;
    let long = "s".repeat(9000);
    let structured = format!(r#"{{"b":[1.10,"{long}"],"a":{{"y":2,"x":1}}}}"#);
    let same = format!("{{ \"a\": {{\"x\":1,\n\"y\":2}},\n \"b\": [1.10, \"{long}\"] }}\n");
    let pages = pages_of_both(&peer, &same, &structured).await;
    assert_eq!(joined(&pages), same);
    let digits = same.replace("1.10", "1.1");
    let pages = pages_of_both(&peer, &digits, &structured).await;
    assert_eq!(joined(&pages), format!("{digits}{structured}"), "numbers are text");
}
