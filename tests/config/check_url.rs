//! `unhurry check URL`: the same report for a server over HTTP (contract §2).

use serde_json::json;
use support::cli::Run;
use support::{Entry, FakeHttp, Transport};

fn check(server: &FakeHttp) -> Run {
    Run::new(&["check", &server.url()])
}

/// A run that must end with exit code 69 and these words on stderr, in one line.
fn assert_unavailable(run: &Run, words: &[&str]) {
    let ran = run.unavailable(words);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn s2_check_reports_a_server_at_a_url_over_every_transport() {
    let rows = [
        (Transport::Http, &["--strict"][..], "2025-11-25"),
        (Transport::Http, &["--json"], "2025-11-25"),
        (Transport::Http, &["--no-sessions"], "2025-11-25"),
        (Transport::Http, &["--event-ids", "--retry", "10"], "2025-11-25"),
        (Transport::Http, &["--modern", "--strict"], "2026-07-28"),
        (Transport::Http, &["--dual", "--strict", "--page-size", "5"], "2025-11-25"),
        (Transport::Sse, &[], "2025-11-25"),
    ];
    for (transport, flags, version) in rows {
        let server = FakeHttp::over(transport, flags);
        let ran = check(&server).good();
        let line = format!("server   fake-server ({version}), 13 tools\n");
        assert!(ran.stdout.contains(&line), "{transport:?} {flags:?}: {}", ran.stdout);
        assert!(ran.stdout.contains("adds     job_get, job_cancel\n"), "{}", ran.stdout);
        assert!(ran.stdout.contains("\nclose_stdout  25s       default\n"), "{}", ran.stdout);
    }
}

#[test]
fn s2_check_takes_the_url_from_the_config_and_sends_its_headers() {
    let server = FakeHttp::start(&["--token", "good"]);
    let toml = format!(
        "[upstream]\nurl = \"{}\"\nheaders = {{ Authorization = \"Bearer good\" }}\n",
        server.url()
    );
    let ran = Run::new(&["check"]).config(&toml).good();
    assert!(ran.stdout.contains("13 tools"), "{}", ran.stdout);
}

#[test]
fn s2_check_ends_its_session_and_calls_nothing() {
    let server = FakeHttp::start(&[]);
    check(&server).good();
    let journal = server.journal();
    // The GET of the server's own stream has a connection of its own, and may be noted later.
    let mut sent = journal.iter().filter_map(Entry::http_method).filter(|method| *method != "GET");
    assert_eq!(sent.next_back(), Some("DELETE"));
    assert!(journal.iter().all(|entry| !entry.has_method("tools/call")));
}

#[test]
fn s2_a_url_where_nobody_listens_is_69() {
    let server = FakeHttp::start(&[]);
    server.kill();
    assert_unavailable(&check(&server), &["can't be reached", &server.url()]);
}

#[test]
fn s2_a_url_that_is_no_mcp_is_69_with_its_answer() {
    let fault = json!({"on": "*", "status": 404, "body": "<h1>Nothing here</h1>"}).to_string();
    let server = FakeHttp::start(&["--fault", &fault]);
    assert_unavailable(&check(&server), &["404", "Nothing here"]);
}

#[test]
fn s2_a_missing_token_is_69_and_said() {
    assert_unavailable(&check(&FakeHttp::start(&["--token", "good"])), &["401 Unauthorized"]);
}

#[test]
fn s2_a_server_at_a_url_that_never_answers_is_69_after_start_timeout() {
    let server = FakeHttp::start(&["--silent"]);
    let run = check(&server).config("[upstream]\nstart_timeout = \"300ms\"\n");
    assert_unavailable(&run, &["has not answered initialize for 300ms (upstream.start_timeout)"]);
}

/// Its query may be a secret.
#[test]
fn s10_check_shows_no_query() {
    let server = FakeHttp::start(&[]);
    server.kill();
    let url = format!("{}?key=s3cr3t", server.url());
    let ran = Run::new(&["check", &url]).go();
    assert_eq!(ran.code, 69);
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("s3cr3t"), "{}", ran.stderr);
}
