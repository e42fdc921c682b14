//! `initialize` and `server/discover`: what the proxy notes of client and server, and the one
//! paragraph that it adds to the result (contract §1.1.3).

use tokio::time::Instant;

use crate::jobs::wording::{ANNOUNCEMENT, seconds};
use crate::mcp::params::Params;
use crate::relay::session::Session;
use crate::relay::state::calls::RequestKind;
use crate::relay::state::client::Client;
use crate::relay::state::requester::Requester;
use crate::relay::state::restart_step::RestartStep;
use crate::relay::state::{Due, State};
use crate::rpc::id::Id;
use crate::rpc::message::Message;
use crate::rpc::object::Members;
use crate::rpc::splice::Edits;
use crate::rpc::string::quoted;

/// The result of `initialize` or `server/discover`.
struct OpeningResult<'a> {
    members: Members<'a>,
    result: &'a str,
}

impl<'a> OpeningResult<'a> {
    /// From the raw `result`.
    fn parse(result: &'a str) -> Option<Self> {
        Some(OpeningResult { members: Members::parse(result)?, result })
    }

    /// The revision that the server chose.
    fn protocol(&self) -> Option<String> {
        self.members.text("protocolVersion").map(|version| version.into_owned())
    }

    /// Whether the server has tools; the result of one without tools is left as it is (§1.1.2).
    fn has_tools(&self) -> bool {
        self.members.object("capabilities").is_some_and(|c| c.get("tools").is_some())
    }

    /// §1.1.3: appends our paragraph to `instructions`. `text` is the whole message.
    fn announce(&self, text: &str, edits: &mut Edits) {
        match self.members.get("instructions") {
            Some(old) if old.starts_with('"') => {
                let ours = quoted(&format!("\n\n{ANNOUNCEMENT}"));
                let joined = format!("{}{}", &old[..old.len() - 1], &ours[1..]);
                edits.replace(text, old, joined);
            }
            Some(other) => edits.replace(text, other, quoted(ANNOUNCEMENT)),
            None => edits.set_member(text, self.result, "instructions", &quoted(ANNOUNCEMENT)),
        }
    }
}

impl Session {
    /// Notes the client and the revision that a modern request names.
    pub(in crate::relay) fn note_modern_client(&self, state: &mut State, params: &Params) {
        let Some(protocol) = params.protocol_version() else { return };
        if !state.client.info.matches(params.client_info(), &protocol) {
            state.client.info = Client::new(&self.config.policy, params.client_info(), &protocol);
        }
    }

    /// `initialize` of the client, which goes to the server.
    pub(in crate::relay) fn initialize_asked(
        &self,
        state: &mut State,
        params: &Params,
        id: &Id,
    ) -> RequestKind {
        let version = params.text("protocolVersion").unwrap_or_default();
        state.client.info = Client::new(&self.config.policy, params.get("clientInfo"), &version);
        let at = Instant::now() + self.config.start_timeout;
        self.add_deadline(state, at, Due::Handshake(id.clone()));
        RequestKind::Initialize
    }

    /// The server's answer to `initialize` or `server/discover`: the revision is noted, and our
    /// paragraph added (§1.1.3).
    pub(in crate::relay) fn opening_answered(
        &self,
        state: &mut State,
        requester: Option<Requester>,
        message: &Message,
    ) {
        let Some(requester) = requester else { return };
        let mut edits = Edits::new();
        if let Some(opening) = message.envelope.result.and_then(OpeningResult::parse) {
            if let Some(protocol) = opening.protocol() {
                state.client.info = state.client.info.with_protocol(&protocol);
            }
            if self.config.jobs.announce && opening.has_tools() {
                opening.announce(message.text, &mut edits);
            }
        }
        self.forward_edited_answer(&requester, message, edits);
    }

    /// The server has not answered `initialize` for `start_timeout`.
    pub(in crate::relay) fn handshake_due(&self, state: &mut State, id: &Id) {
        let Some(pending) = state.calls.pending.get(id) else { return };
        let cause = format!(
            "the server has not answered initialize for {} (upstream.start_timeout)",
            seconds(self.config.start_timeout)
        );
        match &pending.kind {
            RequestKind::Initialize => self.fail_locked(state, &cause),
            RequestKind::Restart(RestartStep::Initialize) => self.upstream.give_up(&cause),
            _ => {}
        }
    }
}
