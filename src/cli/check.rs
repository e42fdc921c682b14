//! `unhurry check`: is the configuration right, does the server start, and what holds for each of
//! its tools?

use std::time::Duration;

use crate::config::{Budget, Config, Duplicates, OnClientCancel, ToolPolicy};
use crate::jobs::handle::JobToolNames;
use crate::logging::Stderr;
use crate::upstream::Environment;

use super::probe::probe;
use super::{Context, UNAVAILABLE, allow_lists};

/// Clients cut or refuse longer names, their own prefix included.
const LONG_NAME: usize = 50;

/// Prints the report. Returns the exit code.
pub(crate) async fn check(context: Context) -> u8 {
    let server = context.server(&Stderr::nowhere());
    let Context { config, environment, .. } = context;
    match &config.file {
        Some(file) => println!("config   {}", file.display()),
        None => println!("config   none, the defaults hold"),
    }
    let server = match probe(server, &config).await {
        Ok(server) => server,
        Err(problem) => {
            eprintln!("unhurry: {problem}");
            return UNAVAILABLE;
        }
    };
    println!("server   {} ({}), {} tools", server.name, server.protocol, server.tools.len());
    let names = names(&config, &server.tools);
    println!("adds     {}, {}", names.get, names.cancel);
    print_tools(&config, &server.tools);
    for warning in warnings(&config, &server.tools, &names, &environment) {
        println!("warning: {warning}");
    }
    0
}

/// The names that our own tools get beside those of the server.
fn names(config: &Config, tools: &[String]) -> JobToolNames {
    JobToolNames::avoiding(&config.jobs.tool_prefix, |name| tools.iter().any(|tool| tool == name))
}

fn print_tools(config: &Config, tools: &[String]) {
    let width = tools.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    if !tools.is_empty() {
        println!("\n{:width$}  {:8}  FROM", "TOOL", "BUDGET");
    }
    let client = config.policy.client(None);
    for name in tools {
        let policy = config.policy.tool(name);
        let (budget, source) = config.policy.budget(&policy, &client, None, None);
        let budget = match budget {
            Budget::After(budget) => shown(budget),
            Budget::Never => "never".to_owned(),
        };
        let line = format!("{name:width$}  {budget:8}  {source}{}", unusual(&policy));
        println!("{line}");
    }
    if !tools.is_empty() {
        println!();
    }
}

/// What differs from the defaults.
fn unusual(policy: &ToolPolicy) -> String {
    let usual = ToolPolicy::default();
    let mut notes = Vec::new();
    let mut note = |differs: bool, text: String| {
        if differs {
            notes.push(text);
        }
    };
    note(
        policy.max_runtime != usual.max_runtime,
        format!("max_runtime {}", shown(policy.max_runtime)),
    );
    note(policy.result_ttl != usual.result_ttl, format!("result_ttl {}", shown(policy.result_ttl)));
    note(
        policy.fetched_ttl != usual.fetched_ttl,
        format!("fetched_ttl {}", shown(policy.fetched_ttl)),
    );
    note(
        policy.join_window != usual.join_window,
        format!("join_window {}", shown(policy.join_window)),
    );
    note(policy.max_concurrent != 0, format!("max_concurrent {}", policy.max_concurrent));
    note(policy.duplicates == Duplicates::Run, "duplicates run".into());
    note(policy.on_client_cancel == OnClientCancel::Cancel, "on_client_cancel cancel".into());
    note(policy.on_client_cancel == OnClientCancel::Detach, "on_client_cancel detach".into());
    note(policy.ask_progress, "ask_progress".into());
    if let Some(expected) = policy.expected {
        notes.push(format!("expected {}", shown(expected)));
    }
    if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) }
}

/// A duration as the config file spells it.
fn shown(duration: Duration) -> String {
    let signed = jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX);
    format!("{signed:#}").replace(' ', "")
}

fn warnings(
    config: &Config,
    tools: &[String],
    names: &JobToolNames,
    environment: &Environment,
) -> Vec<String> {
    let offered = tools.iter().chain([&names.get, &names.cancel]);
    let long = offered.filter(|name| name.chars().count() > LONG_NAME);
    let mut warnings: Vec<_> = long
        .map(|name| {
            format!(
                "the name {name:?} is longer than {LONG_NAME} characters: some clients hide such tools"
            )
        })
        .collect();
    let unused =
        config.policy.tool_patterns().filter(|pattern| !config.policy.applies(pattern, tools));
    warnings
        .extend(unused.map(|pattern| format!("[tools.{pattern:?}] fits no tool of the server")));
    let working_directory = std::env::current_dir().unwrap_or_default();
    warnings.extend(allow_lists::warnings(environment, &working_directory, names));
    warnings
}
