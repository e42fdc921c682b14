//! Requests that the server has not answered, with their ids and progress tokens on both sides.
//!
//! Ids and tokens pass as they are; one is renamed only where it would collide with another that
//! is still in use: a client may reuse the id of a call that went to the background.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::downstream::Reply;
use crate::jobs::live::LiveJob;
use crate::relay::state::deadlines::Slot;
use crate::relay::state::lists::ListKey;
use crate::relay::state::requester::Requester;
use crate::relay::state::restart_step::RestartStep;
use crate::rpc::id::Id;
use crate::rpc::splice::Edits;

use super::call::Call;
use super::recent::RecentIds;

/// Ids of our own start here: numbers that every server's id type can hold, rarely used by clients.
const FIRST_NEW_ID: i64 = 1_000_000_001;

/// A progress token in use.
#[derive(Debug)]
pub(crate) struct ProgressToken {
    /// as the server knows it
    pub upstream: Id,
    /// as the client wrote it, raw JSON; `None`: progress does not go to the client
    pub downstream: Option<Box<str>>,
}

/// A request that the server has to answer.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// `None`: nobody waits (any more)
    pub requester: Option<Requester>,
    /// the server knows it by another id than [`Requester::key`]
    pub renamed: bool,
    pub token: Option<ProgressToken>,
    pub kind: RequestKind,
}

impl PendingRequest {
    /// A request of our own: no client waits for the answer.
    pub(crate) fn without_requester(kind: RequestKind) -> Self {
        PendingRequest { requester: None, renamed: false, token: None, kind }
    }

    /// The job of a call that nobody waits for any more.
    pub(crate) fn job(&self) -> Option<&Arc<LiveJob>> {
        match &self.kind {
            RequestKind::Call(call) => call.job.as_ref(),
            _ => None,
        }
    }

    /// Whether it is not lost with the server: a call that still waits in line, or a subscription,
    /// which is sent again to the next server.
    pub(crate) fn survives_restart(&self) -> bool {
        match &self.kind {
            RequestKind::Call(call) => call.is_queued(),
            RequestKind::Listen { .. } => true,
            _ => false,
        }
    }
}

/// What a request is, which decides what is done with its answer.
#[derive(Debug)]
pub(crate) enum RequestKind {
    /// `tools/call`
    Call(Box<Call>),
    /// `initialize`
    Initialize,
    /// `server/discover`
    Discover,
    /// a list that may be repeated from memory (§1.1.5)
    List { key: ListKey, repeat: Option<Slot> },
    /// `subscriptions/listen`, with its text, to be sent again to a new server
    Listen {
        line: Bytes,
        acknowledged: bool,
        /// the server that had it is gone
        lost: bool,
    },
    /// anything else
    Other,
    /// a page of the tools, asked for by ourselves
    ToolsPage,
    /// a step of the handshake with a server that was started again
    Restart(RestartStep),
}

/// The requests that the server has not answered, by upstream id.
#[derive(Default)]
pub(crate) struct PendingRequests {
    by_id: HashMap<Id, PendingRequest>,
    /// from [`Requester::key`] to the upstream id, where they differ
    renamed: HashMap<Id, Id>,
    /// from the progress token that the server knows to the upstream id
    tokens: HashMap<Id, Id>,
    /// ids and tokens of requests that were cancelled: the server may answer all the same
    withdrawn: RecentIds,
    /// how many ids of our own were made
    new_ids: i64,
    /// how many of the requests are calls
    calls: usize,
}

impl PendingRequests {
    /// The id under which a request of the client goes to the server: the client's own unless that
    /// is in use.
    pub(crate) fn upstream_id_for(&mut self, downstream_id: &Id) -> Id {
        let taken =
            self.by_id.contains_key(downstream_id) || self.withdrawn.contains(downstream_id);
        if taken { self.new_id() } else { downstream_id.clone() }
    }

    /// The token under which the server is asked for progress: the client's own unless that is in
    /// use.
    fn upstream_token_for(&mut self, token: &Id) -> Id {
        let taken = self.tokens.contains_key(token) || self.withdrawn.contains(token);
        if taken { self.new_id() } else { token.clone() }
    }

    /// Gives a client's progress token one for the server, and edits the message where they differ;
    /// `None` where it is no valid token. `raw`: a slice of `text`, the message.
    pub(crate) fn map_token(
        &mut self,
        text: &str,
        raw: &str,
        edits: &mut Edits,
    ) -> Option<ProgressToken> {
        let token = Id::parse(raw)?;
        let upstream = self.upstream_token_for(&token);
        if upstream != token {
            edits.replace(text, raw, upstream.to_json());
        }
        Some(ProgressToken { upstream, downstream: Some(raw.into()) })
    }

    /// An id or token of our own that is not in use.
    pub(crate) fn new_id(&mut self) -> Id {
        loop {
            self.new_ids += 1;
            let id = Id::Number(FIRST_NEW_ID + self.new_ids);
            if !self.by_id.contains_key(&id) && !self.tokens.contains_key(&id) {
                return id;
            }
        }
    }

    /// Adds a request.
    pub(crate) fn insert(&mut self, upstream_id: Id, pending: PendingRequest) {
        if let (true, Some(requester)) = (pending.renamed, &pending.requester) {
            self.renamed.insert(requester.key.clone(), upstream_id.clone());
        }
        if let Some(token) = &pending.token {
            self.tokens.insert(token.upstream.clone(), upstream_id.clone());
        }
        self.calls += usize::from(matches!(pending.kind, RequestKind::Call(_)));
        self.by_id.insert(upstream_id, pending);
    }

    /// The request that the server knows by this id, to be changed.
    pub(crate) fn get_mut(&mut self, upstream_id: &Id) -> Option<&mut PendingRequest> {
        self.by_id.get_mut(upstream_id)
    }

    /// The call that the server knows by this id.
    pub(crate) fn call(&self, upstream_id: &Id) -> Option<&Call> {
        match &self.get(upstream_id)?.kind {
            RequestKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The call that the server knows by this id, to be changed.
    pub(crate) fn call_mut(&mut self, upstream_id: &Id) -> Option<&mut Call> {
        match &mut self.get_mut(upstream_id)?.kind {
            RequestKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The request that the server knows by this id.
    pub(crate) fn get(&self, upstream_id: &Id) -> Option<&PendingRequest> {
        self.by_id.get(upstream_id)
    }

    /// Takes a request out.
    pub(crate) fn remove(&mut self, upstream_id: &Id) -> Option<PendingRequest> {
        let mut pending = self.by_id.remove(upstream_id)?;
        self.calls -= usize::from(matches!(pending.kind, RequestKind::Call(_)));
        if let Some(token) = &pending.token {
            self.tokens.remove(&token.upstream);
        }
        let requester = pending.requester.take();
        self.forget_renamed(pending.renamed, requester.as_ref(), upstream_id);
        pending.requester = requester;
        Some(pending)
    }

    /// Takes out a request that is cancelled. The server may still answer it, so its id and token
    /// are not used again soon.
    pub(crate) fn withdraw(&mut self, upstream_id: &Id) -> Option<PendingRequest> {
        let pending = self.remove(upstream_id)?;
        self.withdrawn.insert(upstream_id.clone());
        if let Some(token) = &pending.token {
            self.withdrawn.insert(token.upstream.clone());
        }
        Some(pending)
    }

    /// Takes the requester out: nobody waits any more, and no progress goes to the client.
    pub(crate) fn take_requester(&mut self, upstream_id: &Id) -> Option<Requester> {
        let pending = self.by_id.get_mut(upstream_id)?;
        let requester = pending.requester.take();
        let renamed = pending.renamed;
        if let Some(token) = &mut pending.token {
            token.downstream = None;
        }
        self.forget_renamed(renamed, requester.as_ref(), upstream_id);
        requester
    }

    fn forget_renamed(&mut self, renamed: bool, requester: Option<&Requester>, upstream_id: &Id) {
        if renamed
            && let Some(requester) = requester
            && self.renamed.get(&requester.key) == Some(upstream_id)
        {
            self.renamed.remove(&requester.key);
        }
    }

    /// The upstream id of the request with this [`Requester::key`] that a client still waits for.
    pub(crate) fn upstream_id_of(&self, downstream_id: &Id) -> Option<Id> {
        if let Some(upstream_id) = self.renamed.get(downstream_id) {
            return Some(upstream_id.clone());
        }
        let pending = self.by_id.get(downstream_id)?;
        (!pending.renamed && pending.requester.is_some()).then(|| downstream_id.clone())
    }

    /// Marks all subscriptions as lost: the server that had them is gone.
    pub(crate) fn mark_lost_listens(&mut self) {
        for pending in self.by_id.values_mut() {
            if let RequestKind::Listen { lost, .. } = &mut pending.kind {
                *lost = true;
            }
        }
    }

    /// Whether the server knows a request by this id.
    pub(crate) fn contains(&self, upstream_id: &Id) -> bool {
        self.by_id.contains_key(upstream_id)
    }

    /// The request that a progress token belongs to.
    pub(crate) fn by_token(&mut self, token: &Id) -> Option<&mut PendingRequest> {
        self.by_id.get_mut(self.tokens.get(token)?)
    }

    /// The way back to the sender of the newest request that wants log messages (2026-07-28).
    pub(crate) fn newest_that_wants_logs(&self) -> Option<&Reply> {
        let requesters = self.by_id.values().filter_map(|pending| pending.requester.as_ref());
        let wanting = requesters.filter(|requester| requester.reply.wants_logs());
        wanting.max_by_key(|requester| &requester.key).map(|requester| &requester.reply)
    }

    /// How many calls the server has, or will have.
    pub(crate) fn call_count(&self) -> usize {
        self.calls
    }

    /// Whether the server has not answered the client's `initialize` or `server/discover` yet.
    pub(crate) fn any_opening(&self) -> bool {
        self.any(|kind| matches!(kind, RequestKind::Initialize | RequestKind::Discover))
    }

    /// Whether there is a request of such a kind.
    pub(crate) fn any(&self, is_such: impl Fn(&RequestKind) -> bool) -> bool {
        self.by_id.values().any(|pending| is_such(&pending.kind))
    }

    /// Whether a client that is still there waits for an answer. Subscriptions don't count, since
    /// they have no end.
    pub(crate) fn has_requester(&self) -> bool {
        let waits = |pending: &PendingRequest| {
            let requester = pending.requester.as_ref();
            requester.is_some_and(|requester| requester.reply.is_open())
                && !matches!(pending.kind, RequestKind::Listen { .. })
        };
        self.by_id.values().any(waits)
    }

    /// The upstream ids of all requests.
    pub(crate) fn ids(&self) -> Vec<Id> {
        self.by_id.keys().cloned().collect()
    }

    /// All requests with their upstream ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Id, &PendingRequest)> {
        self.by_id.iter()
    }
}
