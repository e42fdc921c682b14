//! contract §2, §3 and §10: servers by URL, and `[server]`.

use std::time::Duration;

use unhurry::config::{Config, Overrides, RemoteConfig, Transport, Upstream};

use super::written;

fn load(flags: &Overrides, environment: &[(&str, &str)]) -> Result<Config, String> {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let environment: Vec<_> = environment.iter().map(owned).collect();
    Config::load(flags, &environment).map_err(|error| error.to_string())
}

fn url(url: &str) -> Overrides {
    Overrides { url: Some(url.into()), ..Overrides::default() }
}

fn remote(config: Result<Config, String>) -> RemoteConfig {
    match config.unwrap().upstream {
        Upstream::Remote(remote) => remote,
        Upstream::Command(command) => panic!("{command:?}"),
    }
}

/// Names and values, in the order of the names.
fn headers(remote: &RemoteConfig) -> Vec<(&str, &str)> {
    let mut headers: Vec<_> = remote
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    headers.sort_unstable();
    headers
}

/// A file with a command and all that belongs to it.
const COMMAND: &str =
    "[upstream]\ncommand = \"a\"\nargs = [\"b\"]\nenv = { C = \"1\" }\ncwd = \"d\"\n";
/// A file with a URL and all that belongs to it.
const URL: &str = "[upstream]\nurl = \"http://file/mcp\"\ntransport = \"sse\"\n\
                   headers = { Authorization = \"secret\" }\nforward_headers = [\"x-user\"]\n";

#[test]
fn s3_every_key_of_a_url_reaches_the_config() {
    let file = Some("tests/config/valid/everything_url.toml".into());
    let flags = Overrides { config_file: file, ..Overrides::default() };
    let remote = remote(load(&flags, &[("SECRET", "hunter2"), ("PIN", "4711")]));
    assert_eq!(remote.url, "https://[::1]:8443/mcp?key=hunter2");
    assert_eq!(remote.transport, Transport::StreamableHttp);
    let expected = [("authorization", "Bearer hunter2"), ("x-empty", ""), ("x-pin", "4711")];
    assert_eq!(headers(&remote), expected);
    assert!(remote.headers.values().all(http::HeaderValue::is_sensitive));
    assert_eq!(remote.forward_headers, ["x-user", "traceparent"]);
    assert_eq!(remote.address(), "https://[::1]:8443/mcp");
}

#[test]
fn s3_every_key_of_server_reaches_the_config() {
    let file = Some("tests/config/valid/everything.toml".into());
    let flags = Overrides { config_file: file, ..Overrides::default() };
    let server = load(&flags, &[("SECRET", "hunter2")]).unwrap().server;
    assert_eq!(server.listen, "[::1]:80".parse().unwrap());
    assert_eq!(server.allowed_origins, ["https://app.example.com:8443", "vscode-webview://abc"]);
    assert_eq!(server.allowed_hosts, ["mcp.example.com", "[::1]:80"]);
    assert_eq!(server.identity().unwrap(), "x-user");
    let token = server.token.unwrap();
    assert!(token.is(b"hunter2") && !token.is(b"hunter") && !token.is(b""));
    assert_eq!((server.max_sessions, server.session_idle), (1, Duration::from_hours(1)));
    assert_eq!(server.drain_timeout, Duration::ZERO);
}

#[test]
fn s3_a_url_alone_has_defaults() {
    let config = load(&url("http://127.0.0.1:8000"), &[]).unwrap();
    assert_eq!(config.server.listen, "127.0.0.1:8808".parse().unwrap());
    assert_eq!(config.server.allowed_hosts, ["localhost", "127.0.0.1", "[::1]"]);
    assert!(config.server.allowed_origins.is_empty() && config.server.token.is_none());
    assert_eq!(config.server.identity().unwrap(), "authorization");
    let remote = remote(Ok(config));
    assert_eq!(
        (remote.address().as_str(), remote.transport),
        ("http://127.0.0.1:8000/", Transport::Auto)
    );
    assert!(remote.headers.is_empty() && remote.forward_headers.is_empty());
}

#[test]
fn s2_a_url_on_the_command_line_replaces_a_command() {
    let flags =
        Overrides { config_file: Some(written("to_url", COMMAND)), ..url("http://flag/mcp") };
    assert_eq!(remote(load(&flags, &[])).url, "http://flag/mcp");
    let variable = [("UNHURRY_UPSTREAM__URL", "http://variable/mcp")];
    let flags = Overrides { url: None, ..flags };
    assert_eq!(remote(load(&flags, &variable)).url, "http://variable/mcp");
}

#[test]
fn s2_a_command_on_the_command_line_replaces_a_url() {
    let command = vec!["x".into()];
    let config_file = Some(written("to_command", URL));
    let config = load(&Overrides { config_file, command, ..Overrides::default() }, &[]).unwrap();
    let Upstream::Command(command) = config.upstream else { panic!("{:?}", config.upstream) };
    assert_eq!((command.program.as_str(), command.args.len()), ("x", 0));
}

/// What was meant for one server is not sent to another.
#[test]
fn s10_a_url_on_the_command_line_leaves_the_files_credentials_behind() {
    let flags =
        Overrides { config_file: Some(written("other_url", URL)), ..url("http://flag/mcp") };
    let other = remote(load(&flags, &[("UNHURRY_UPSTREAM__HEADERS__X", "1")]));
    assert_eq!((other.address().as_str(), other.transport), ("http://flag/mcp", Transport::Auto));
    assert_eq!((headers(&other), other.forward_headers.len()), (vec![("x", "1")], 0));
    let text = "[upstream]\nheaders.Authorization = \"secret\"\n";
    let flags = Overrides { config_file: Some(written("no_url", text)), ..url("http://flag/mcp") };
    assert_eq!(headers(&remote(load(&flags, &[]))), [("authorization", "secret")]);
}

#[test]
fn s2_header_flags_are_added_expanded_and_win() {
    let flags = |headers: &[&str]| Overrides {
        config_file: Some(written("header_flags", URL)),
        headers: headers.iter().map(|header| header.to_string()).collect(),
        ..Overrides::default()
    };
    let all = ["AUTHORIZATION: Bearer ${SECRET}", "a:b:c", "X-Pad:\t 1 ", "x-last: 1", "X-Last: 2"];
    let secret = [("SECRET", "hunter2")];
    let expected =
        [("a", "b:c"), ("authorization", "Bearer hunter2"), ("x-last", "2"), ("x-pad", "1")];
    assert_eq!(headers(&remote(load(&flags(&all), &secret))), expected);
    let refused = |header| load(&flags(&[header]), &secret).unwrap_err();
    let no_pair = "--header: upstream.headers: expected 'Name: value'";
    for header in ["hunter2", ": hunter2", "Bearer hunter2: x", ""] {
        assert_eq!(refused(header), no_pair);
    }
    let unset = refused("X-A: ${UNSET}");
    assert!(unset.starts_with("--header: upstream.headers.x-a: the environment variable UNSET"));
    let line_end = refused("X-A: ${SECRET}\n");
    assert!(line_end.starts_with("--header: upstream.headers.x-a: expected a header's value"));
    let of_the_hop = refused("Host: hunter2");
    assert!(of_the_hop.starts_with("--header: upstream.headers.host: unhurry makes"));
}

#[test]
fn s2_variables_set_headers_and_server() {
    let file = Some(written("variables", URL));
    let flags = Overrides { config_file: file, ..Overrides::default() };
    let config = load(
        &flags,
        &[
            ("UNHURRY_UPSTREAM__HEADERS__AUTHORIZATION", "1234"),
            ("UNHURRY_UPSTREAM__HEADERS", "{X-Api-Key=\"5, 6\"}"),
            ("UNHURRY_UPSTREAM__FORWARD_HEADERS", "[traceparent]"),
            ("UNHURRY_SERVER__LISTEN", "[::1]:80"),
            ("UNHURRY_SERVER__TOKEN", "1234"),
            ("UNHURRY_SERVER__ALLOWED_HOSTS", "[a.example, \"[::1]\"]"),
            ("UNHURRY_SERVER__MAX_SESSIONS", "7"),
        ],
    );
    let config = config.unwrap();
    assert!(config.server.token.as_ref().unwrap().is(b"1234"));
    assert_eq!(config.server.listen, "[::1]:80".parse().unwrap());
    assert_eq!(config.server.allowed_hosts, ["a.example", "[::1]"]);
    assert_eq!(config.server.max_sessions, 7);
    let remote = remote(Ok(config));
    assert_eq!(headers(&remote), [("authorization", "1234"), ("x-api-key", "5, 6")]);
    assert_eq!(remote.forward_headers, ["traceparent"]);
}

#[test]
fn s10_the_checks_of_host_and_origin_can_be_turned_off() {
    let text = "server = { allowed_hosts = [\"*\"], allowed_origins = [\"*\"] }\n";
    let flags = Overrides { config_file: Some(written("any", text)), ..url("http://h/") };
    let server = load(&flags, &[]).unwrap().server;
    assert_eq!(
        (server.allowed_hosts, server.allowed_origins),
        (vec!["*".into()], vec!["*".into()])
    );
}

#[test]
fn s2_the_listen_flag_wins_and_is_named() {
    let flags = |listen: &str| Overrides { listen: Some(listen.into()), ..url("http://h/") };
    let variable = [("UNHURRY_SERVER__LISTEN", "127.0.0.1:1")];
    let listen = load(&flags("[::]:2"), &variable).unwrap().server.listen;
    assert_eq!(listen, "[::]:2".parse().unwrap());
    let error = load(&flags("localhost:80"), &[]).unwrap_err();
    assert!(error.starts_with("--listen: server.listen: expected an IP address"), "{error}");
}

#[test]
fn s3_keys_of_the_other_kind_are_refused_where_they_cannot_be_meant() {
    let command = || Overrides { command: vec!["x".into()], ..Overrides::default() };
    let refused = |flags: Overrides, variables: &[_]| load(&flags, variables).unwrap_err();
    let with_header = Overrides { headers: vec!["X: hunter2".into()], ..command() };
    assert_eq!(
        refused(with_header, &[]),
        "--header: upstream.headers: only for a `url`, and the server is a `command`; take it out"
    );
    let with_env = Overrides { env: vec!["A=hunter2".into()], ..url("http://h/") };
    assert_eq!(
        refused(with_env, &[]),
        "--env: upstream.env: only for a `command`, and the server has a `url`; take it out"
    );
    let both = Overrides { command: vec!["x".into()], ..url("http://h/") };
    assert!(refused(both, &[]).starts_with("command line: upstream.url: a server is either"));
    let file = Overrides { config_file: Some(written("kinds", COMMAND)), ..Overrides::default() };
    let variable = ("UNHURRY_UPSTREAM__HEADERS__X", "hunter2");
    let place = "environment variable UNHURRY_UPSTREAM__HEADERS__X: upstream.headers: only for";
    assert!(refused(file, &[variable]).starts_with(place));
    // An empty variable takes nothing back and sets nothing.
    load(&url("http://h/"), &[("UNHURRY_UPSTREAM__COMMAND", "")]).unwrap();
}

#[test]
fn s2_no_error_shows_the_query_of_a_url() {
    let error = load(&url("http://h:x/?key=hunter2"), &[]).unwrap_err();
    assert!(error.starts_with("command line: upstream.url: expected an http"), "{error}");
}

#[test]
fn s10_with_a_token_authorization_is_no_identity_and_stays_here() {
    let server = |text: &str| {
        load(&Overrides { config_file: Some(written("identity", text)), ..url("http://h/") }, &[])
            .unwrap()
            .server
    };
    assert_eq!(server("server.token = \"t\"\n").identity(), None);
    let other = server("server = { token = \"t\", identity_header = \"X-User\" }\n");
    assert_eq!(other.identity().unwrap(), "x-user");
    let explicit = server("server = { token = \"t\", identity_header = \"Authorization\" }\n");
    assert_eq!(explicit.identity(), None);
    let variables = [
        ("UNHURRY_SERVER__TOKEN", "t"),
        ("UNHURRY_UPSTREAM__FORWARD_HEADERS", "[x-user, Authorization]"),
    ];
    let error = load(&url("http://h/"), &variables).unwrap_err();
    let place = "environment variable UNHURRY_UPSTREAM__FORWARD_HEADERS: \
                 upstream.forward_headers.1: `authorization` carries `server.token`";
    assert!(error.starts_with(place), "{error}");
}
