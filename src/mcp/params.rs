//! The `params` of a request, one level deep, and its `_meta`.

use std::borrow::Cow;
use std::time::Duration;

use crate::rpc::id::Id;
use crate::rpc::object::Members;
use crate::rpc::string::string;

use super::meta;

/// Parsed `params`; empty where there are none, or where they are no object.
#[derive(Default)]
pub(crate) struct Params<'a> {
    members: Members<'a>,
    meta: Members<'a>,
    /// they are there, and no object
    malformed: bool,
}

impl<'a> Params<'a> {
    /// From the raw text.
    pub(crate) fn parse(raw: Option<&'a str>) -> Self {
        let members = raw.and_then(Members::parse);
        let malformed = raw.is_some() && members.is_none();
        let members = members.unwrap_or_default();
        let meta = members.object("_meta").unwrap_or_default();
        Params { members, meta, malformed }
    }

    /// Whether there are none, or an object with no other members than these.
    pub(crate) fn has_only(&self, keys: &[&str]) -> bool {
        !self.malformed && self.members.iter().all(|member| keys.contains(&&*member.name()))
    }

    /// The raw id of the subscription that a notification belongs to (2026-07-28).
    pub(crate) fn subscription_id(&self) -> Option<&'a str> {
        self.meta.get(meta::SUBSCRIPTION_ID)
    }

    /// A member as raw JSON.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.members.get(key)
    }

    /// A member that is a string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.members.text(key)
    }

    /// The raw progress token, where it is a valid one.
    pub(crate) fn progress_token(&self) -> Option<&'a str> {
        self.meta.get(meta::PROGRESS_TOKEN).filter(|raw| Id::parse(raw).is_some())
    }

    /// The revision that a modern request names; `None` in the legacy era.
    pub(crate) fn protocol_version(&self) -> Option<Cow<'a, str>> {
        self.meta.get(meta::PROTOCOL_VERSION).and_then(string)
    }

    /// The raw `clientInfo` of a modern request.
    pub(crate) fn client_info(&self) -> Option<&'a str> {
        self.meta.get(meta::CLIENT_INFO)
    }

    /// The raw `clientCapabilities` of a modern request.
    pub(crate) fn client_capabilities(&self) -> Option<&'a str> {
        self.meta.get(meta::CLIENT_CAPABILITIES)
    }

    /// Whether a modern request asks for log messages.
    pub(crate) fn wants_logs(&self) -> bool {
        self.meta.get(meta::LOG_LEVEL).is_some()
    }

    /// Whether the caller sets the budget of this call, legally or not.
    pub(crate) fn has_answer_within(&self) -> bool {
        self.meta.get(meta::ANSWER_WITHIN).is_some()
    }

    /// The budget that the caller sets for this call (contract §4.1); `None` where it is no number
    /// of seconds that is at least 0.
    pub(crate) fn answer_within(&self) -> Option<Duration> {
        let raw = self.meta.get(meta::ANSWER_WITHIN)?;
        let seconds: f64 = string(raw).unwrap_or(Cow::Borrowed(raw)).trim().parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}
