//! The policies of tools, kept so that the globs of the configuration are matched once for each
//! tool.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::{Policies, ToolPolicy};

/// Policies that are remembered; names come from the client, so there must be a bound.
const REMEMBERED: usize = 1024;
/// Tools with longer names are looked up each time.
const LONG_NAME: usize = 256;

/// Policies by the names of their tools.
#[derive(Default)]
pub(crate) struct KnownPolicies(HashMap<Arc<str>, Arc<ToolPolicy>>);

impl KnownPolicies {
    /// The policy of a tool, with the tool's name.
    pub(crate) fn get(&mut self, policies: &Policies, name: &str) -> (Arc<str>, Arc<ToolPolicy>) {
        if let Some((tool, policy)) = self.0.get_key_value(name) {
            return (tool.clone(), policy.clone());
        }
        let (tool, policy): (Arc<str>, _) = (name.into(), Arc::new(policies.tool(name)));
        if name.len() <= LONG_NAME {
            if self.0.len() >= REMEMBERED {
                self.0.clear();
            }
            self.0.insert(tool.clone(), policy.clone());
        }
        (tool, policy)
    }
}
