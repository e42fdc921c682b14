//! stdio: a message a line.

use std::io::{BufRead, BufReader, stdin};
use std::sync::Arc;

use serde_json::json;

use crate::server::Server;
use crate::session::Session;
use crate::wire::Wire;
use support::json::messages;

/// Serves one session until stdin ends. Then the process ends too, whatever still runs.
pub(crate) fn serve(server: Arc<Server>, stdout: Arc<dyn Wire>) {
    let session = Arc::new(Session::new(Arc::clone(&server), Arc::clone(&stdout)));
    let mut input = BufReader::new(stdin().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let received = line.strip_suffix(b"\n").unwrap_or(&line);
        server.journal.line(received);
        for message in messages(&String::from_utf8_lossy(received)) {
            session.receive(message, &stdout);
        }
        line.clear();
    }
    server.journal.event("eof", json!({}));
}
