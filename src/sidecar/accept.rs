//! What a client takes in answer.

use http::HeaderMap;
use http::header::ACCEPT;

/// The media types of `Accept` that matter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptedTypes {
    /// an answer alone, as JSON
    pub json: bool,
    /// a stream of events
    pub events: bool,
}

impl AcceptedTypes {
    /// From the headers; a client that says nothing takes JSON.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut types = AcceptedTypes { json: !headers.contains_key(ACCEPT), events: false };
        for value in headers.get_all(ACCEPT) {
            for part in value.to_str().unwrap_or_default().split(',') {
                match part.split(';').next().unwrap_or_default().trim() {
                    "application/json" | "application/*" | "*/*" => types.json = true,
                    "text/event-stream" | "text/*" => types.events = true,
                    _ => {}
                }
            }
        }
        types
    }
}
