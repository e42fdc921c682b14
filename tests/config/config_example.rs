//! contract §3: `config.example.toml` and `docs/configuration.md` have every key, with its default.

use std::fs;
use std::path::{Path, PathBuf};

use unhurry::config::{Config, Overrides, Transport, Upstream};

use super::written;

/// Loads a file, with a command on the command line or without.
fn load(file: PathBuf, command: bool) -> Config {
    let command = if command { vec!["server".into()] } else { Vec::new() };
    let overrides = Overrides { config_file: Some(file), command, ..Overrides::default() };
    let environment = [("API_KEY", "key"), ("TOKEN", "hunter2"), ("UNHURRY_TOKEN", "hunter2")];
    Config::load(&overrides, &environment.map(|(n, v)| (n.into(), v.into()))).unwrap()
}

fn nothing() -> Config {
    load("tests/config/valid/empty.toml".into(), true)
}

/// The keys of a server that is no command.
const OF_URL: [&str; 4] = ["url = ", "transport = ", "headers = ", "forward_headers = "];

/// `config.example.toml` with its keys uncommented, but for those that begin like one of `omitted`.
fn example_without(omitted: &[&str]) -> String {
    let text = fs::read_to_string("config.example.toml").unwrap();
    let is_key = |line: &&str| {
        line.starts_with(|c: char| c.is_ascii_lowercase() || c == '[')
            && !omitted.iter().any(|key| line.starts_with(key))
    };
    let uncommented = |line| str::strip_prefix(line, "#").filter(is_key).unwrap_or(line);
    text.lines().map(uncommented).collect::<Vec<_>>().join("\n")
}

#[test]
fn s3_the_example_changes_nothing_as_it_is() {
    let example = load("config.example.toml".into(), true);
    let nothing = nothing();
    assert_eq!(format!("{:?}", example.policy), format!("{:?}", nothing.policy));
    assert_eq!(format!("{:?}", example.jobs), format!("{:?}", nothing.jobs));
}

#[test]
fn s3_the_example_shows_the_defaults() {
    let example = load(written("command", &example_without(&OF_URL)), true);
    let nothing = nothing();
    assert_eq!(example.policy.tool("other"), nothing.policy.tool("other"));
    assert_eq!(example.policy.client(None).budget, nothing.policy.client(None).budget);
    assert_eq!(format!("{:?}", example.jobs), format!("{:?}", nothing.jobs));
    assert_eq!(example.max_message, nothing.max_message);
    assert_eq!(example.start_timeout, nothing.start_timeout);
    // These two have examples that are no defaults.
    let mut server = example.server.clone();
    assert_eq!(server.token.take().map(|token| token.is(b"hunter2")), Some(true));
    assert_eq!(std::mem::take(&mut server.allowed_origins), ["https://app.example.com"]);
    assert_eq!(format!("{server:?}"), format!("{:?}", nothing.server));
}

#[test]
fn s3_the_example_shows_both_kinds_of_server() {
    let text = example_without(&["command = ", "args = ", "env = ", "cwd = "]);
    let config = load(written("url", &text), false);
    let Upstream::Remote(remote) = config.upstream else { panic!("{:?}", config.upstream) };
    assert_eq!(remote.address(), "http://127.0.0.1:8000/mcp");
    assert_eq!(remote.headers["authorization"], "Bearer hunter2");
    assert_eq!((remote.transport, remote.forward_headers.len()), (Transport::Auto, 0));
}

#[test]
fn s3_example_and_docs_have_every_key() {
    let all = ["everything.toml", "everything_url.toml"]
        .map(|name| fs::read_to_string(Path::new("tests/config/valid").join(name)).unwrap());
    let lines = all.iter().flat_map(|text| text.lines());
    let keys = lines.filter_map(|line| Some(line.split_once(" = ")?.0));
    let example = example_without(&[]);
    let docs = fs::read_to_string("docs/configuration.md").unwrap();
    for key in keys {
        assert!(example.contains(&format!("\n{key} = ")), "{key} is not in config.example.toml");
        assert!(docs.contains(&format!("`{key}`")), "{key} is not in docs/configuration.md");
    }
}

/// The blocks of a page that are marked as TOML.
fn blocks(page: &str) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let parts = text.split("```toml\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn s3_what_the_pages_show_can_be_loaded() {
    let docs = fs::read_dir("docs").unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.chain(["README.md".into(), "deploy/README.md".into()]);
    let mut loaded = 0;
    for page in pages.filter(|page| page.extension().is_some_and(|is| is == "md")) {
        let page = page.to_str().unwrap();
        for (number, block) in blocks(page).iter().enumerate() {
            let name = format!("{}_{number}", page.replace(['/', '.'], "_"));
            let command = !block.contains("url =") && !block.contains("command =");
            load(written(&name, block), command);
            loaded += 1;
        }
    }
    assert!(loaded > 1);
}
