//! Requests that the server has not answered, and the names they go by inside.
//!
//! Ids and tokens pass as they are; one is renamed only where it would collide with another that
//! is still in use: a client may reuse the id of a call that went to the background.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::downstream::Reply;
use crate::jobs::live::LiveJob;
use crate::relay::deadlines::Slot;
use crate::relay::lifecycle::RestartStep;
use crate::relay::lists::ListKey;
use crate::relay::requester::Requester;
use crate::rpc::id::Id;
use crate::rpc::splice::Edits;

use super::call::Call;
use super::recent::RecentIds;

/// Own ids start here: numbers that every server's id type can hold, rarely used by clients.
const OWN_IDS: i64 = 1_000_000_001;

/// A progress token in use.
#[derive(Debug)]
pub(crate) struct ProgressToken {
    /// as the server knows it
    pub inside: Id,
    /// as the client wrote it, raw JSON; `None`: progress does not go to the client
    pub outside: Option<Box<str>>,
}

/// A request that the server has to answer.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// `None`: nobody waits (any more)
    pub requester: Option<Requester>,
    /// the server knows it by another id than the session
    pub renamed: bool,
    pub token: Option<ProgressToken>,
    pub kind: RequestKind,
}

impl PendingRequest {
    /// A request of our own.
    pub(crate) fn own(kind: RequestKind) -> Self {
        PendingRequest { requester: None, renamed: false, token: None, kind }
    }

    /// The job of a call that nobody waits for any more.
    pub(crate) fn job(&self) -> Option<&Arc<LiveJob>> {
        match &self.kind {
            RequestKind::Call(call) => call.job.as_ref(),
            _ => None,
        }
    }

    /// Not lost with the server: a call that still waits in line, and a subscription, which is
    /// sent again to the next one.
    pub(crate) fn survives_the_server(&self) -> bool {
        match &self.kind {
            RequestKind::Call(call) => call.is_in_line(),
            RequestKind::Listen { .. } => true,
            _ => false,
        }
    }
}

/// What a request is, and what its answer means to us.
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
    Plain,
    /// a page of the tools, asked for by ourselves
    ToolsPage,
    /// a step of the handshake with a server that was started again
    Restart(RestartStep),
}

/// The requests by the id that the server knows.
#[derive(Default)]
pub(crate) struct PendingRequests {
    by_id: HashMap<Id, PendingRequest>,
    /// the session's name to the server's, where they differ
    renamed: HashMap<Id, Id>,
    tokens: HashMap<Id, Id>,
    /// ids and tokens of requests that were taken back: the server may answer all the same
    spent: RecentIds,
    last_own: i64,
    calls: usize,
}

impl PendingRequests {
    /// The id under which a request of the client goes to the server: its own unless that is in
    /// use.
    pub(crate) fn inside_id(&mut self, outside: &Id) -> Id {
        let taken = self.by_id.contains_key(outside) || self.spent.contains(outside);
        if taken { self.own_id() } else { outside.clone() }
    }

    /// The token under which progress is asked for inside.
    fn inside_token(&mut self, outside: &Id) -> Id {
        let taken = self.tokens.contains_key(outside) || self.spent.contains(outside);
        if taken { self.own_id() } else { outside.clone() }
    }

    /// Gives a client's progress token its name inside; `None` where it can be no token. `raw`: a
    /// slice of `text`, the message.
    pub(crate) fn name_token(
        &mut self,
        text: &str,
        raw: &str,
        edits: &mut Edits,
    ) -> Option<ProgressToken> {
        let outside = Id::parse(raw)?;
        let inside = self.inside_token(&outside);
        if inside != outside {
            edits.replace(text, raw, inside.to_json());
        }
        Some(ProgressToken { inside, outside: Some(raw.into()) })
    }

    /// An id or token of our own.
    pub(crate) fn own_id(&mut self) -> Id {
        loop {
            self.last_own += 1;
            let id = Id::Number(OWN_IDS + self.last_own);
            if !self.by_id.contains_key(&id) && !self.tokens.contains_key(&id) {
                return id;
            }
        }
    }

    pub(crate) fn insert(&mut self, inside: Id, pending: PendingRequest) {
        if let (true, Some(requester)) = (pending.renamed, &pending.requester) {
            self.renamed.insert(requester.key.clone(), inside.clone());
        }
        if let Some(token) = &pending.token {
            self.tokens.insert(token.inside.clone(), inside.clone());
        }
        self.calls += usize::from(matches!(pending.kind, RequestKind::Call(_)));
        self.by_id.insert(inside, pending);
    }

    pub(crate) fn get_mut(&mut self, inside: &Id) -> Option<&mut PendingRequest> {
        self.by_id.get_mut(inside)
    }

    /// The call that the server knows by this id.
    pub(crate) fn call(&self, inside: &Id) -> Option<&Call> {
        match &self.get(inside)?.kind {
            RequestKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn call_mut(&mut self, inside: &Id) -> Option<&mut Call> {
        match &mut self.get_mut(inside)?.kind {
            RequestKind::Call(call) => Some(call),
            _ => None,
        }
    }

    pub(crate) fn get(&self, inside: &Id) -> Option<&PendingRequest> {
        self.by_id.get(inside)
    }

    pub(crate) fn remove(&mut self, inside: &Id) -> Option<PendingRequest> {
        let mut pending = self.by_id.remove(inside)?;
        self.calls -= usize::from(matches!(pending.kind, RequestKind::Call(_)));
        if let Some(token) = &pending.token {
            self.tokens.remove(&token.inside);
        }
        let requester = pending.requester.take();
        self.forget_name(pending.renamed, requester.as_ref(), inside);
        pending.requester = requester;
        Some(pending)
    }

    /// Takes back a request that the server may still answer: its names are not used again soon.
    pub(crate) fn withdraw(&mut self, inside: &Id) -> Option<PendingRequest> {
        let pending = self.remove(inside)?;
        self.spent.insert(inside.clone());
        if let Some(token) = &pending.token {
            self.spent.insert(token.inside.clone());
        }
        Some(pending)
    }

    /// Takes the requester out: nobody waits any more, and progress stays inside.
    pub(crate) fn detach(&mut self, inside: &Id) -> Option<Requester> {
        let pending = self.by_id.get_mut(inside)?;
        let requester = pending.requester.take();
        let renamed = pending.renamed;
        if let Some(token) = &mut pending.token {
            token.outside = None;
        }
        self.forget_name(renamed, requester.as_ref(), inside);
        requester
    }

    fn forget_name(&mut self, renamed: bool, requester: Option<&Requester>, inside: &Id) {
        if renamed
            && let Some(requester) = requester
            && self.renamed.get(&requester.key) == Some(inside)
        {
            self.renamed.remove(&requester.key);
        }
    }

    /// The server's id of the request that a client still waits for under this id.
    pub(crate) fn asked_as(&self, outside: &Id) -> Option<Id> {
        if let Some(inside) = self.renamed.get(outside) {
            return Some(inside.clone());
        }
        let pending = self.by_id.get(outside)?;
        (!pending.renamed && pending.requester.is_some()).then(|| outside.clone())
    }

    /// The server that had the subscriptions is gone.
    pub(crate) fn mark_lost_listens(&mut self) {
        for pending in self.by_id.values_mut() {
            if let RequestKind::Listen { lost, .. } = &mut pending.kind {
                *lost = true;
            }
        }
    }

    /// Whether the server knows a request by this id.
    pub(crate) fn contains(&self, inside: &Id) -> bool {
        self.by_id.contains_key(inside)
    }

    /// The request that a progress token belongs to.
    pub(crate) fn by_token(&mut self, token: &Id) -> Option<&mut PendingRequest> {
        self.by_id.get_mut(self.tokens.get(token)?)
    }

    /// Where the newest request that wants log lines is answered (2026-07-28).
    pub(crate) fn newest_that_wants_logs(&self) -> Option<&Reply> {
        let requesters = self.by_id.values().filter_map(|pending| pending.requester.as_ref());
        let wanting = requesters.filter(|requester| requester.reply.wants_logs());
        wanting.max_by_key(|requester| &requester.key).map(|requester| &requester.reply)
    }

    /// Calls that the server has, or that wait for it.
    pub(crate) fn calls(&self) -> usize {
        self.calls
    }

    /// Whether the server still has to answer the client's opening.
    pub(crate) fn any_opening(&self) -> bool {
        let opens = |pending: &PendingRequest| {
            matches!(pending.kind, RequestKind::Initialize | RequestKind::Discover)
        };
        self.by_id.values().any(opens)
    }

    /// Whether a client waits for anything that has an end, and is still there.
    pub(crate) fn any_asked(&self) -> bool {
        let waits = |pending: &PendingRequest| {
            let requester = pending.requester.as_ref();
            requester.is_some_and(|requester| requester.reply.is_open())
                && !matches!(pending.kind, RequestKind::Listen { .. })
        };
        self.by_id.values().any(waits)
    }

    pub(crate) fn ids(&self) -> Vec<Id> {
        self.by_id.keys().cloned().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Id, &PendingRequest)> {
        self.by_id.iter()
    }
}
