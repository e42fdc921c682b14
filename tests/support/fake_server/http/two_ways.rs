//! HTTP+SSE (2024-11-05): all answers come on the stream of one GET, all messages by POST.

use std::sync::Arc;

use crate::http::reply::Reply;
use crate::http::request::HttpRequest;
use crate::http::stream::Style;
use crate::http::{Http, Pending};
use crate::wire::Wire;

/// Serves `/sse` and `/messages`.
pub(crate) fn serve(http: &Http, request: &HttpRequest, reply: &Arc<Reply>) -> Option<Pending> {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/sse") => return Some(open(http, request, reply)),
        ("POST", "/messages") => post(http, request, reply),
        _ => reply.whole(405, ""),
    }
    None
}

/// Opens the stream of a new session; its first event says where to post.
fn open(http: &Http, request: &HttpRequest, reply: &Arc<Reply>) -> Pending {
    let client = http.sessions.begin(Style::default());
    let endpoint = &http.server.flags.endpoint;
    let endpoint = endpoint.replace("$SESSION", &client.id).replace("$BASE", &http.base);
    client.apart.open(Arc::clone(reply));
    client.apart.bytes(format!("event: endpoint\ndata: {endpoint}\n\n").as_bytes());
    Pending::new(reply, request, None)
}

fn post(http: &Http, request: &HttpRequest, reply: &Reply) {
    let id = request.query.strip_prefix("session=").unwrap_or_default();
    let Some(client) = http.sessions.get(id) else { return reply.whole(404, "no such session") };
    reply.whole(202, "Accepted");
    let _turn = http.server.flags.block.then(|| http.turn.lock().expect("no holder panics"));
    let wire: Arc<dyn Wire> = client.apart.clone();
    for message in request.messages() {
        client.session.receive(message, &wire);
    }
}
