//! contract §3: which section holds for a tool or a client, and "Which budget holds".

use unhurry::config::{Budget, Config, Duplicates, Overrides, Policies, Source};

use super::{seconds, written};

/// The policies of a config file with this text.
fn policies(text: &str) -> Policies {
    let command = vec!["server".into()];
    let file = Some(written("budget", text));
    let overrides = Overrides { config_file: file, command, ..Overrides::default() };
    Config::load(&overrides, &[]).unwrap().policy
}

fn after(s: u64) -> Budget {
    Budget::After(seconds(s))
}

/// The budget of a call of `tool` by `client`, in seconds, and where it comes from.
fn budget(
    policies: &Policies,
    tool: &str,
    client: &str,
    wish: Option<u64>,
    learned: Option<u64>,
) -> (Budget, String) {
    let (tool, client) = (policies.tool(tool), policies.client(Some(client)));
    let (budget, source) = policies.budget(&tool, &client, wish.map(seconds), learned.map(seconds));
    (budget, source.to_string())
}

#[test]
fn s3_an_exact_name_beats_the_longest_glob_beats_defaults() {
    let policies = policies(
        r#"
        [defaults]
        max_concurrent = 1
        [tools."*"]
        max_concurrent = 2
        [tools."build_*"]
        max_concurrent = 3
        [tools."build_x"]
        max_concurrent = 4
        [tools."list/[ab]*.{x,y}"]
        max_concurrent = 5
        "#,
    );
    let concurrent = |name| policies.tool(name).max_concurrent;
    assert_eq!(concurrent("build_x"), 4);
    assert_eq!(concurrent("build_y"), 3);
    assert_eq!(concurrent("build"), 2);
    assert_eq!(concurrent("list/a/1.x"), 5);
    assert_eq!(concurrent("list/[ab]*.{x,y}"), 5);
}

#[test]
fn s3_a_section_sets_only_its_own_keys() {
    let policies = policies(
        r#"
        defaults.max_runtime = "3h"
        tools."*".duplicates = "run"
        tools."*".answer_within = "1s"
        tools."b*".max_concurrent = 2
        "#,
    );
    let tool = policies.tool("build");
    assert_eq!((tool.max_runtime, tool.max_concurrent), (seconds(3 * 3600), 2));
    assert_eq!((tool.duplicates, tool.answer_within), (Duplicates::Join, None));
}

#[test]
fn s3_the_clients_budget_is_clients_else_defaults_else_builtin_else_25s() {
    let nothing = policies("");
    let client = |policies: &Policies, name| {
        let client = policies.client(name);
        (client.budget, client.source.to_string(), client.limit)
    };
    assert_eq!(client(&nothing, Some("unknown")), (after(25), "default".into(), None));
    let codex = (after(45), "built-in for codex-mcp-client".into(), None);
    assert_eq!(client(&nothing, Some("codex-mcp-client")), codex);
    assert_eq!(client(&nothing, Some("codex-mcp-client-2")).0, after(25));
    let text = "defaults.answer_within = \"60s\"\nclients.\"codex*\".page_bytes = \"1KiB\"\n";
    let defaults = policies(text);
    let set = (after(60), "[defaults]".into(), None);
    assert_eq!(client(&defaults, Some("codex-mcp-client")), set);
    assert_eq!(client(&defaults, None), set);
    assert_eq!(defaults.client(Some("codex-mcp-client")).page_bytes, 1024);
    let text = "clients.\"codex*\".answer_within = \"9s\"\ndefaults.answer_within = \"60s\"\n";
    let clients = policies(text);
    let own = (after(9), "[clients.\"codex*\"]".into(), Some(seconds(9)));
    assert_eq!(client(&clients, Some("codex-mcp-client")), own);
    assert_eq!(client(&clients, None), set);
}

#[test]
fn s3_a_calls_budget_is_the_wish_else_tools_else_the_clients() {
    let policies = policies("tools.build.answer_within = \"60s\"\n");
    let tool = (after(60), "[tools.\"build\"]".into());
    assert_eq!(budget(&policies, "build", "x", None, None), tool);
    assert_eq!(budget(&policies, "other", "x", None, None), (after(25), "default".into()));
    let wish = (after(90), "asked by the caller".into());
    assert_eq!(budget(&policies, "build", "x", Some(90), None), wish);
    assert_eq!(budget(&policies, "other", "x", Some(0), None).0, after(0));
}

#[test]
fn s3_no_budget_is_longer_than_clients_or_learned() {
    let text = "tools.build.answer_within = \"60s\"\nclients.short.answer_within = \"4s\"\n";
    let policies = policies(text);
    let short = (after(4), "[clients.\"short\"]".into());
    assert_eq!(budget(&policies, "build", "short", None, None), short);
    assert_eq!(budget(&policies, "build", "short", Some(30), None), short);
    assert_eq!(budget(&policies, "other", "short", None, None), short);
    assert_eq!(budget(&policies, "build", "short", Some(2), None).0, after(2));
    assert_eq!(budget(&policies, "build", "short", None, Some(30)), short);
    let learned = (after(3), "learned".into());
    assert_eq!(budget(&policies, "build", "short", None, Some(3)), learned);
    assert_eq!(budget(&policies, "build", "x", Some(90), Some(3)), learned);
    assert_eq!(budget(&policies, "other", "x", None, Some(25)), (after(25), "default".into()));
}

#[test]
fn s3_never_is_exempt_from_wish_and_limits() {
    let text = "tools.build.answer_within = \"never\"\nclients.short.answer_within = \"4s\"\n";
    let policies = policies(text);
    let never = (Budget::Never, "[tools.\"build\"]".into());
    assert_eq!(budget(&policies, "build", "short", Some(1), Some(1)), never);
}

#[test]
fn s3_never_for_a_client_or_by_default_yields_only_to_tools() {
    let text = r#"
        defaults.answer_within = "never"
        tools.build.answer_within = "60s"
        clients.patient.answer_within = "never"
        "#;
    let policies = policies(text);
    let by_default = (Budget::Never, Source::Defaults.to_string());
    assert_eq!(budget(&policies, "other", "x", Some(1), Some(1)), by_default);
    let by_client = (Budget::Never, "[clients.\"patient\"]".into());
    assert_eq!(budget(&policies, "other", "patient", Some(1), None), by_client);
    assert_eq!(budget(&policies, "build", "patient", None, None).0, after(60));
    assert_eq!(policies.client(Some("patient")).limit, None);
}
