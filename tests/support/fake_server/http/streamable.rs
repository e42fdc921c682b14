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
pub(crate) fn serve(http: &Http, request: &HttpRequest, reply: &Arc<Reply>) -> Option<Pending> {
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

/// A POST, and what its body says.
struct Post<'a> {
    http: &'a HttpRequest,
    requests: Vec<Request>,
    modern: bool,
}

fn post(http: &Http, request: &HttpRequest, reply: &Arc<Reply>) -> Option<Pending> {
    let flags = &http.server.flags;
    let requests = request.requests();
    let modern = flags.modern || requests.first().is_some_and(Request::is_modern);
    let post = Post { http: request, requests, modern };
    if let Some((status, error)) =
        flags.strict.then(|| validate::check(&http.server, request)).flatten()
    {
        reply.json(status, &error);
        return None;
    }
    let client = match session_of(http, &post, reply) {
        Ok(client) => client,
        Err(refusal) => return refuse(reply, refusal),
    };
    let _turn = flags.block.then(|| http.turn.lock().expect("no holder panics"));
    let wire = wire_of(http, &post, &client, reply);
    for message in request.messages() {
        client.session.receive(message, &wire);
    }
    if post.requests.is_empty() {
        reply.whole(202, "");
    }
    let cancels = modern.then(|| Arc::clone(&client.session));
    Some(Pending::new(reply, request, cancels))
}

/// The way back: events, or JSON if the flags say so.
fn wire_of(http: &Http, post: &Post, client: &HttpSession, reply: &Arc<Reply>) -> Arc<dyn Wire> {
    let flags = &http.server.flags;
    let (count, reply) = (post.requests.len(), Arc::clone(reply));
    if flags.json {
        let batch = post.http.body.trim_start().starts_with('[').then_some(count);
        return Arc::new(JsonAnswer::new(reply, client.apart.clone(), batch, post.modern));
    }
    let style = if post.modern { Style::modern(flags) } else { Style::legacy(flags) };
    let stream = EventStream::answering(http.sessions.next_number(), style, reply, count);
    client.keep(&stream);
    stream
}

/// The session of a POST. A modern request has one of its own, so that ids of several clients never
/// meet.
fn session_of(http: &Http, post: &Post, reply: &Reply) -> Result<Arc<HttpSession>, Refusal> {
    let flags = &http.server.flags;
    let style = Style::legacy(flags);
    if post.modern {
        return Ok(http.sessions.passing(style));
    }
    if !flags.no_sessions && post.requests.iter().any(|request| request.method == "initialize") {
        let session = http.sessions.begin(style);
        reply.header("Mcp-Session-Id", &session.id);
        return Ok(session);
    }
    known_session(http, post.http)
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
