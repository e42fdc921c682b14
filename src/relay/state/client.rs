//! What a client says of itself, in the handshake or with each modern request.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{Budget, ClientPolicy, Policies};
use crate::mcp::revision;
use crate::rpc::object::Members;

/// How long `job_get` may wait where the client's budget is zero or "never" (§5.1).
const DEFAULT_WAIT: Duration = Duration::from_secs(25);

/// What answers to a client depend on.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// `clientInfo.name`
    pub name: String,
    /// `clientInfo.version`
    pub version: String,
    /// the revision of MCP that answers must follow
    pub protocol: String,
    pub policy: ClientPolicy,
}

impl Client {
    /// A client that has said nothing yet.
    pub(crate) fn unknown(policies: &Policies) -> Arc<Self> {
        Self::new(policies, None, "")
    }

    /// From the raw `clientInfo`, where there is one, and the revision in force.
    pub(crate) fn new(policies: &Policies, info: Option<&str>, protocol: &str) -> Arc<Self> {
        let info = info.and_then(Members::parse).unwrap_or_default();
        let member = |key| info.text(key).unwrap_or_default().into_owned();
        let name = member("name");
        let policy = policies.client(Some(&*name).filter(|name| !name.is_empty()));
        Arc::new(Client { version: member("version"), protocol: protocol.to_owned(), policy, name })
    }

    /// The same client after the server chose another revision.
    pub(crate) fn with_protocol(&self, protocol: &str) -> Arc<Self> {
        Arc::new(Client { protocol: protocol.to_owned(), ..self.clone() })
    }

    /// Whether a modern request comes from this client.
    pub(crate) fn matches(&self, info: Option<&str>, protocol: &str) -> bool {
        let info = info.and_then(Members::parse).unwrap_or_default();
        let same = |key, own: &str| info.text(key).unwrap_or_default() == own;
        self.protocol == protocol && same("name", &self.name) && same("version", &self.version)
    }

    /// Whether its revision has `structuredContent`.
    pub(crate) fn knows_structured_content(&self) -> bool {
        revision::has_structured_content(&self.protocol)
    }

    /// Whether its revision is of the modern era.
    pub(crate) fn is_modern(&self) -> bool {
        revision::is_modern(&self.protocol)
    }

    /// Whether arrays of messages are legal in its revision.
    pub(crate) fn sends_batches(&self) -> bool {
        revision::has_batches(&self.protocol)
    }

    /// How long `job_get` may wait for this client, as long as no time-out of it is known (§5.1).
    pub(crate) fn wait_limit(&self) -> Duration {
        match self.policy.budget {
            Budget::After(budget) if !budget.is_zero() => budget,
            _ => DEFAULT_WAIT,
        }
    }
}
