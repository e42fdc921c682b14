//! What is under way in a session, and who waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::jobs::live::LiveJob;
use crate::jobs::record::Outcome;
use crate::relay::client::Client;
use crate::relay::requester::Requester;
use crate::rpc::id::Id;

use super::call::Call;
use super::pending::PendingRequests;
use super::policies::KnownPolicies;
use super::recent::RecentIds;

/// Requests, calls and waits of one session. A client names its requests; [`Calls::find`] says what
/// such a name stands for.
#[derive(Default)]
pub(crate) struct Calls {
    /// requests that the server has to answer
    pub pending: PendingRequests,
    /// calls in the background whose server waits for input, by job
    pub parked: HashMap<Uuid, Call>,
    /// long answers that a client has not taken yet, by the name of its request
    pub undelivered: HashMap<Id, Undelivered>,
    /// clients that left a call, by the name of their request
    pub disconnected: HashMap<Id, Disconnected>,
    /// polls of jobs that wait, by the name of their request
    pub waits: HashMap<Id, Waiting>,
    pub policies: KnownPolicies,
    /// the client's names of requests whose server's answer it does not get
    parted: RecentIds,
}

/// A call whose answer is on its way to the client.
pub(crate) struct Undelivered {
    pub call: Call,
    pub outcome: Outcome,
}

/// A client that left a call, and may come back for its answer.
pub(crate) struct Disconnected {
    pub requester: Requester,
    pub job: Arc<LiveJob>,
    /// the end of its budget
    pub until: Instant,
}

/// Somebody who waits for a job.
pub(crate) struct Waiting {
    pub task: AbortHandle,
    pub since: Instant,
    pub client: Arc<Client>,
}

/// What a client's name of a request stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// somebody waits for a job under it
    Waiting,
    /// the server has to answer it; this is the server's id of it
    Pending(Id),
    /// its answer is on its way to the client
    Undelivered,
    /// its client left it
    Disconnected,
    /// it was answered with something else than the server's answer, or taken back
    Parted,
    /// nothing that is known here
    Unknown,
}

impl Calls {
    /// What a client's name of a request stands for.
    pub(crate) fn find(&self, key: &Id) -> Standing {
        if self.waits.contains_key(key) {
            Standing::Waiting
        } else if let Some(inside) = self.pending.asked_as(key) {
            Standing::Pending(inside)
        } else if self.undelivered.contains_key(key) {
            Standing::Undelivered
        } else if self.disconnected.contains_key(key) {
            Standing::Disconnected
        } else if self.parted.contains(key) || self.pending.contains(key) {
            // The server may know a job by this id whose handle is out.
            Standing::Parted
        } else {
            Standing::Unknown
        }
    }

    /// The client has got something else than the server's answer, or gave up: §4.3.
    pub(crate) fn part(&mut self, requester: &Requester) {
        self.parted.insert(requester.key.clone());
    }

    /// Whether a client waits for anything that has an end.
    pub(crate) fn any_asked(&self) -> bool {
        self.pending.any_asked() || !self.waits.is_empty()
    }

    /// Whether a call or a job is under way.
    pub(crate) fn any_running(&self) -> bool {
        self.pending.calls() > 0 || !self.parked.is_empty()
    }
}
