//! What holds for a tool, for a client, and for one call (contract §3, "Which budget holds").

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::clients;
use super::error::Problem;
use super::raw::{ClientSection, ToolSection};
use super::sections::Sections;
use super::value::{Budget, Duplicates, ExpectedDuration, OnClientCancel};

/// The budget where nothing else is known: below the 30 s of the strictest common clients.
const DEFAULT_BUDGET: Budget = Budget::After(Duration::from_secs(25));

/// Where a budget comes from. Its text is what `unhurry check` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The section of `[tools]` with this pattern.
    Tools(Arc<str>),
    /// The section of `[clients]` with this pattern.
    Clients(Arc<str>),
    /// `[defaults]`, set by the user in the file, the environment or with a flag.
    Defaults,
    /// The table of known clients, under this name.
    BuiltIn(&'static str),
    /// Nobody said anything.
    Default,
    /// The client gave up before (contract §6).
    Learned,
    /// The caller's own wish (contract §4.1).
    Caller,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Tools(pattern) => write!(f, "[tools.{pattern:?}]"),
            Source::Clients(pattern) => write!(f, "[clients.{pattern:?}]"),
            Source::Defaults => f.write_str("[defaults]"),
            Source::BuiltIn(name) => write!(f, "built-in for {name}"),
            Source::Default => f.write_str("default"),
            Source::Learned => f.write_str("learned"),
            Source::Caller => f.write_str("asked by the caller"),
        }
    }
}

/// What holds for one tool: its section of `[tools]`, each missing key from `[defaults]`, else the
/// default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPolicy {
    /// Set only where the tool's own section sets it.
    pub answer_within: Option<(Budget, Source)>,
    /// The usual duration, where the user gave one.
    pub expected: Option<Duration>,
    /// An upstream call older than this is cancelled; more than 0.
    pub max_runtime: Duration,
    /// An unfetched result is kept this long.
    pub result_ttl: Duration,
    /// A result is kept this long after its first fetch.
    pub fetched_ttl: Duration,
    /// How a client's cancel is read.
    pub on_client_cancel: OnClientCancel,
    /// What happens to equal calls.
    pub duplicates: Duplicates,
    /// An unfetched result is given to an equal call this long after its end.
    pub join_window: Duration,
    /// Upstream calls at a time; 0 is no limit.
    pub max_concurrent: usize,
    /// Whether a call without a progress token gets one of ours (contract §1.1.4).
    pub ask_progress: bool,
}

impl Default for ToolPolicy {
    fn default() -> Self {
        Self {
            answer_within: None,
            expected: None,
            max_runtime: Duration::from_hours(1),
            result_ttl: Duration::from_hours(24),
            fetched_ttl: Duration::from_hours(1),
            on_client_cancel: OnClientCancel::Auto,
            duplicates: Duplicates::Join,
            join_window: Duration::from_mins(5),
            max_concurrent: 0,
            ask_progress: false,
        }
    }
}

impl ToolPolicy {
    /// This policy with the keys that `section` sets; `answer_within` is left to the caller, who
    /// knows whose it is.
    fn with(mut self, section: &ToolSection) -> Self {
        set(&mut self.expected, section.expected.map(|ExpectedDuration(expected)| expected));
        set(&mut self.max_runtime, section.max_runtime);
        set(&mut self.result_ttl, section.result_ttl);
        set(&mut self.fetched_ttl, section.fetched_ttl);
        set(&mut self.on_client_cancel, section.on_client_cancel);
        set(&mut self.duplicates, section.duplicates);
        set(&mut self.join_window, section.join_window);
        set(&mut self.max_concurrent, section.max_concurrent);
        set(&mut self.ask_progress, section.ask_progress);
        self
    }

    fn with_section(self, pattern: &str, section: &ToolSection) -> Self {
        let source = Source::Tools(pattern.into());
        let answer_within = section.answer_within.map(|budget| (budget, source));
        Self { answer_within, ..self.with(section) }
    }
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

/// What holds for one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPolicy {
    /// Its budget where neither the tool nor the caller says otherwise.
    pub budget: Budget,
    /// Where `budget` comes from.
    pub source: Source,
    /// Set only where `[clients]` sets `answer_within`: nothing may take longer.
    pub limit: Option<Duration>,
    /// A longer result is read in pages of this many bytes.
    pub page_bytes: usize,
}

/// The policies of all tools and clients.
#[derive(Debug)]
pub struct Policies {
    tools: Sections<ToolPolicy>,
    any_tool: ToolPolicy,
    clients: Sections<ClientSection>,
    default_budget: Option<Budget>,
    page_bytes: usize,
}

impl Policies {
    /// The policies that these sections make.
    ///
    /// # Errors
    /// The first pattern that is no glob.
    pub(super) fn new(
        defaults: &ToolSection,
        tools: BTreeMap<String, ToolSection>,
        clients: BTreeMap<String, ClientSection>,
        page_bytes: usize,
    ) -> Result<Self, Problem> {
        let any_tool = ToolPolicy::default().with(defaults);
        let compile = |(pattern, section): (String, ToolSection)| {
            let policy = any_tool.clone().with_section(&pattern, &section);
            (pattern, policy)
        };
        Ok(Self {
            tools: Sections::new("tools", tools.into_iter().map(compile).collect())?,
            any_tool,
            clients: Sections::new("clients", clients)?,
            default_budget: defaults.answer_within,
            page_bytes,
        })
    }

    /// What holds for the tool of this name, the server's own one.
    pub fn tool(&self, name: &str) -> ToolPolicy {
        self.tools.get(name).map_or(&self.any_tool, |(_, policy)| policy).clone()
    }

    /// The patterns of `[tools]`.
    pub fn tool_patterns(&self) -> impl Iterator<Item = &str> {
        self.tools.patterns()
    }

    /// Whether the section with this pattern holds for one of these tools.
    pub fn applies(&self, pattern: &str, tools: &[String]) -> bool {
        tools.iter().any(|tool| self.tools.get(tool).is_some_and(|(used, _)| used == pattern))
    }

    /// What holds for the client with this `clientInfo.name`.
    pub fn client(&self, name: Option<&str>) -> ClientPolicy {
        let name = name.map(clients::own_name);
        let section = name.and_then(|name| self.clients.get(name));
        let own = section.and_then(|(pattern, client)| Some((client.answer_within?, pattern)));
        let (budget, source) = match own {
            Some((budget, pattern)) => (budget, Source::Clients(pattern.into())),
            None => self.budget_without_section(name),
        };
        let limit = own.and_then(|(budget, _)| budget.duration());
        let page_bytes = section.and_then(|(_, client)| client.page_bytes);
        let page_bytes = page_bytes.map_or(self.page_bytes, |size| size.in_memory());
        ClientPolicy { budget, source, limit, page_bytes }
    }

    fn budget_without_section(&self, name: Option<&str>) -> (Budget, Source) {
        if let Some(budget) = self.default_budget {
            return (budget, Source::Defaults);
        }
        match name.and_then(clients::budget) {
            Some((budget, known)) => (Budget::After(budget), Source::BuiltIn(known)),
            None => (DEFAULT_BUDGET, Source::Default),
        }
    }

    /// The budget of one call, and where it comes from (contract §3, "Which budget holds").
    ///
    /// `wish` is what the caller asked for (§4.1), `learned` what this client has shown that it
    /// can stand (§6).
    pub fn budget(
        &self,
        tool: &ToolPolicy,
        client: &ClientPolicy,
        wish: Option<Duration>,
        learned: Option<Duration>,
    ) -> (Budget, Source) {
        let configured = tool.answer_within.clone();
        let (budget, source) = configured.unwrap_or((client.budget, client.source.clone()));
        let Budget::After(budget) = budget else { return (Budget::Never, source) };
        let chosen = wish.map_or((budget, source), |wish| (wish, Source::Caller));
        let limits = [
            client.limit.map(|limit| (limit, client.source.clone())),
            learned.map(|limit| (limit, Source::Learned)),
        ];
        // `min_by_key` keeps the first of equals: a limit is named only where it shortens.
        let all = std::iter::once(chosen.clone()).chain(limits.into_iter().flatten());
        let (budget, source) = all.min_by_key(|(budget, _)| *budget).unwrap_or(chosen);
        (Budget::After(budget), source)
    }
}
