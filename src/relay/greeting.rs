//! `initialize` and `server/discover` results: what the proxy notes, and the one paragraph that
//! it adds (contract §1.1.3).

use tokio::time::Instant;

use crate::rpc::id::Id;

use crate::mcp::params::Params;
use crate::rpc::object::Members;
use crate::rpc::splice::Edits;
use crate::rpc::string::quoted;

use super::client::Client;
use super::deadlines::Due;
use super::pending::{Asker, What};
use super::session::{Session, State};
use crate::rpc::message::Message;

/// What models are told, once, in `instructions`.
pub const PARAGRAPH: &str = "Tools of this server may take long. A call that takes longer than \
the client can wait is answered with a job_id and a next_action in place of its result, while the \
work goes on. Then call the tool that next_action names, with its args, to wait for the result; \
don't repeat the call.";

/// The greeting of a server, as far as it matters here.
pub struct Greeting<'a> {
    members: Members<'a>,
    result: &'a str,
}

impl<'a> Greeting<'a> {
    /// From the raw `result`.
    pub fn parse(result: &'a str) -> Option<Self> {
        Some(Greeting { members: Members::parse(result)?, result })
    }

    /// The revision that the server chose.
    pub fn protocol(&self) -> Option<String> {
        self.members.text("protocolVersion").map(|version| version.into_owned())
    }

    /// A server without tools is left as it is (§1.1.2).
    pub fn has_tools(&self) -> bool {
        self.members.object("capabilities").is_some_and(|c| c.get("tools").is_some())
    }

    /// §1.1.3: appends our paragraph to `instructions`. `text` is the whole message.
    pub fn announce(&self, text: &str, edits: &mut Edits) {
        match self.members.get("instructions") {
            Some(old) if old.starts_with('"') => {
                let ours = quoted(&format!("\n\n{PARAGRAPH}"));
                let joined = format!("{}{}", &old[..old.len() - 1], &ours[1..]);
                edits.replace(text, old, joined);
            }
            Some(other) => edits.replace(text, other, quoted(PARAGRAPH)),
            None => edits.set_member(text, self.result, "instructions", &quoted(PARAGRAPH)),
        }
    }
}

impl Session {
    /// A modern request says anew who sends it.
    pub(super) fn meet(&self, state: &mut State, params: &Params) {
        let Some(protocol) = params.protocol_version() else { return };
        if !state.client.is(params.client_info(), &protocol) {
            state.client = Client::new(&self.config.policy, params.client_info(), &protocol);
        }
    }

    pub(super) fn opening(&self, state: &mut State, params: &Params, id: &Id) -> What {
        let version = params.text("protocolVersion").unwrap_or_default();
        state.client = Client::new(&self.config.policy, params.get("clientInfo"), &version);
        let at = Instant::now() + self.config.start_timeout;
        self.add_deadline(state, at, Due::Handshake(id.clone()));
        What::Initialize
    }

    /// The greeting of the server: it is noted, and our paragraph is added (§1.1.3).
    pub(super) fn greeted(&self, state: &mut State, asker: Option<Asker>, message: &Message) {
        let Some(asker) = asker else { return };
        let mut edits = Edits::new();
        if let Some(greeting) = message.envelope.result.and_then(Greeting::parse) {
            if let Some(protocol) = greeting.protocol() {
                state.client = state.client.on(&protocol);
            }
            if self.config.jobs.announce && greeting.has_tools() {
                greeting.announce(message.text, &mut edits);
            }
        }
        self.answer_edited(&asker, message, edits);
    }
}
