//! Who may see a job (contract §10).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The caller of tools, as far as jobs depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Caller {
    /// an identity, or [`ANONYMOUS`]; a full id gives access to all jobs of the same principal
    principal: Arc<str>,
    /// lists, prefixes and joins are about jobs of the same scope; `None`: about none
    job_scope: Option<Arc<str>>,
}

impl Caller {
    /// The caller over stdio: the user who runs the proxy.
    pub(crate) fn local() -> Self {
        Self::known("stdio")
    }

    /// A caller with an identity, by the keyed digest of it.
    pub(crate) fn known(principal: &str) -> Self {
        let principal: Arc<str> = principal.into();
        Caller { job_scope: Some(principal.clone()), principal }
    }

    /// A caller without an identity, in a session that this caller alone knows. Any other caller
    /// without an identity may read its jobs by their full ids.
    pub(crate) fn of_session(session: &str) -> Self {
        Caller { principal: ANONYMOUS.into(), job_scope: Some(session.into()) }
    }

    /// A caller of whom nothing is known (modern era, no identity).
    pub(crate) fn anonymous() -> Self {
        Caller { principal: ANONYMOUS.into(), job_scope: None }
    }

    /// Whether a full id of a job of `other` gives this caller access to it.
    pub(crate) fn may_open_jobs_of(&self, other: &Caller) -> bool {
        self.principal == other.principal
    }

    /// The identity, or one for all callers without; limits and time-outs are kept for each.
    pub(crate) fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// Whether the caller has an identity; else only full ids are accepted (§4.4).
    pub(crate) fn is_known(&self) -> bool {
        &*self.principal != ANONYMOUS
    }

    /// By what this caller's jobs are listed and joined; `None` where they can't be told from
    /// others'.
    pub(crate) fn job_scope(&self) -> Option<&Arc<str>> {
        self.job_scope.as_ref()
    }
}

/// The principal of callers without an identity; no digest has this form.
const ANONYMOUS: &str = "anonymous";
