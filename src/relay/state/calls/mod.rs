//! What is under way in a session, and who waits for it.

mod call;
mod pending;
mod policies;
mod recent;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::jobs::live::LiveJob;
use crate::jobs::record::Outcome;
use crate::relay::state::client::Client;
use crate::relay::state::requester::Requester;
use crate::rpc::id::Id;

pub(crate) use call::{Call, outcome_of};
pub(crate) use pending::{PendingRequest, PendingRequests, ProgressToken, RequestKind};
use policies::KnownPolicies;
use recent::RecentIds;

/// Requests, calls and waits of one session. [`Calls::state_of`] finds a request by its
/// [`Requester::key`].
#[derive(Default)]
pub(crate) struct Calls {
    /// requests that the server has to answer
    pub pending: PendingRequests,
    /// calls in the background whose server waits for input, by job
    pub parked: HashMap<Uuid, Call>,
    /// long answers that are on their way to a client, by the key of its request
    pub undelivered: HashMap<Id, Undelivered>,
    /// clients that closed the stream of a call, by the key of its request
    pub disconnected: HashMap<Id, Disconnected>,
    /// who waits for a job, by the key of the request
    pub waits: HashMap<Id, WaitTask>,
    pub policies: KnownPolicies,
    /// keys of requests that get no answer of the server any more: they were answered with a
    /// handle, wait for a job, or were given up
    answered_by_proxy: RecentIds,
}

/// A call whose answer is on its way to the client.
pub(crate) struct Undelivered {
    pub call: Call,
    pub outcome: Outcome,
}

/// A client that closed the stream of a call, and may resume it to get the answer.
pub(crate) struct Disconnected {
    pub requester: Requester,
    pub job: Arc<LiveJob>,
    /// the end of its budget
    pub until: Instant,
}

/// The task that waits for a job on behalf of a client.
pub(crate) struct WaitTask {
    pub task: AbortHandle,
    pub since: Instant,
    pub client: Arc<Client>,
}

/// How far a request of the client has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// its answer waits for a job
    Waiting,
    /// the server has to answer it; this is its upstream id
    Pending(Id),
    /// its answer is on its way to the client
    Undelivered,
    /// its client closed the stream, and its call went on as a job
    Disconnected,
    /// it gets no answer of the server any more: its handle is out, or it was given up
    AnsweredByProxy,
    /// no such request is known
    Unknown,
}

impl Calls {
    /// How far the request with this [`Requester::key`] has come.
    pub(crate) fn state_of(&self, key: &Id) -> RequestState {
        if self.waits.contains_key(key) {
            RequestState::Waiting
        } else if let Some(upstream_id) = self.pending.upstream_id_of(key) {
            RequestState::Pending(upstream_id)
        } else if self.undelivered.contains_key(key) {
            RequestState::Undelivered
        } else if self.disconnected.contains_key(key) {
            RequestState::Disconnected
        } else if self.answered_by_proxy.contains(key) || self.pending.contains(key) {
            // A job whose handle is out still has this id at the server.
            RequestState::AnsweredByProxy
        } else {
            RequestState::Unknown
        }
    }

    /// Notes that a request gets no answer of the server any more (§4.3).
    pub(crate) fn mark_answered_by_proxy(&mut self, requester: &Requester) {
        self.answered_by_proxy.insert(requester.key.clone());
    }

    /// Whether a client waits for an answer.
    pub(crate) fn has_requester(&self) -> bool {
        self.pending.has_requester() || !self.waits.is_empty()
    }

    /// Whether a call or a job is under way.
    pub(crate) fn any_running(&self) -> bool {
        self.pending.call_count() > 0 || !self.parked.is_empty()
    }
}
