//! Every message reaches the other side as the bytes it is (contract §1.1, C55, C56).
//!
//! The messages stand in `tests/corpus`. They go through the proxy and, to prove that the corpus and
//! the fake server are sound, straight to the server.

use serde_json::{Value, json};
use support::corpus::{Case, Findings, corpus};
use support::json::{Object, elements, member, string, without_id};
use support::{Answer, Line, Peer, Setup, Transport, eventually};

/// What a server with tasks of its own declares: nothing is taken out of a call for it.
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;

/// A progress token that a typed reader would spell otherwise.
const TOKEN: &str = r#""t\u006f\/ken""#;

/// Runs each of the tests with each way to the server, in a module named after the way.
macro_rules! all_ways {
    ($($way:ident: $setup:expr;)*) => { $(
        mod $way {
            use super::*;
            tests! { $setup,
                requests_of_the_client
                requests_of_a_modern_client
                notifications_of_the_client
                batches_of_the_client
                answers_of_the_client
                ids_of_the_client
                ids_of_calls_that_run_at_once
                ids_of_the_server
                results_of_the_server
                errors_of_the_server
                messages_of_the_server
                batches_of_the_server
                tools_of_the_server
                greetings
            }
        }
    )* };
}

macro_rules! tests {
    ($setup:expr, $($test:ident)*) => { $(
        #[tokio::test]
        async fn $test() {
            super::$test(|| $setup).await;
        }
    )* };
}

all_ways! {
    direct: Setup::direct();
    proxied: Setup::proxied();
    http_to_child: Setup::proxied().served();
    stdio_to_http: Setup::proxied().upstream(Transport::Http);
    stdio_to_sse: Setup::proxied().upstream(Transport::Sse);
    http_to_http: Setup::proxied().served().upstream(Transport::Http);
}

/// Starts a peer and opens a session in which nothing is documented to change.
async fn open(setup: Setup, protocol: &str) -> Peer {
    let peer = setup.tools(&tools()).flags(&["--capabilities", CAPABILITIES]).spawn();
    let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {"listChanged": true}});
    peer.initialize_with("test-client", "1.0.0", protocol, capabilities).await;
    peer
}

fn tools() -> String {
    let tools: Vec<String> = corpus("tools").into_iter().map(|case| case.text).collect();
    format!("[{}]", tools.join(","))
}

/// The messages that the server has received, those in batches too, from this entry on.
fn received(peer: &Peer, from: usize) -> Vec<String> {
    let lines = peer.journal().into_iter().skip(from).map(|entry| entry.line);
    lines.flat_map(|line| messages(&line)).collect()
}

fn messages(line: &str) -> Vec<String> {
    support::json::messages(line).into_iter().map(str::to_owned).collect()
}

/// Sends the text of a case, waits for all its answers, and looks what the server has received of it.
async fn send(peer: &Peer, case: &Case, findings: &mut Findings) -> Vec<Answer> {
    let (start, mark) = (peer.journal().len(), peer.mark());
    peer.send_raw(&case.text).await;
    let (sent, mut answers) = (messages(&case.text), Vec::new());
    for message in &sent {
        if let Some(id) = member(message, "id") {
            answers.push(peer.answer_from(mark, id).await);
        }
    }
    // What has no answer is on its way by itself, over HTTP beside all that follows it.
    let arrived = || -> Vec<_> { received(peer, start).iter().map(|m| without_id(m)).collect() };
    let all_came = |arrived: &[String]| sent.iter().all(|m| arrived.contains(&without_id(m)));
    eventually(|| async { all_came(&arrived()).then_some(()) }).await;
    let arrived = arrived();
    for message in &sent {
        let wanted = without_id(message);
        if !arrived.contains(&wanted) {
            findings.same(case, &arrived.join("\n            "), &wanted);
        }
    }
    answers
}

/// Sends requests; those of `x/echo_params` must come back as the params that were sent.
async fn send_requests(peer: &Peer, cases: Vec<Case>) {
    let mut findings = Findings::of(peer);
    for case in cases {
        let answers = send(peer, &case, &mut findings).await;
        for (message, answer) in messages(&case.text).iter().zip(answers) {
            let request = Object::parse(message).expect("a request is an object");
            if request.get("method").and_then(string).as_deref() == Some("x/echo_params") {
                let params = request.get("params").unwrap_or("{}");
                findings.same(&case, answer.raw_result(), params);
            }
        }
    }
    findings.report();
}

async fn requests_of_the_client(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    send_requests(&peer, corpus("client_requests")).await;
}

async fn requests_of_a_modern_client(setup: fn() -> Setup) {
    let peer = setup().flags(&["--modern"]).spawn();
    send_requests(&peer, corpus("modern_requests")).await;
}

async fn notifications_of_the_client(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let mut findings = Findings::of(&peer);
    for case in corpus("client_notifications") {
        send(&peer, &case, &mut findings).await;
    }
    findings.report();
}

async fn batches_of_the_client(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-03-26").await;
    let mut findings = Findings::of(&peer);
    for case in corpus("client_batches") {
        send(&peer, &case, &mut findings).await;
    }
    findings.report();
}

/// The server asks; the client's answer must reach it as it is, and comes back in the result.
async fn answers_of_the_client(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let mut findings = Findings::of(&peer);
    let steps = json!([{"request": {"method": "roots/list"}}, {"result": "[$ANSWER]"}]);
    for case in corpus("client_answers") {
        let (start, mark) = (peer.journal().len(), peer.mark());
        let call = peer.start("script", json!({"steps": steps})).await;
        let question = peer.wait_line_from(mark, |line| line.has_method("roots/list")).await;
        let line = case.text.replace("$ID", question.id().expect("a request has an id"));
        peer.send_raw(&line).await;
        let answer = peer.answer_from(mark, &call).await;
        let sent = Object::parse(&line).expect("an answer is an object");
        let value = sent.get("result").or(sent.get("error")).expect("an answer holds one");
        findings.same(&case, answer.raw_result(), &format!("[{value}]"));
        if !received(&peer, start).iter().any(|m| without_id(m) == without_id(&line)) {
            findings.note(&case, "the line has changed on its way to the server");
        }
    }
    findings.report();
}

async fn ids_of_the_client(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let mut findings = Findings::of(&peer);
    for (case, number) in corpus("ids").into_iter().zip(0..) {
        let mark = peer.mark();
        peer.request_as(&case.text, "x/echo_params", json!({"n": number})).await;
        let answer = peer.answer_from(mark, &case.text).await;
        findings.same(&case, answer.raw_result(), &json!({"n": number}).to_string());
    }
    findings.report();
}

/// Ids that look alike are in flight together; every call gets its own answer.
async fn ids_of_calls_that_run_at_once(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let (cases, mark) = (corpus("ids"), peer.mark());
    for case in &cases {
        let args =
            json!({"steps": [{"wait_file": peer.path("go")}, {"result": "[$ID]"}], "x": case.name});
        let params = json!({"name": "script", "arguments": args});
        peer.request_as(&case.text, "tools/call", params).await;
    }
    peer.create("go");
    for case in &cases {
        peer.answer_from(mark, &case.text).await;
    }
    let lines = peer.lines().split_off(mark);
    let answers = lines.iter().filter(|line| line.method().is_none());
    assert_eq!(answers.count(), cases.len(), "one answer a call");
}

async fn ids_of_the_server(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let mut findings = Findings::of(&peer);
    for (case, number) in corpus("ids").into_iter().zip(0..) {
        let question = json!({"method": "x/ask", "id": case.text});
        let steps = json!([{"request": question}, {"result": "[$ANSWER]"}]);
        let mark = peer.mark();
        let call = peer.start("script", json!({"steps": steps})).await;
        let question = peer.wait_line_from(mark, |line| line.has_method("x/ask")).await;
        peer.respond(&question, &format!("{number}.0")).await;
        let answer = peer.answer_from(mark, &call).await;
        findings.same(&case, answer.raw_result(), &format!("[{number}.0]"));
    }
    findings.report();
}

async fn results_of_the_server(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let mut findings = Findings::of(&peer);
    for case in corpus("server_results") {
        let called = peer.call("raw", json!({"result": case.text})).await;
        findings.same(&case, called.raw_result(), &case.text);
        let asked = peer.ask("x/raw", json!({"result": case.text})).await;
        findings.same(&case, asked.raw_result(), &case.text);
    }
    findings.report();
}

async fn errors_of_the_server(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let mut findings = Findings::of(&peer);
    for case in corpus("server_errors") {
        let called = peer.call("raw", json!({"error": case.text})).await;
        findings.same(&case, called.raw_error(), &case.text);
        let asked = peer.ask("x/raw", json!({"error": case.text})).await;
        findings.same(&case, asked.raw_error(), &case.text);
    }
    findings.report();
}

/// Has the server send the text of a case during a call; what came, with the answer to the call.
async fn let_send(peer: &Peer, case: &Case) -> (Vec<String>, String) {
    let mut steps = vec![json!({"send": case.text})];
    if !case.text.contains("$ID") {
        steps.push(json!({"result": "{}"}));
    }
    let mark = peer.mark();
    let id = format!("\"call {}\"", case.name);
    let arguments = json!({"steps": steps});
    peer.send_raw(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"script","arguments":{arguments},"_meta":{{"progressToken":{TOKEN}}}}}}}"#
    ))
    .await;
    peer.answer_from(mark, &id).await;
    let came = peer.lines().split_off(mark);
    let sent = case.text.replace("$ID", &id).replace("$TOKEN", TOKEN);
    (came.iter().flat_map(|line| messages(&line.text)).collect(), sent)
}

async fn messages_of_the_server(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-11-25").await;
    let mut findings = Findings::of(&peer);
    for case in corpus("server_messages") {
        let (came, sent) = let_send(&peer, &case).await;
        let wanted = without_id(sent.trim());
        let Some(message) =
            came.iter().find(|message| findings.alike(&without_id(message), &wanted))
        else {
            findings.same(&case, &came.join("\n            "), &wanted);
            continue;
        };
        if member(message, "method").is_some() && member(message, "id").is_some() {
            answer_and_check(&peer, &case, message, &sent, &mut findings).await;
        }
    }
    peer.lines().iter().for_each(Line::assert_protocol);
    findings.report();
}

/// Answers a request of the server, which must get that answer under the id it gave.
async fn answer_and_check(
    peer: &Peer,
    case: &Case,
    message: &str,
    sent: &str,
    findings: &mut Findings,
) {
    let start = peer.journal().len();
    peer.respond(&Line::new(message.as_bytes()), r#"{"n":1.10}"#).await;
    let id = member(sent, "id").expect("a request has an id");
    let is_it = |message: &String| {
        member(message, "id") == Some(id) && member(message, "result") == Some(r#"{"n":1.10}"#)
    };
    let come = || async { received(peer, start).iter().any(is_it).then_some(()) };
    if eventually(come).await.is_none() {
        findings.note(case, "the answer does not reach the server under its id");
    }
}

async fn batches_of_the_server(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-03-26").await;
    let mut findings = Findings::of(&peer);
    for case in corpus("server_batches") {
        let (came, sent) = let_send(&peer, &case).await;
        for message in messages(&sent) {
            if !came.contains(&message) {
                findings.same(&case, &came.join("\n            "), &message);
            }
        }
    }
    findings.report();
}

/// Under 2025-06-18 a tool without `outputSchema` is listed as it is.
async fn tools_of_the_server(setup: fn() -> Setup) {
    let peer = open(setup(), "2025-06-18").await;
    let list = peer.ask("tools/list", json!({})).await;
    let tools = member(list.raw_result(), "tools").and_then(elements).expect("a list of tools");
    let mut findings = Findings::of(&peer);
    for (case, place) in corpus("tools").iter().zip(0..) {
        findings.same(case, tools.get(place).unwrap_or(&"absent"), &case.text);
    }
    findings.report();
}

/// What a server says of itself, apart from the two members that are documented to change.
async fn greetings(setup: fn() -> Setup) {
    let mut findings = Findings::default();
    for case in corpus("greetings") {
        let peer = setup().flags(&["--answer", &format!("initialize={}", case.text)]).spawn();
        let answer = peer.initialize_under("2025-06-18").await;
        for key in ["protocolVersion", "serverInfo", "_meta", "x"] {
            let is = member(answer.raw_result(), key).unwrap_or("absent");
            findings.same(&case, is, member(&case.text, key).unwrap_or("absent"));
        }
    }
    findings.report();
}

#[test]
fn the_corpus_is_large_and_its_names_are_unique() {
    let files = [
        corpus("ids"),
        corpus("client_requests"),
        corpus("modern_requests"),
        corpus("client_notifications"),
        corpus("client_batches"),
        corpus("client_answers"),
        corpus("server_results"),
        corpus("server_errors"),
        corpus("server_messages"),
        corpus("server_batches"),
        corpus("tools"),
        corpus("greetings"),
    ];
    for file in &files {
        let mut names: Vec<&str> = file.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), file.len(), "a name stands twice");
    }
    let awkward = files.iter().flatten().count();
    assert!(awkward >= 250, "{awkward} messages");
}

/// The corpus would show a proxy that goes through values: this is how many messages it changes.
#[test]
fn the_corpus_tells_values_from_bytes() {
    let requests = corpus("client_requests");
    let changed = requests.iter().filter(|case| {
        let value =
            serde_json::from_str::<Value>(&case.text).and_then(|v| serde_json::to_string(&v));
        value.ok().as_ref() != Some(&case.text)
    });
    assert!(changed.count() > requests.len() / 2);
}
