//! What was typed: every key of the configuration that works (contract §3), each of the right form,
//! none with a default. `policy.rs`, `jobs.rs`, `server.rs` and `upstream.rs` turn it into what the
//! program uses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};
use serde::Deserialize;

use super::value::{
    BearerToken, Budget, Duplicates, ExpectedDuration, Headers, Host, OnClientCancel, Origin,
    PageBytes, Size, StoreKind, Text, ToolPrefix, Transport, at_least_one, positive, text,
};

/// The whole configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct RawConfig {
    pub upstream: UpstreamSection,
    pub server: ServerSection,
    pub defaults: ToolSection,
    pub tools: BTreeMap<String, ToolSection>,
    pub clients: BTreeMap<String, ClientSection>,
    pub jobs: JobsSection,
}

/// `[upstream]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct UpstreamSection {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    #[serde(deserialize_with = "text")]
    pub url: Option<Uri>,
    #[serde(deserialize_with = "text")]
    pub transport: Option<Transport>,
    pub headers: Headers,
    pub forward_headers: Vec<Text<HeaderName>>,
    #[serde(deserialize_with = "positive")]
    pub start_timeout: Option<Duration>,
}

/// `[server]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct ServerSection {
    #[serde(deserialize_with = "text")]
    pub listen: Option<SocketAddr>,
    pub allowed_origins: Vec<Text<Origin>>,
    pub allowed_hosts: Option<Vec<Text<Host>>>,
    #[serde(deserialize_with = "text")]
    pub identity_header: Option<HeaderName>,
    #[serde(deserialize_with = "text")]
    pub token: Option<BearerToken>,
    #[serde(deserialize_with = "at_least_one")]
    pub max_sessions: Option<usize>,
    #[serde(deserialize_with = "positive")]
    pub session_idle: Option<Duration>,
    #[serde(deserialize_with = "text")]
    pub drain_timeout: Option<Duration>,
    #[serde(deserialize_with = "text")]
    pub max_message: Option<Size<1024>>,
}

/// `[defaults]`, or one section of `[tools]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct ToolSection {
    #[serde(deserialize_with = "text")]
    pub answer_within: Option<Budget>,
    #[serde(deserialize_with = "text")]
    pub expected: Option<ExpectedDuration>,
    #[serde(deserialize_with = "positive")]
    pub max_runtime: Option<Duration>,
    #[serde(deserialize_with = "text")]
    pub result_ttl: Option<Duration>,
    #[serde(deserialize_with = "text")]
    pub fetched_ttl: Option<Duration>,
    #[serde(deserialize_with = "text")]
    pub on_client_cancel: Option<OnClientCancel>,
    #[serde(deserialize_with = "text")]
    pub duplicates: Option<Duplicates>,
    #[serde(deserialize_with = "text")]
    pub join_window: Option<Duration>,
    pub max_concurrent: Option<usize>,
    pub ask_progress: Option<bool>,
}

/// One section of `[clients]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct ClientSection {
    #[serde(deserialize_with = "text")]
    pub answer_within: Option<Budget>,
    #[serde(deserialize_with = "text")]
    pub page_bytes: Option<PageBytes>,
}

/// `[jobs]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct JobsSection {
    #[serde(deserialize_with = "text")]
    pub store: Option<StoreKind>,
    #[serde(deserialize_with = "text")]
    pub tool_prefix: Option<ToolPrefix>,
    #[serde(deserialize_with = "text")]
    pub page_bytes: Option<PageBytes>,
    pub max_running: Option<usize>,
    #[serde(deserialize_with = "text")]
    pub max_stored: Option<Size>,
    pub announce: Option<bool>,
}
