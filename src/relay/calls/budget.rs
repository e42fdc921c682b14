//! How long a call may take before its answer is a handle (contract §3 "Which budget holds").

use std::time::Duration;

use crate::config::{Budget, ToolPolicy};
use crate::mcp::params::Params;
use crate::relay::session::Session;
use crate::relay::state::client::Client;

/// How long a call with a budget of zero waits, so that an immediate refusal of the server still
/// reaches the caller (§4.1).
const ZERO_BUDGET: Duration = Duration::from_millis(250);

impl Session {
    /// The budget of one call; `None`: the call is never deferred.
    pub(super) fn budget_of_call(
        &self,
        client: &Client,
        policy: &ToolPolicy,
        params: &Params,
    ) -> Option<Duration> {
        // A call with `params.task` is never deferred (§1.1.4).
        if params.get("task").is_some() {
            return None;
        }
        let learned = self.time_outs.limit(&self.caller, client);
        let (budget, _) =
            self.config.policy.budget(policy, &client.policy, params.answer_within(), learned);
        budget.duration().map(effective_budget)
    }

    /// The budget of a client's calls where neither tool nor caller says otherwise; `None`: they
    /// are never deferred.
    pub(in crate::relay) fn budget_of_client(&self, client: &Client) -> Option<Duration> {
        let Budget::After(budget) = client.policy.budget else { return None };
        let learned = self.time_outs.limit(&self.caller, client);
        Some(effective_budget(learned.map_or(budget, |learned| learned.min(budget))))
    }
}

/// A budget of zero still waits a little (§4.1).
fn effective_budget(budget: Duration) -> Duration {
    if budget.is_zero() { ZERO_BUDGET } else { budget }
}
