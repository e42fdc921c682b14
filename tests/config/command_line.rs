//! The command line: usage errors and `unhurry demo` (contract §2).

use support::cli::{Ran, Run};

/// A run that must end with exit code 64, these words on stderr, and nothing on stdout.
fn assert_usage(arguments: &[&str], words: &str) {
    let Ran { code, stdout, stderr } = Run::new(arguments).go();
    assert_eq!((code, &*stdout), (64, ""), "{arguments:?}: {stderr}");
    assert!(stderr.contains(words), "{arguments:?}: {words:?} is not in {stderr}");
}

#[test]
fn s2_no_command_is_64() {
    assert_usage(&[], "no server to run");
    assert_usage(&["--answer-within", "5s"], "no server to run");
    assert_usage(&["--"], "no server to run");
    assert_usage(&["serve"], "no server to run");
    assert_usage(&["check"], "no server to run");
}

#[test]
fn s2_an_unknown_flag_is_64_with_the_likely_one() {
    assert_usage(&["--answer-whithin", "5s", "--", "server"], "--answer-within");
    assert_usage(&["--nonsense", "--", "server"], "--nonsense");
    assert_usage(&["check", "--nonsense", "--", "server"], "--nonsense");
    assert_usage(&["demo", "--nonsense"], "--nonsense");
    assert_usage(&["--log-level", "loud", "--", "server"], "--log-level");
}

#[test]
fn s2_a_stray_word_is_64_and_names_the_place_of_the_command() {
    let all = [&["server"][..], &["npx", "--", "server"], &["check", "server"], &["serve", "x"]];
    for arguments in all {
        assert_usage(arguments, "The server's command stands behind `--`: unhurry -- ");
    }
    assert_usage(&["localhost:8000/mcp?key=secret"], "URL begins with http:// or https://");
    let ran = Run::new(&["example.com/mcp?key=secret"]).go();
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
}

#[test]
fn s2_a_bad_url_is_64_and_not_repeated() {
    for url in ["ws://h/mcp?key=secret", "http://user:secret@h/mcp", "http://h/mcp#secret"] {
        for arguments in [&[url][..], &["check", url], &["serve", url]] {
            assert_usage(arguments, "command line: upstream.url: ");
            let stderr = Run::new(arguments).go().stderr;
            assert!(!stderr.contains("secret"), "{stderr}");
        }
    }
}

#[test]
fn s2_a_url_and_a_command_are_one_too_many() {
    for verb in [&[][..], &["check"], &["serve"]] {
        let arguments = [verb, &["http://127.0.0.1:1/mcp", "--", "server"]].concat();
        assert_usage(&arguments, "a server is either a `command` or a `url`");
    }
}

#[test]
fn s2_a_bad_value_is_64_and_names_its_flag() {
    assert_usage(&["--answer-within", "5", "--", "server"], "--answer-within");
    assert_usage(&["--store", "redis", "--", "server"], "--store");
    assert_usage(&["--tool-prefix", "a b", "--", "server"], "--tool-prefix");
    assert_usage(&["--config", "missing.toml", "--", "server"], "missing.toml");
    assert_usage(&["--header", "secret", "http://127.0.0.1:1/mcp"], "--header");
    assert_usage(&["--header", "X: 1", "--", "server"], "--header");
    assert_usage(&["--env", "A=1", "http://127.0.0.1:1/mcp"], "--env");
    assert_usage(&["serve", "--listen", "8808", "--", "server"], "--listen");
    // Only `serve` listens.
    assert_usage(&["--listen", "127.0.0.1:0", "--", "server"], "--listen");
}

#[test]
fn s2_a_bad_config_is_64_before_anything_is_started() {
    let run = Run::new(&["--", "touch", "started"]).config("[defaults]\nmax_runtime = 5\n");
    let ran = run.go();
    assert_eq!((ran.code, &*ran.stdout), (64, ""));
    assert!(
        ran.stderr.contains("config.toml:2: defaults.max_runtime: a bare number; write \"5s\""),
        "{}",
        ran.stderr
    );
    assert!(!run.path("started").exists());
}

#[test]
fn s2_a_config_in_the_working_directory_is_not_read() {
    let run =
        Run::check(&[]).file("unhurry/config.toml", "nonsense").file("config.toml", "nonsense");
    assert_eq!(run.go().code, 0);
}

#[test]
fn s2_version_and_help_are_no_errors() {
    let version = Run::new(&["--version"]).go();
    assert_eq!(
        (version.code, &*version.stdout),
        (0, concat!("unhurry ", env!("CARGO_PKG_VERSION"), "\n"))
    );
    let help = Run::new(&["--help"]).go();
    assert_eq!(help.code, 0);
    for words in ["unhurry [OPTIONS] (URL | -- COMMAND", "--answer-within", "--header", "demo"] {
        assert!(help.stdout.contains(words), "{words}: {}", help.stdout);
    }
    assert!(!help.stdout.contains("demo-server"));
    for verb in ["serve", "check"] {
        let Ran { code, stdout, .. } = Run::new(&[verb, "--help"]).go();
        let usage = format!("unhurry {verb} [OPTIONS] (URL | -- COMMAND");
        assert!(code == 0 && stdout.contains(&usage), "{stdout}");
        assert_eq!(stdout.contains("--listen"), verb == "serve", "{stdout}");
    }
}

#[test]
fn s2_the_demo_shows_the_handle_the_wait_and_the_result() {
    let Ran { code, stdout, stderr } = Run::new(&["demo"]).go();
    assert_eq!((code, &*stderr), (0, ""), "{stdout}");
    let mut rest = &*stdout;
    for words in [
        "initialize",
        "tools: greet, slow_report, job_get, job_cancel",
        "Hello, Ada!",
        "\"name\": \"slow_report\"",
        "STILL RUNNING after 2",
        "\"next_action\": {",
        "\"status\": \"working\"",
        "\"name\": \"job_get\"",
        "STILL RUNNING after 4",
        "\"name\": \"job_get\"",
        "\"status\": \"completed\"",
        "A report on patience: it pays.",
    ] {
        let Some((_, after)) = rest.split_once(words) else {
            panic!("{words:?} is not next in {rest}")
        };
        rest = after;
    }
}

#[test]
fn s2_the_demo_needs_no_config_and_heeds_none() {
    let run = Run::new(&["demo"]).config("[defaults]\nanswer_within = \"never\"\n");
    let ran = run.go();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("STILL RUNNING"), "{}", ran.stdout);
}
