//! The configuration: contract §2 (layers, which file) and §3 (keys, values, errors).
//!
//! Each file in `config/valid` must load; each in `config/invalid` must be refused with the text

//! beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unhurry::config::{
    Budget, CommandConfig, Config, ConfigError, Duplicates, OnClientCancel, Overrides, Source,
    ToolPolicy, Upstream,
};

use super::{seconds, written};

/// An environment with what the files in `config/` use, and `more`.
fn environment(more: &[(&str, &str)]) -> Vec<(String, String)> {
    let common = [
        ("SECRET", "hunter2"),
        ("TOKEN", "hunter2"),
        ("PIN", "4711"),
        ("EMPTY", ""),
        ("API_KEY", "key"),
    ];
    common.iter().chain(more).map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn command() -> Overrides {
    Overrides { command: vec!["server".into()], ..Overrides::default() }
}

/// The command that is run.
fn child(config: &Config) -> &CommandConfig {
    match &config.upstream {
        Upstream::Command(command) => command,
        Upstream::Remote(remote) => panic!("{remote:?}"),
    }
}

fn from_file(file: &Path, more: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let overrides = Overrides { config_file: Some(file.into()), ..command() };
    Config::load(&overrides, &environment(more))
}

/// Loads a file that may name the server; no command line says otherwise.
fn from_file_alone(file: &Path) -> Result<Config, ConfigError> {
    let overrides = Overrides { config_file: Some(file.into()), ..Overrides::default() };
    Config::load(&overrides, &environment(&[]))
}

/// Loads without a file.
fn from_variables(more: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(&command(), &environment(more))
}

fn from_text(test: &str, text: &str) -> Result<Config, ConfigError> {
    from_file(&written(test, text), &[])
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new("tests/config").join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn valid(name: &str) -> Config {
    from_file(&Path::new("tests/config/valid").join(name), &[]).unwrap()
}

fn error(result: Result<Config, ConfigError>) -> String {
    result.expect_err("must be refused").to_string()
}

#[test]
fn s3_every_valid_file_loads() {
    for file in files("valid") {
        for upstream in [command(), Overrides::default()] {
            let overrides = Overrides { config_file: Some(file.clone()), ..upstream };
            match Config::load(&overrides, &environment(&[])) {
                Ok(_) | Err(ConfigError::NoServer) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn s3_every_invalid_file_is_refused_with_its_error() {
    let mut wrong = Vec::new();
    for file in files("invalid") {
        let expected = fs::read_to_string(file.with_extension("err")).unwrap_or_default();
        let name = file.file_name().unwrap().to_str().unwrap();
        let error = error(from_file_alone(&file)).replace(&file.display().to_string(), name);
        if error != expected.trim_end() {
            wrong.push(format!("{error}\n  is not\n{expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn s3_no_error_holds_an_expanded_value() {
    for file in files("invalid") {
        let error = error(from_file_alone(&file));
        assert!(!error.contains("hunter2") && !error.contains("4711"), "{error}");
    }
}

#[test]
fn s3_unknown_key_names_line_and_suggestion() {
    let error = error(from_text("suggestion", "[defaults]\n\nanswer_whithin = \"1s\"\n"));
    let expected = "config.toml:3: defaults.answer_whithin: unknown key; \
                    did you mean `answer_within`?";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn s3_zero_configuration_works() {
    let config = from_variables(&[]).unwrap();
    assert_eq!(config.file, None);
    assert_eq!(child(&config).program, "server");
    assert!(child(&config).args.is_empty() && child(&config).env.is_empty());
    assert_eq!(config.start_timeout, seconds(300));
    assert_eq!(config.max_message, 64 * 1024 * 1024);
    assert_eq!(config.jobs.page_bytes, 64 * 1024);
    assert_eq!(config.jobs.max_stored, 1024 * 1024 * 1024);
    assert_eq!((config.jobs.max_running, config.jobs.announce), (1000, true));
    assert_eq!(config.policy.tool("any"), ToolPolicy::default());
    let client = config.policy.client(None);
    assert_eq!((client.budget, client.source), (Budget::After(seconds(25)), Source::Default));
}

#[test]
fn s3_every_key_reaches_the_config() {
    let config = valid("everything.toml");
    assert_eq!(child(&config).cwd, Some("work".into()));
    assert_eq!(config.start_timeout, seconds(30));
    let env = [("API_KEY", "hunter2"), ("LEVEL", "debug")].map(|(n, v)| (n.into(), v.into()));
    assert_eq!(child(&config).env, env);
    assert_eq!(config.max_message, 1_000_000);
    assert_eq!(config.jobs.tool_prefix, "x_");
    assert_eq!((config.jobs.page_bytes, config.jobs.max_running), (16 * 1024, 0));
    assert_eq!((config.jobs.max_stored, config.jobs.announce), (3 << 29, false));
    let expected = ToolPolicy {
        answer_within: None,
        expected: Some(seconds(40)),
        max_runtime: seconds(90 * 60),
        result_ttl: seconds(48 * 3600),
        fetched_ttl: Duration::ZERO,
        on_client_cancel: OnClientCancel::Detach,
        duplicates: Duplicates::Run,
        join_window: Duration::from_millis(250),
        max_concurrent: 3,
        ask_progress: true,
    };
    assert_eq!(config.policy.tool("other"), expected);
    assert_eq!(config.policy.client(Some("my-agent 2")).page_bytes, 256);
}

#[test]
fn s3_a_bom_and_crlf_are_taken() {
    let client = valid("bom_and_crlf.toml").policy.client(None);
    assert_eq!(client.budget, Budget::After(seconds(10)));
}

#[test]
fn s3_variables_are_expanded_in_values_only() {
    let overrides = Overrides {
        config_file: Some("tests/config/valid/dollars.toml".into()),
        ..Overrides::default()
    };
    let config = Config::load(&overrides, &environment(&[])).unwrap();
    let expected = ["$HOME", "${SECRET}", "$", "$$", "100 $", "", "", "a:-b", "<hunter2>"];
    assert_eq!(child(&config).args, expected);
    assert_eq!(config.policy.tool("${UNSET}").duplicates, Duplicates::Run);
}

#[test]
fn s3_an_expanded_value_is_not_expanded_again() {
    let file = written("expanded_once", "[upstream]\ncwd = \"${A}\"\n");
    let config = from_file(&file, &[("A", "${SECRET}")]).unwrap();
    assert_eq!(child(&config).cwd, Some("${SECRET}".into()));
}

#[test]
fn s3_debug_output_shows_no_secret() {
    for name in ["everything.toml", "everything_url.toml"] {
        let file = Path::new("tests/config/valid").join(name);
        let shown = format!("{:?}", from_file_alone(&file).unwrap());
        assert!(!shown.contains("hunter2") && !shown.contains("4711"), "{shown}");
    }
}

#[test]
fn s2_flags_beat_environment_beats_file_beats_defaults() {
    let file = written("layers", "[defaults]\nanswer_within = \"1s\"\nexpected = \"1s\"\n");
    let budget = |config: Config| config.policy.client(None).budget;
    let variable = ("UNHURRY_DEFAULTS__ANSWER_WITHIN", "2s");
    assert_eq!(budget(from_file(&file, &[]).unwrap()), Budget::After(seconds(1)));
    let by_variable = from_file(&file, &[variable]).unwrap();
    assert_eq!(by_variable.policy.tool("x").expected, Some(seconds(1)));
    assert_eq!(budget(by_variable), Budget::After(seconds(2)));
    let flags = Overrides {
        config_file: Some(file),
        answer_within: Some("3s".into()),
        store: Some("memory".into()),
        tool_prefix: Some("f_".into()),
        ..command()
    };
    let by_flag = Config::load(&flags, &environment(&[variable])).unwrap();
    assert_eq!(by_flag.jobs.tool_prefix, "f_");
    assert_eq!(budget(by_flag), Budget::After(seconds(3)));
}

#[test]
fn s2_a_command_on_the_command_line_replaces_command_and_args() {
    let text = "[upstream]\ncommand = \"a\"\nargs = [\"b\"]\nenv = { C = \"1\" }\n";
    let file = Overrides { config_file: Some(written("command", text)), ..Overrides::default() };
    let config = Config::load(&file, &[]).unwrap();
    assert_eq!((child(&config).program.as_str(), child(&config).args.len()), ("a", 1));
    let config = Config::load(&Overrides { command: vec!["x".into()], ..file.clone() }, &[]);
    let config = config.unwrap();
    let CommandConfig { program, args, env, .. } = child(&config);
    assert_eq!((program.as_str(), args.len(), env.len()), ("x", 0, 1));
    let verbatim = vec!["sh".into(), "-c".into(), "echo ${HOME".into()];
    let config = Config::load(&Overrides { command: verbatim.clone(), ..file }, &[]).unwrap();
    assert_eq!(child(&config).args, verbatim[1..]);
}

#[test]
fn s2_no_command_says_how_to_give_one() {
    let error = error(Config::load(&Overrides::default(), &[]));
    assert!(error.contains("after `--`") && error.contains("`upstream.command`"), "{error}");
}

#[test]
fn s2_env_flags_are_added_and_expanded() {
    let text = "[upstream]\nenv = { A = \"file\", B = \"file\" }\n";
    let flags = |env: &[&str]| Overrides {
        config_file: Some(written("env_flags", text)),
        env: env.iter().map(|pair| pair.to_string()).collect(),
        ..command()
    };
    let config = Config::load(&flags(&["B=x=${SECRET}", "c="]), &environment(&[])).unwrap();
    let expected = [("A", "file"), ("B", "x=hunter2"), ("c", "")];
    assert_eq!(child(&config).env, expected.map(|(n, v)| (n.into(), v.into())));
    let unset = error(Config::load(&flags(&["A=${UNSET}"]), &environment(&[])));
    assert!(unset.starts_with("--env: upstream.env.A: the environment variable UNSET"), "{unset}");
    let no_pair = error(Config::load(&flags(&["hunter2"]), &environment(&[])));
    assert_eq!(no_pair, "--env: upstream.env: expected NAME=VALUE");
}

#[test]
fn s2_a_bad_flag_is_named() {
    let refused = |flags: Overrides| error(Config::load(&flags, &[]));
    let number = refused(Overrides { answer_within: Some("25".into()), ..command() });
    assert_eq!(number, "--answer-within: defaults.answer_within: a bare number; write \"25s\"");
    let store = refused(Overrides { store: Some("redis".into()), ..command() });
    let expected = "--store: jobs.store: not available in this version: stores that outlive the \
                    process come with a later release";
    assert_eq!(store, expected);
    let prefix = refused(Overrides { tool_prefix: Some("a b".into()), ..command() });
    assert!(prefix.starts_with("--tool-prefix: jobs.tool_prefix: expected at most 32"), "{prefix}");
}

#[test]
fn s2_variables_set_keys() {
    let config = from_variables(&[
        ("UNHURRY_UPSTREAM__ENV__Api_Key", "1"),
        ("UNHURRY_UPSTREAM__CWD", "true"),
        ("UNHURRY_JOBS__ANNOUNCE", "false"),
        ("UNHURRY_JOBS__MAX_RUNNING", "7"),
        ("UNHURRY_JOBS__TOOL_PREFIX", "1"),
        ("UNHURRY_TOOLS__git__Log__ANSWER_WITHIN", "never"),
        ("UNHURRY_CLIENTS__Agent__PAGE_BYTES", "1KiB"),
        ("UNHURRY_SERVER__MAX_MESSAGE", "1MiB"),
    ])
    .unwrap();
    assert_eq!(child(&config).env, [("Api_Key".into(), "1".into())]);
    assert_eq!(child(&config).cwd, Some("true".into()));
    assert_eq!((config.jobs.announce, config.jobs.max_running), (false, 7));
    assert_eq!((config.jobs.tool_prefix.as_str(), config.max_message), ("1", 1 << 20));
    let source = Source::Tools("git__Log".into());
    assert_eq!(config.policy.tool("git__Log").answer_within, Some((Budget::Never, source)));
    assert_eq!(config.policy.client(Some("Agent")).page_bytes, 1024);
    let args = [("UNHURRY_UPSTREAM__ARGS", "[a, b c]"), ("UNHURRY_UPSTREAM__COMMAND", "true")];
    let config = Config::load(&Overrides::default(), &environment(&args)).unwrap();
    assert_eq!((child(&config).program.as_str(), child(&config).args.len()), ("true", 2));
}

#[test]
fn s2_a_bad_variable_is_named() {
    let refused = |name, value| error(from_variables(&[(name, value)]));
    assert_eq!(
        refused("UNHURRY_DEFAULTS__ANSWER_WHITHIN", "hunter2"),
        "environment variable UNHURRY_DEFAULTS__ANSWER_WHITHIN: defaults.answer_whithin: \
         unknown key; did you mean `answer_within`?"
    );
    assert_eq!(
        refused("UNHURRY_DEFAULTS__ANSWER_WITHIN", "25"),
        "environment variable UNHURRY_DEFAULTS__ANSWER_WITHIN: defaults.answer_within: \
         a bare number; write \"25s\""
    );
    assert_eq!(
        refused("UNHURRY_SERVER__ADMIN_LISTEN", "hunter2"),
        "environment variable UNHURRY_SERVER__ADMIN_LISTEN: server.admin_listen: not available in \
         this version: metrics and the status page come with a later release"
    );
    let too_deep = refused("UNHURRY_DEFAULTS__EXPECTED__X", "1");
    let place = "environment variable UNHURRY_DEFAULTS__EXPECTED__X: defaults.expected: expected";
    assert!(too_deep.starts_with(place), "{too_deep}");
    let no_key = refused("UNHURRY_TOOLS__X", "1");
    assert_eq!(no_key, "environment variable UNHURRY_TOOLS__X: tools.X: expected a table");
    let both = [("UNHURRY_TOOLS__X", "1"), ("UNHURRY_TOOLS__X__ANSWER_WITHIN", "1s")];
    assert_eq!(error(from_variables(&both)), no_key);
}

#[test]
fn s3_a_bad_value_is_refused_even_where_a_stronger_layer_hides_it() {
    let file = written("hidden", "[defaults]\nanswer_within = 25\n");
    let result = from_file(&file, &[("UNHURRY_DEFAULTS__ANSWER_WITHIN", "2s")]);
    let error = error(result);
    assert!(error.contains("config.toml:2: defaults.answer_within"), "{error}");
}

#[test]
fn s2_other_variables_are_ignored() {
    let others = ["UNHURRY_TOKEN", "UNHURRY_LOG__LEVEL", "UNHURRY_DEFAULTS", "DEFAULTS__X"];
    for name in others {
        from_variables(&[(name, "x")]).unwrap();
    }
}

#[test]
fn s2_the_file_is_the_named_one_or_that_of_the_user() {
    let own = written("xdg/unhurry", "[jobs]\ntool_prefix = \"own_\"\n");
    let home = written("home/.config/unhurry", "[jobs]\ntool_prefix = \"home_\"\n");
    let named = written("named", "[jobs]\ntool_prefix = \"named_\"\n");
    let ancestor = |file: &Path, n| file.ancestors().nth(n).unwrap().to_str().unwrap().to_owned();
    let (own, home) = (ancestor(&own, 2), ancestor(&home, 3));
    let prefix = |more: &[(&str, &str)]| from_variables(more).unwrap().jobs.tool_prefix;
    assert_eq!(prefix(&[("HOME", &home)]), "home_");
    assert_eq!(prefix(&[("HOME", &home), ("XDG_CONFIG_HOME", &own)]), "own_");
    assert_eq!(prefix(&[("HOME", &home), ("XDG_CONFIG_HOME", "relative")]), "home_");
    let name = named.to_str().unwrap();
    assert_eq!(prefix(&[("HOME", &home), ("UNHURRY_CONFIG", name)]), "named_");
    assert_eq!(prefix(&[("HOME", &home), ("UNHURRY_CONFIG", "")]), "home_");
    let by_flag = from_file(&named, &[("UNHURRY_CONFIG", "/nowhere"), ("HOME", &home)]).unwrap();
    assert_eq!((by_flag.jobs.tool_prefix.as_str(), by_flag.file), ("named_", Some(named)));
}

#[test]
fn s2_only_a_named_file_must_exist() {
    from_variables(&[("HOME", "/nowhere")]).unwrap();
    from_variables(&[("HOME", "/dev/null")]).unwrap();
    let error = error(from_variables(&[("UNHURRY_CONFIG", "/nowhere/c.toml")]));
    assert!(error.starts_with("/nowhere/c.toml: cannot read the config file: "), "{error}");
}
