//! Requests of the client that the server has not answered, and the names they go by inside.
//!
//! Ids and tokens pass as they are; one is renamed only where it would collide with another that
//! is still in use: a client may reuse the id of a call that went to the background.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::downstream::Reply;
use crate::jobs::job::Job;
use crate::rpc::id::Id;
use crate::rpc::splice::Edits;
use crate::upstream::Headers;

use super::call::Call;
use super::deadlines::Slot;
use super::lists::ListKey;
use super::revival::Step;
use super::session::State;
use crate::rpc::message::Message;

/// Own ids start here: numbers that every server's id type can hold, rarely used by clients.
const OWN_IDS: i64 = 1_000_000_001;

/// Who waits for an answer.
#[derive(Debug, Clone)]
pub struct Asker {
    /// the request's name in the session: its id, unless several clients share the session
    pub key: Id,
    /// the id as the client wrote it, raw JSON
    pub id: Box<str>,
    pub reply: Reply,
    /// what goes with the request over HTTP
    pub headers: Headers,
    /// when it arrived, from which its budget counts
    pub received: Instant,
    /// the server has refused its headers once
    pub refused: bool,
}

impl Asker {
    /// Somebody who asks now. `id`: as they wrote it, raw JSON.
    pub fn new(key: Id, id: &str, reply: Reply, headers: Headers) -> Self {
        let received = Instant::now();
        Asker { key, id: id.into(), reply, headers, received, refused: false }
    }
}

/// A progress token in use.
#[derive(Debug)]
pub struct Token {
    /// as the server knows it
    pub inside: Id,
    /// as the client wrote it, raw JSON; `None`: progress does not go to the client
    pub outside: Option<Box<str>>,
}

/// A request that the server has to answer.
#[derive(Debug)]
pub struct Pending {
    /// `None`: nobody waits (any more)
    pub asker: Option<Asker>,
    /// the server knows it by another id than the session
    pub renamed: bool,
    pub token: Option<Token>,
    pub what: What,
}

impl Pending {
    /// A request of our own.
    pub fn own(what: What) -> Self {
        Pending { asker: None, renamed: false, token: None, what }
    }

    /// The job of a call that nobody waits for any more.
    pub fn job(&self) -> Option<&Arc<Job>> {
        match &self.what {
            What::Call(call) => call.job.as_ref(),
            _ => None,
        }
    }

    /// Not lost with the server: a call that still waits in line, and a subscription, which is
    /// sent again to the next one.
    pub fn survives_the_server(&self) -> bool {
        match &self.what {
            What::Call(call) => call.is_in_line(),
            What::Listen { .. } => true,
            _ => false,
        }
    }
}

/// What the answer means to us.
#[derive(Debug)]
pub enum What {
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
    Catalog,
    /// a step of the handshake with a server that was started again
    Revival(Step),
}

/// The requests by the id that the server knows.
#[derive(Default)]
pub struct Pendings {
    by_id: HashMap<Id, Pending>,
    /// the session's name to the server's, where they differ
    renamed: HashMap<Id, Id>,
    tokens: HashMap<Id, Id>,
    /// ids and tokens of requests that were taken back: the server may answer all the same
    spent: Recent,
    last_own: i64,
    calls: usize,
}

/// The last so many ids.
#[derive(Default)]
pub struct Recent {
    ids: HashSet<Id>,
    order: VecDeque<Id>,
}

impl Recent {
    const MOST: usize = 1024;

    pub fn insert(&mut self, id: Id) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id);
        }
        if self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub fn contains(&self, id: &Id) -> bool {
        !self.ids.is_empty() && self.ids.contains(id)
    }
}

impl Pendings {
    /// The id under which a request of the client goes to the server: its own unless that is in
    /// use.
    pub fn inside_id(&mut self, outside: &Id) -> Id {
        let taken = self.by_id.contains_key(outside) || self.spent.contains(outside);
        if taken { self.own_id() } else { outside.clone() }
    }

    /// The token under which progress is asked for inside.
    pub fn inside_token(&mut self, outside: &Id) -> Id {
        let taken = self.tokens.contains_key(outside) || self.spent.contains(outside);
        if taken { self.own_id() } else { outside.clone() }
    }

    /// An id or token of our own.
    pub fn own_id(&mut self) -> Id {
        loop {
            self.last_own += 1;
            let id = Id::Number(OWN_IDS + self.last_own);
            if !self.by_id.contains_key(&id) && !self.tokens.contains_key(&id) {
                return id;
            }
        }
    }

    pub fn insert(&mut self, inside: Id, pending: Pending) {
        if let (true, Some(asker)) = (pending.renamed, &pending.asker) {
            self.renamed.insert(asker.key.clone(), inside.clone());
        }
        if let Some(token) = &pending.token {
            self.tokens.insert(token.inside.clone(), inside.clone());
        }
        self.calls += usize::from(matches!(pending.what, What::Call(_)));
        self.by_id.insert(inside, pending);
    }

    pub fn get_mut(&mut self, inside: &Id) -> Option<&mut Pending> {
        self.by_id.get_mut(inside)
    }

    pub fn get(&self, inside: &Id) -> Option<&Pending> {
        self.by_id.get(inside)
    }

    pub fn remove(&mut self, inside: &Id) -> Option<Pending> {
        let mut pending = self.by_id.remove(inside)?;
        self.calls -= usize::from(matches!(pending.what, What::Call(_)));
        if let Some(token) = &pending.token {
            self.tokens.remove(&token.inside);
        }
        let asker = pending.asker.take();
        self.forget_name(pending.renamed, asker.as_ref(), inside);
        pending.asker = asker;
        Some(pending)
    }

    /// Takes back a request that the server may still answer: its names are not used again soon.
    pub fn withdraw(&mut self, inside: &Id) -> Option<Pending> {
        let pending = self.remove(inside)?;
        self.spent.insert(inside.clone());
        if let Some(token) = &pending.token {
            self.spent.insert(token.inside.clone());
        }
        Some(pending)
    }

    /// Takes the asker out: nobody waits any more, and progress stays inside.
    pub fn detach(&mut self, inside: &Id) -> Option<Asker> {
        let pending = self.by_id.get_mut(inside)?;
        let asker = pending.asker.take();
        let renamed = pending.renamed;
        if let Some(token) = &mut pending.token {
            token.outside = None;
        }
        self.forget_name(renamed, asker.as_ref(), inside);
        asker
    }

    fn forget_name(&mut self, renamed: bool, asker: Option<&Asker>, inside: &Id) {
        if renamed
            && let Some(asker) = asker
            && self.renamed.get(&asker.key) == Some(inside)
        {
            self.renamed.remove(&asker.key);
        }
    }

    /// The server's id of the request that a client still waits for under this id.
    pub fn asked_as(&self, outside: &Id) -> Option<Id> {
        if let Some(inside) = self.renamed.get(outside) {
            return Some(inside.clone());
        }
        let pending = self.by_id.get(outside)?;
        (!pending.renamed && pending.asker.is_some()).then(|| outside.clone())
    }

    /// The server that had the subscriptions is gone.
    pub fn mark_lost_listens(&mut self) {
        for pending in self.by_id.values_mut() {
            if let What::Listen { lost, .. } = &mut pending.what {
                *lost = true;
            }
        }
    }

    /// Whether the server knows a request by this id.
    pub fn contains(&self, inside: &Id) -> bool {
        self.by_id.contains_key(inside)
    }

    /// The request that a progress token belongs to.
    pub fn by_token(&mut self, token: &Id) -> Option<&mut Pending> {
        self.by_id.get_mut(self.tokens.get(token)?)
    }

    /// Where the newest request that wants log lines is answered (2026-07-28).
    pub fn newest_that_wants_logs(&self) -> Option<&Reply> {
        let askers = self.by_id.values().filter_map(|pending| pending.asker.as_ref());
        let wanting = askers.filter(|asker| asker.reply.wants_logs());
        wanting.max_by_key(|asker| &asker.key).map(|asker| &asker.reply)
    }

    /// Calls that the server has, or that wait for it.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Whether the server still has to answer the client's opening.
    pub fn any_opening(&self) -> bool {
        let opens = |pending: &Pending| matches!(pending.what, What::Initialize | What::Discover);
        self.by_id.values().any(opens)
    }

    /// Whether a client waits for anything that has an end, and is still there.
    pub fn any_asked(&self) -> bool {
        let waits = |pending: &Pending| {
            let asker = pending.asker.as_ref();
            asker.is_some_and(|asker| asker.reply.is_open())
                && !matches!(pending.what, What::Listen { .. })
        };
        self.by_id.values().any(waits)
    }

    pub fn ids(&self) -> Vec<Id> {
        self.by_id.keys().cloned().collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Id, &Pending)> {
        self.by_id.iter()
    }
}

/// Gives a client's progress token its name inside. `raw` is a slice of the message.
pub(super) fn name_token(
    state: &mut State,
    message: &Message,
    raw: &str,
    edits: &mut Edits,
) -> Token {
    let outside = Id::parse(raw).expect("progress_token() checked it");
    let inside = state.pending.inside_token(&outside);
    if inside != outside {
        edits.replace(message.text, raw, inside.to_json());
    }
    Token { inside, outside: Some(raw.into()) }
}
