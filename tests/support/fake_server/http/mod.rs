//! HTTP: Streamable HTTP with both eras on `/mcp`, or HTTP+SSE (2024-11-05) on `/sse`.
//!
//! A thread a connection. Which era a request belongs to is told by its body alone.

mod control;
pub(crate) mod faults;
mod json_answer;
mod reply;
mod request;
mod sessions;
mod status;
mod stream;
mod streamable;
mod two_ways;
mod validate;

use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::http::faults::Faults;
use crate::http::reply::Reply;
use crate::http::request::HttpRequest;
use crate::http::sessions::Sessions;
use crate::server::Server;
use crate::session::Session;

/// Where the resource says who may grant access to it; the endpoint's path may follow.
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

/// All that the connections share.
struct Http {
    server: Arc<Server>,
    base: String,
    sessions: Sessions,
    faults: Faults,
    /// Held by the request that is served, with `--block`.
    turn: Mutex<()>,
}

/// A request whose answer has not ended.
struct Pending {
    reply: Arc<Reply>,
    /// The session to cancel when the client hangs up, as it is understood in the modern era.
    cancels: Option<Arc<Session>>,
    summary: Value,
}

/// Serves for ever; a line of stdout says where, `listening on URL`.
pub(crate) fn serve(server: Arc<Server>, address: SocketAddr) {
    let listener = TcpListener::bind(address).expect("the address is free");
    let base = format!("http://{}", listener.local_addr().expect("it is bound"));
    println!("listening on {base}{}", if server.flags.sse.is_some() { "/sse" } else { "/mcp" });
    let sessions = Sessions::new(Arc::clone(&server));
    let faults = Faults::new(&server.flags.fault);
    let http = Arc::new(Http { server, base, sessions, faults, turn: Mutex::default() });
    for socket in listener.incoming().flatten() {
        // Small writes would wait for the client's acknowledgements, 40 ms each.
        socket.set_nodelay(true).expect("a socket need not wait");
        let http = Arc::clone(&http);
        thread::spawn(move || http.connection(&socket));
    }
}

impl Http {
    /// Serves the requests of one connection. As no client sends a request before the last one was
    /// answered, its end before that is a client who hung up.
    fn connection(&self, socket: &TcpStream) {
        let socket = || socket.try_clone().expect("a socket can be shared");
        let mut input = BufReader::new(socket());
        let mut pending = None;
        while let Some(request) = HttpRequest::read(&mut input) {
            pending = self.respond(&request, &Arc::new(Reply::new(socket())));
        }
        let pending = pending.filter(|pending: &Pending| !pending.reply.has_ended());
        if let Some(Pending { cancels, summary, .. }) = pending {
            self.server.journal.event("disconnect", summary);
            cancels.inspect(|session| session.cancel_all());
        }
    }

    fn respond(&self, request: &HttpRequest, reply: &Arc<Reply>) -> Option<Pending> {
        if request.path.starts_with("/control/") {
            control::serve(self, request, reply);
            return None;
        }
        self.server.journal.request(&request.body, request.summary());
        if self.faults.meet(request, reply) || self.is_refused(request, reply) {
            return None;
        }
        let served = match (self.server.flags.sse.is_some(), request.path.as_str()) {
            (false, "/mcp") => streamable::serve(self, request, reply),
            (true, "/sse" | "/messages") => two_ways::serve(self, request, reply),
            _ => {
                reply.whole(404, "no such path");
                None
            }
        };
        served.filter(|pending| !pending.reply.has_ended())
    }

    /// Answers those who have no token, and tells them where to get one.
    fn is_refused(&self, request: &HttpRequest, reply: &Reply) -> bool {
        let Some(token) = &self.server.flags.token else { return false };
        let base = &self.base;
        if request.path.starts_with(RESOURCE_METADATA) {
            let resource = format!("{base}/mcp");
            let metadata = json!({"resource": resource, "authorization_servers": [base]});
            reply.json(200, &metadata.to_string());
        } else if request.header("authorization") != format!("Bearer {token}") {
            let metadata = format!("Bearer resource_metadata=\"{base}{RESOURCE_METADATA}\"");
            reply.header("WWW-Authenticate", &metadata);
            reply.whole(401, "");
        }
        reply.has_ended()
    }
}

impl Pending {
    fn new(reply: &Arc<Reply>, request: &HttpRequest, cancels: Option<Arc<Session>>) -> Self {
        let first = request.requests().into_iter().next();
        let (id, of) = first.map(|request| (request.id, request.method)).unzip();
        let summary = json!({"http_method": request.method, "method": of, "id": id});
        Self { reply: Arc::clone(reply), cancels, summary }
    }
}
