//! What a test asks of the server while it runs, beside the protocol and not in the journal.

use crate::http::Http;
use crate::http::faults::Fault;
use crate::http::reply::Reply;
use crate::http::request::HttpRequest;

/// `POST /control/fault` adds a fault, `/control/forget` forgets all sessions, `/control/cut` breaks the
/// connection of every stream.
pub(crate) fn serve(http: &Http, request: &HttpRequest, reply: &Reply) {
    match request.path.as_str() {
        "/control/fault" => match serde_json::from_str::<Fault>(&request.body) {
            Ok(fault) => http.faults.add(fault),
            Err(error) => return reply.whole(400, &error.to_string()),
        },
        "/control/forget" => http.sessions.forget(),
        "/control/cut" => http.sessions.cut_streams(),
        _ => return reply.whole(404, ""),
    }
    reply.whole(200, "");
}
