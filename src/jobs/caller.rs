//! Who may see a job (contract §10).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Whoever made a call, and asks for jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Caller {
    /// whose jobs a full id gives access to
    principal: Arc<str>,
    /// whose jobs lists, prefixes and joins are about; `None`: nobody's
    job_scope: Option<Arc<str>>,
}

impl Caller {
    /// Over stdio: the user who runs the proxy.
    pub(crate) fn local() -> Self {
        Self::known("stdio")
    }

    /// A caller with an identity, by the keyed digest of it.
    pub(crate) fn known(principal: &str) -> Self {
        let principal: Arc<str> = principal.into();
        Caller { job_scope: Some(principal.clone()), principal }
    }

    /// A caller without an identity, in a session that they alone know. Any other one without an
    /// identity may read their jobs who knows the full id.
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

    /// What limits and lessons are kept by: the identity, or one for all who have none.
    pub(crate) fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// Whether it is known who this is; else only full ids are accepted (§4.4).
    pub(crate) fn is_known(&self) -> bool {
        &*self.principal != ANONYMOUS
    }

    /// What this caller's own jobs are listed and joined by, where they can be told from others'.
    pub(crate) fn job_scope(&self) -> Option<&Arc<str>> {
        self.job_scope.as_ref()
    }
}

/// No digest has this form.
const ANONYMOUS: &str = "anonymous";
