//! `unhurry check`: its report, its warnings, its exit codes (contract §2).

use serde_json::json;
use support::cli::Run;

#[test]
fn s2_check_reports_the_server_and_what_is_added() {
    let ran = Run::check(&[]).good();
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "config   none, the defaults hold");
    assert_eq!(lines[1], "server   fake-server (2025-11-25), 13 tools");
    assert_eq!(lines[2], "adds     job_get, job_cancel");
    assert_eq!(ran.tool("TOOL"), ["TOOL", "BUDGET", "FROM"]);
    assert_eq!(ran.tool("sleep"), ["sleep", "25s", "default"]);
    assert_eq!(ran.warnings(), [""; 0]);
}

#[test]
fn s2_check_prints_each_tool_with_its_effective_policy() {
    let run = Run::check(&[]).config(
        r#"
        defaults.answer_within = "10s"
        tools."s*".answer_within = "0s"
        tools.sleep.answer_within = "never"
        tools.echo.max_runtime = "2h"
        tools.echo.duplicates = "run"
        "#,
    );
    let ran = run.good();
    let file = run.path(".config/unhurry/config.toml");
    assert_eq!(ran.stdout.lines().next(), Some(&*format!("config   {}", file.display())));
    assert_eq!(ran.tool("script"), ["script", "0s", "[tools.\"s*\"]"]);
    assert_eq!(ran.tool("sleep"), ["sleep", "never", "[tools.\"sleep\"]"]);
    assert_eq!(ran.tool("big"), ["big", "10s", "[defaults]"]);
    let echo = ran.tool("echo").join(" ");
    assert_eq!(echo, "echo 10s [defaults] (max_runtime 2h, duplicates run)");
}

#[test]
fn s2_check_reads_a_modern_server_and_all_pages() {
    let ran = Run::check(&["--modern", "--page-size", "5"]).good();
    assert!(ran.stdout.contains("server   fake-server (2026-07-28), 13 tools"), "{}", ran.stdout);
    assert_eq!(ran.tool("close_stdout"), ["close_stdout", "25s", "default"]);
}

#[test]
fn s2_a_server_without_tools_is_no_fault() {
    let ran = Run::check(&["--no-tools"]).good();
    assert!(ran.stdout.contains("(2025-11-25), 0 tools"), "{}", ran.stdout);
}

#[test]
fn c81_check_warns_of_names_that_are_too_long_and_names_the_clash() {
    let long = "l".repeat(51);
    let tools = json!([{"name": "job_get"}, {"name": long}, {"name": "m".repeat(50)}]).to_string();
    let run = Run::check(&["--tools", "tools.json"]).file("tools.json", &tools);
    let ran = run.good();
    assert!(ran.stdout.contains("adds     unhurry_job_get, job_cancel"), "{}", ran.stdout);
    let words =
        format!("the name {long:?} is longer than 50 characters: some clients hide such tools");
    assert_eq!(ran.warnings(), [words]);
}

#[test]
fn s2_check_warns_of_a_pattern_that_fits_no_tool() {
    let run = Run::check(&[])
        .config("tools.\"build_*\".max_runtime = \"2h\"\ntools.\"e*\".max_concurrent = 1\n");
    assert_eq!(run.good().warnings(), ["[tools.\"build_*\"] fits no tool of the server"]);
}

#[test]
fn s2_check_warns_of_allow_lists_that_hide_our_tools() {
    let gemini = json!({"mcpServers": {
        "slow": {"command": "unhurry", "args": ["--", "server"], "includeTools": ["build", "job_cancel"]},
        "fine": {"command": "unhurry", "includeTools": ["job_get", "job_cancel"]},
        "other": {"command": "server", "includeTools": ["build"]},
    }});
    let codex = "[mcp_servers.slow]\ncommand = \"/opt/unhurry\"\nenabled_tools = [\"build\"]\n[mcp_servers.open]\ncommand = \"unhurry\"\n";
    let run = Run::check(&[]).file(".gemini/settings.json", &gemini.to_string());
    let run = run.file(".codex/config.toml", codex);
    let ran = run.good();
    let path = |name| run.path(name).display().to_string();
    assert_eq!(
        ran.warnings(),
        [
            format!(
                "{}: `includeTools` of server \"slow\" hides job_get: add it",
                path(".gemini/settings.json")
            ),
            format!(
                "{}: `enabled_tools` of server \"slow\" hides job_get and job_cancel: add them",
                path(".codex/config.toml")
            ),
        ]
    );
}

// Exit codes.

#[test]
fn s2_a_command_that_does_not_exist_is_69() {
    Run::new(&["check", "--", "no-such-server-here"]).unavailable(&["no-such-server-here"]);
}

#[test]
fn s2_a_server_that_ends_is_69_with_its_exit_code() {
    Run::check(&["--exit", "9"]).unavailable(&["no answer to initialize", "code 9"]);
}

#[test]
fn s2_a_usage_on_stdout_is_shown() {
    let words = ["Usage: ", "an argument is missing", "no JSON-RPC"];
    Run::check(&["--usage-and-exit", "2"]).unavailable(&words);
}

#[test]
fn s2_a_server_that_never_answers_initialize_is_69_after_start_timeout() {
    let run = Run::check(&["--silent"]).config("[upstream]\nstart_timeout = \"300ms\"\n");
    run.unavailable(&["has not answered initialize for 300ms (upstream.start_timeout)"]);
}

#[test]
fn s2_a_bad_config_is_64_with_file_line_and_key() {
    let run = Run::check(&[]).config("[defaults]\nanswer_whithin = \"1s\"\n");
    let ran = run.go();
    let file = run.path(".config/unhurry/config.toml");
    assert_eq!((ran.code, &*ran.stdout), (64, ""));
    assert_eq!(
        ran.stderr,
        format!(
            "unhurry: {}:2: defaults.answer_whithin: unknown key; did you mean `answer_within`?\n",
            file.display()
        )
    );
}

#[test]
fn s2_check_without_a_command_is_64() {
    let ran = Run::new(&["check"]).go();
    assert_eq!((ran.code, &*ran.stdout), (64, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("command"), "{}", ran.stderr);
}
