//! The pages of tools that we read ourselves, to know which names are free for our tools (contract
//! §1.1.2).

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::jobs::store::ready;
use crate::mcp::meta::modern_meta;
use crate::mcp::method::Method;
use crate::relay::session::Session;
use crate::relay::state::calls::{PendingRequest, RequestKind};
use crate::relay::state::lists::{HeldPage, Next};
use crate::relay::state::requester::Requester;
use crate::relay::state::{Due, State};
use crate::rpc::message::Message;
use crate::upstream::Outgoing;

/// How long we may read the pages, since answers may wait for them.
const READING_LIMIT: Duration = Duration::from_secs(5);

impl Session {
    /// Reads all pages of the tools (§1.1.2).
    pub(in crate::relay) fn read_tools(&self, state: &mut State) {
        state.lists.catalog.start_reading();
        self.limit_reading(state);
        self.read_page(state, None);
    }

    /// Adds a deadline for reading the pages: what is held meanwhile must not wait for ever.
    pub(super) fn limit_reading(&self, state: &mut State) {
        let number = state.lists.catalog.reading_number();
        self.add_deadline(state, Instant::now() + READING_LIMIT, Due::Reading(number));
    }

    /// The pages take too long: the names are made from those that were read.
    pub(in crate::relay) fn reading_due(&self, state: &mut State, number: u64) {
        if state.lists.catalog.is_reading() && state.lists.catalog.reading_number() == number {
            self.tools_page(state, None);
        }
    }

    /// Asks for one page.
    pub(super) fn read_page(&self, state: &mut State, cursor: Option<&str>) {
        let mut members = Vec::new();
        let client = &state.client.info;
        if client.is_modern() {
            let meta = modern_meta(&client.protocol, &client.name, &client.version);
            members.push(format!(r#""_meta":{meta}"#));
        }
        members.extend(cursor.map(|cursor| format!(r#""cursor":{cursor}"#)));
        let params = (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")));
        let id = state.calls.pending.new_id();
        state
            .calls
            .pending
            .insert(id.clone(), PendingRequest::without_requester(RequestKind::ToolsPage));
        let headers = state.client.headers.clone();
        let out = Outgoing::own_request(&id, Method::ListTools, params.as_deref(), headers);
        if self.send_to_server(state, out).is_err() {
            state.calls.pending.remove(&id);
            self.tools_page(state, None);
        }
    }

    /// A page that we asked for; `None`: the server refused it, or it takes too long.
    pub(in crate::relay) fn tools_page(&self, state: &mut State, result: Option<&str>) {
        match state.lists.catalog.page_read(result) {
            Next::Read(cursor) => self.read_page(state, Some(&cursor)),
            Next::Done(reading) => {
                for HeldPage { key, requester, line } in reading.held_pages {
                    self.send_list(state, key, Some(requester), &Message::parse(&line));
                }
                self.release_held_calls(state, reading.held_calls);
            }
        }
    }

    /// Calls that waited for the tools are handled as if they came now, once the lock is dropped.
    pub(in crate::relay) fn release_held_calls(
        &self,
        state: &mut State,
        calls: Vec<(Requester, Bytes)>,
    ) {
        for (requester, line) in calls {
            self.once_stored(state, ready(()), move |session| {
                session.held_request(&Message::parse(&line), requester);
            });
        }
    }
}
