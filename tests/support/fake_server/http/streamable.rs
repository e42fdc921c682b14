//! Streamable HTTP, in both eras.

use std::sync::Arc;

use serde_json::json;

use crate::http::json_answer::JsonAnswer;
use crate::http::reply::Reply;
use crate::http::request::HttpRequest;
use crate::http::sessions::HttpSession;
use crate::http::stream::{EventStream, Style};
use crate::http::{Http, Pending, validate};
use crate::message::Request;
use crate::wire::Wire;

/// A status and the words that go with it.
type Refusal = (u16, &'static str);

/// Serves the endpoint.
pub fn serve(http: &Http, request: &HttpRequest, reply: &Arc<Reply>) -> Option<Pending> {
    match request.method.as_str() {
        "POST" => post(http, request, reply),
        "GET" => get(http, request, reply),
        "DELETE" => {
            let ended = http.sessions.remove(request.header("mcp-session-id"));
            reply.whole(if ended { 200 } else { 404 }, "");
            None
        }
        _ => {
            reply.whole(405, "");
            None
        }
    }
}

fn post(http: &Http, request: &HttpRequest, reply: &Arc<Reply>) -> Option<Pending> {
    let requests = request.requests();
    let modern = http.server.flags.modern || requests.first().is_some_and(Request::is_modern);
    if http.server.flags.strict
        && let Some((status, error)) = validate::check(&http.server, request)
    {
        reply.json(status, &error);
        return None;
    }
    let client = match session_of(http, request, reply, (&requests, modern)) {
        Ok(client) => client,
        Err(refusal) => return refuse(reply, refusal),
    };
    let _turn = http.server.flags.block.then(|| http.turn.lock().expect("no holder panics"));
    let wire = wire_of(http, &client, reply, (request, requests.len(), modern));
    for message in request.messages() {
        client.session.receive(message, &wire);
    }
    if requests.is_empty() {
        reply.whole(202, "");
    }
    let cancels = modern.then(|| Arc::clone(&client.session));
    Some(Pending::new(reply, request, cancels))
}

/// The way back: events, or JSON if the flags say so.
fn wire_of(
    http: &Http,
    client: &HttpSession,
    reply: &Arc<Reply>,
    (request, count, modern): (&HttpRequest, usize, bool),
) -> Arc<dyn Wire> {
    let flags = &http.server.flags;
    if flags.json {
        let batch = request.body.trim_start().starts_with('[');
        let apart = client.apart.clone();
        return Arc::new(JsonAnswer::new(Arc::clone(reply), apart, (batch, modern), count));
    }
    let style = if modern { Style::modern(flags) } else { Style::legacy(flags) };
    let number = http.sessions.next_number();
    let stream = EventStream::answering(number, style, Arc::clone(reply), count);
    if !modern && count > 0 {
        client.keep(&stream);
    }
    stream
}

/// The session of a POST. A modern request has one of its own, so that ids of several clients never
/// meet.
fn session_of(
    http: &Http,
    request: &HttpRequest,
    reply: &Reply,
    (requests, modern): (&[Request], bool),
) -> Result<Arc<HttpSession>, Refusal> {
    let flags = &http.server.flags;
    let style = Style::legacy(flags);
    if modern {
        return Ok(http.sessions.passing(style));
    }
    if !flags.no_sessions && requests.iter().any(|request| request.method == "initialize") {
        let session = http.sessions.begin(style);
        reply.header("Mcp-Session-Id", &session.id);
        return Ok(session);
    }
    known_session(http, request)
}

fn known_session(http: &Http, request: &HttpRequest) -> Result<Arc<HttpSession>, Refusal> {
    if http.server.flags.no_sessions {
        return Ok(http.sessions.only(Style::legacy(&http.server.flags)));
    }
    match request.header("mcp-session-id") {
        "" => Err((400, "no session id")),
        id => http.sessions.get(id).ok_or((404, "no such session")),
    }
}

fn get(http: &Http, request: &HttpRequest, reply: &Arc<Reply>) -> Option<Pending> {
    if http.server.flags.modern {
        return refuse(reply, (405, "POST only"));
    }
    let client = match known_session(http, request) {
        Ok(client) => client,
        Err(refusal) => return refuse(reply, refusal),
    };
    match request.header("last-event-id") {
        "" => client.apart.open(Arc::clone(reply)),
        id => match client.stream_of(id) {
            Some((stream, read)) => stream.resume(Arc::clone(reply), read),
            None => return refuse(reply, (400, "no such event")),
        },
    }
    Some(Pending::new(reply, request, None))
}

fn refuse(reply: &Reply, (status, words): Refusal) -> Option<Pending> {
    let error = json!({"code": -32000, "message": words});
    reply.json(status, &json!({"jsonrpc": "2.0", "error": error, "id": null}).to_string());
    None
}
