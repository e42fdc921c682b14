//! The bodies of a server's answers over HTTP: several documents in one, content codings, and what
//! is no text (contract §9).

use serde_json::json;
use support::http::{Canned, CannedRequest};
use support::{Peer, SUBSCRIPTION, Setup, TOOLS_CHANGED, call_params};

const JSON: &str = "Content-Type: application/json\r\n";

/// A client with a session with a server whose answers the test writes.
async fn opened(setup: Setup) -> (Canned, Peer) {
    let server = Canned::start().await;
    let peer = setup.at(server.url()).spawn();
    peer.initialize().await;
    (server, peer)
}

/// A call that has reached the server, with a progress token.
async fn called(server: &Canned, peer: &Peer) -> (String, CannedRequest) {
    let mut params = call_params("echo", json!({}));
    params["_meta"] = json!({"progressToken": "t"});
    let call = peer.request("tools/call", params).await;
    (call, server.next().await)
}

// Several documents.

#[tokio::test]
async fn k4_documents_of_one_body_are_taken_as_they_come() {
    let (server, peer) = opened(Setup::proxied()).await;
    for end in ["\n", "\r\n", ""] {
        let mark = peer.mark();
        let (call, mut request) = called(&server, &peer).await;
        request.begin(JSON).await;
        request.chunk(format!("{}\n", request.progress(1))).await;
        let progress = peer.wait_line_from(mark, |line| line.is_notification()).await;
        assert_eq!(progress.json()["params"]["progress"], 1);
        let answer = request.answer("done");
        request.chunk(format!("{}\n{}", request.progress(2), &answer[..9])).await;
        peer.wait_line_from(mark, |line| line.json()["params"]["progress"] == 2).await;
        request.chunk(format!("{}{end}", &answer[9..])).await;
        assert_eq!(peer.answer(&call).await.text(), "done", "before the body has ended");
    }
}

#[tokio::test]
async fn k4_a_subscription_may_be_answered_with_documents() {
    for served in [false, true] {
        let server = Canned::start().await;
        let setup = Setup::proxied().at(server.url());
        let peer = if served { setup.served().spawn() } else { setup.spawn() };
        peer.become_modern("test-client", json!({}));
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let first = peer.request("subscriptions/listen", wanted).await;
        let mut request = server.next().await;
        request.begin(JSON).await;
        let params = format!(r#""params":{{"_meta":{{"{SUBSCRIPTION}":{}}}}}"#, request.id());
        for method in ["notifications/subscriptions/acknowledged", TOOLS_CHANGED] {
            let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}",{params}}}"#);
            request.chunk(format!("{line}\n")).await;
            let told = peer.wait_method(method).await;
            assert_eq!(told.json()["params"]["_meta"][SUBSCRIPTION].to_string(), first);
        }
        peer.cancel(&first, "enough").await;
        request.hung_up().await;
    }
}

#[tokio::test]
async fn k4_documents_in_a_body_that_says_its_length_are_taken_too() {
    let (server, peer) = opened(Setup::proxied()).await;
    for between in ["\n", "", " \n\n"] {
        let mark = peer.mark();
        let (call, request) = called(&server, &peer).await;
        let body = [request.progress(1), request.answer("done")].join(between);
        request.whole("200 OK", JSON, body).await;
        assert_eq!(peer.answer(&call).await.text(), "done", "{between:?}");
        peer.wait_line_from(mark, |line| line.is_notification()).await;
    }
}

#[tokio::test]
async fn k4_one_document_on_many_lines_is_one_answer() {
    let (server, peer) = opened(Setup::proxied()).await;
    for live in [false, true] {
        let (call, mut request) = called(&server, &peer).await;
        let text = "}\n{\"] \\";
        let answer: serde_json::Value = serde_json::from_str(&request.answer(text)).unwrap();
        let pretty = format!("\u{feff}\n{answer:#}\n");
        if live {
            request.begin(JSON).await;
            for line in pretty.split_inclusive('\n') {
                request.chunk(line).await;
            }
        } else {
            request.whole("200 OK", JSON, pretty).await;
        }
        assert_eq!(peer.answer(&call).await.text(), text);
    }
}

#[tokio::test]
async fn k4_a_document_above_max_message_is_passed_over_and_the_answer_behind_it_taken() {
    let (server, peer) = opened(Setup::proxied().config("[server]\nmax_message = \"64KiB\"")).await;
    for end in ["", "\n"] {
        let (call, mut request) = called(&server, &peer).await;
        request.begin(JSON).await;
        request.chunk(r#"{"jsonrpc":"2.0","method":"notifications/x","params":""#).await;
        request.chunk("{".repeat(100_000)).await;
        let answer = request.answer("done");
        request.chunk(format!("\"}}{end}{answer}\n")).await;
        assert_eq!(peer.answer(&call).await.text(), "done");
    }
}

#[tokio::test]
async fn k4_documents_without_the_answer_are_an_unknown_outcome() {
    let (server, peer) = opened(Setup::proxied()).await;
    let (call, mut request) = called(&server, &peer).await;
    request.begin(JSON).await;
    request.chunk(format!("{}\n", request.progress(1))).await;
    request.chunk("").await;
    peer.answer(&call).await.assert_outcome_unknown();
    let (call, mut request) = called(&server, &peer).await;
    request.begin(JSON).await;
    request.chunk("{\"error\":\"quota\"}\n").await;
    request.chunk("").await;
    let answer = peer.answer(&call).await;
    answer.assert_outcome_unknown();
    assert!(answer.text().contains("quota"), "{}", answer.raw);
}
