//! The files in `deploy/` fit the configuration that they come with.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use unhurry::config::{Config, Overrides};

fn text(name: &str) -> String {
    fs::read_to_string(PathBuf::from("deploy").join(name)).unwrap()
}

/// The configuration as it is deployed, with these variables besides the token.
fn deployed(more: &[(&str, &str)]) -> Config {
    let file = Some("deploy/sidecar.toml".into());
    let overrides = Overrides { config_file: file, ..Overrides::default() };
    let environment = [("UNHURRY_TOKEN", "hunter2")].iter().chain(more);
    let environment: Vec<_> = environment.map(|&(n, v)| (n.into(), v.into())).collect();
    Config::load(&overrides, &environment).unwrap()
}

/// What stands behind `key` in a file, up to the end of the line.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let (_, rest) = text.split_once(key).unwrap_or_else(|| panic!("no {key}"));
    rest.lines().next().unwrap_or_default().trim()
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().unwrap())
}

#[test]
fn s10_the_deployed_sidecar_has_a_token_and_a_host() {
    let server = deployed(&[]).server;
    assert_eq!(server.token.as_ref().map(|token| token.is(b"hunter2")), Some(true));
    assert_eq!(server.allowed_hosts, ["mcp.example.com"]);
    assert!(!server.listen.ip().is_loopback());
}

#[test]
fn s9_who_ends_the_sidecar_waits_longer_than_it_drains() {
    let drain = deployed(&[]).server.drain_timeout;
    let pod = text("kubernetes.yaml");
    let grace = seconds(value(&pod, "terminationGracePeriodSeconds:"));
    assert!(seconds(value(&text("unhurry.service"), "TimeoutStopSec=")) > drain);
    assert!(grace > drain);
    let server_lives = seconds(value(&pod, "\n            seconds:"));
    assert!(server_lives > drain && server_lives < grace);
}

#[test]
fn s3_variables_and_ports_of_the_files_are_those_of_the_sidecar() {
    let pod = text("kubernetes.yaml");
    let (_, hosts) = pod.split_once("UNHURRY_SERVER__ALLOWED_HOSTS").unwrap();
    let hosts = value(hosts, "value:").trim_matches('"');
    let server = deployed(&[("UNHURRY_SERVER__ALLOWED_HOSTS", hosts)]).server;
    assert_eq!(server.allowed_hosts.len(), 2);
    assert!(server.allowed_hosts.iter().all(|host| !host.contains(['[', ' ', ','])));

    let port = server.listen.port().to_string();
    assert_eq!(pod.matches(&format!("ort: {port}\n")).count(), 3);
    assert_eq!(value(&text("Containerfile"), "EXPOSE"), port);
    let nginx = text("nginx.conf");
    assert_eq!(nginx.matches(&format!("proxy_pass http://127.0.0.1:{port};")).count(), 2);
    let longest: usize =
        value(&nginx, "client_max_body_size").trim_end_matches("m;").parse().unwrap();
    assert_eq!(longest << 20, deployed(&[]).max_message);
}
