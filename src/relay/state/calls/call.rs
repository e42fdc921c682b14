//! A `tools/call` that the server has, or that waits for its turn.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::config::ToolPolicy;
use crate::jobs::live::{LiveJob, Place};
use crate::jobs::record::Outcome;
use crate::jobs::wording;
use crate::mcp::params::Params;
use crate::relay::state::client::Client;
use crate::relay::state::deadlines::Slot;
use crate::rpc::message::Message;
use crate::rpc::object::Members;
use crate::rpc::string::{quoted, string};
use crate::upstream::{Headers, Outgoing};

/// The longest member of progress that is kept with a job, in bytes.
const PROGRESS: usize = 1024;

/// A call that the server has, or that waits for its turn.
pub(crate) struct Call {
    pub tool: Arc<str>,
    pub policy: Arc<ToolPolicy>,
    pub client: Arc<Client>,
    /// when the request arrived
    pub received: Instant,
    /// the raw `params`, as the client wrote them
    pub params: Bytes,
    /// the headers that go to the server with it over HTTP
    pub headers: Headers,
    pub deadline: Option<Slot>,
    /// the message itself while the call waits in line
    pub queued: Option<Outgoing>,
    /// its place in line, where its tool has `max_concurrent`
    pub place: Option<Place>,
    /// the last progress, raw JSON
    pub progress: Option<Box<str>>,
    /// set once the call has become a job
    pub job: Option<Arc<LiveJob>>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Call({})", self.tool)
    }
}

impl Call {
    /// Whether it waits in line (§3 `max_concurrent`).
    pub(crate) fn is_queued(&self) -> bool {
        self.queued.is_some()
    }

    /// Notes the last progress of the server, for the job; the token is left out.
    pub(crate) fn set_progress(&mut self, params: &Params) {
        let known = ["progress", "total", "message"];
        let members = known.iter().filter_map(|key| Some((key, bounded(params.get(key)?)?)));
        let members: Vec<_> = members.map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let progress: Box<str> = format!("{{{}}}", members.join(",")).into();
        match &self.job {
            Some(job) => job.set_progress(progress),
            None => self.progress = Some(progress),
        }
    }

    /// Whether this result is `input_required` (2026-07-28).
    pub(crate) fn asks_for_input(&self, result: Option<&str>) -> bool {
        let kind = || Members::parse(result?)?.text("resultType");
        self.client.is_modern() && kind().is_some_and(|kind| kind == "input_required")
    }
}

#[cfg(test)]
impl Call {
    /// A call that nobody has sent.
    pub(crate) fn for_test(params: &str, client: Arc<Client>, policy: ToolPolicy) -> Self {
        Call {
            tool: "t".into(),
            policy: Arc::new(policy),
            client,
            received: Instant::now(),
            params: Bytes::copy_from_slice(params.as_bytes()),
            headers: None,
            deadline: None,
            queued: None,
            place: None,
            progress: None,
            job: None,
        }
    }
}

/// A member of a progress notification, short enough to be kept with a job.
fn bounded(raw: &str) -> Option<Cow<'_, str>> {
    if raw.len() <= PROGRESS {
        return Some(Cow::Borrowed(raw));
    }
    let text = string(raw)?;
    let end = text.floor_char_boundary(PROGRESS / 2);
    Some(Cow::Owned(quoted(&format!("{}…", &text[..end]))))
}

/// What an answer of the server means for a job, as a part of the message.
pub(crate) fn outcome_of(message: &Message) -> Outcome {
    let part = |raw: &str| message.line.slice_ref(raw.as_bytes());
    match (message.envelope.result, message.envelope.error) {
        (Some(result), _) => Outcome::Result(part(result)),
        (None, Some(error)) => Outcome::Error(part(error)),
        (None, None) => Outcome::Lost(wording::NO_RESULT.into()),
    }
}
