//! A scriptable MCP server over stdio and HTTP, for tests of what stands in front of a server.
//!
//! `flags` says how it starts, `tools` and `script` what it can be asked to do, `journal` what it
//! writes down. It keeps ids, tokens and params as the text that came in, and reads leniently: what
//! a test sends is the test's own business.
#![forbid(unsafe_code)]

mod call;
mod flags;
mod http;
mod journal;
mod message;
mod output;
mod script;
mod server;
mod session;
mod stdio;
mod tools;
mod wire;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::{self, Command};
use std::sync::Arc;
use std::thread;

use clap::{CommandFactory, Parser};
use serde_json::json;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::flags::Flags;
use crate::journal::Journal;
use crate::output::Output;
use crate::server::Server;
use crate::wire::Wire;

fn main() {
    let flags = Flags::parse();
    let journal = Journal::open(flags.journal.as_deref());
    journal.event("start", json!({}));
    let number = flags.state_file.as_deref().map_or(1, count_process);
    exit_early(&flags, number);

    let server = Arc::new(Server::new(flags, journal, number));
    watch_sigterm(Arc::clone(&server));
    let stdout = Arc::new(Output::new(&server.flags));
    start(&server, &*stdout);
    match server.flags.http.or(server.flags.sse) {
        Some(address) => {
            end_with_stdin(Arc::clone(&server));
            http::serve(Arc::clone(&server), address);
        }
        None => stdio::serve(Arc::clone(&server), stdout),
    }
    if server.flags.ignore_eof {
        loop {
            thread::park();
        }
    }
}

/// Adds this process to the count in `path` and returns its number.
fn count_process(path: &Path) -> u64 {
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a state file");
    file.write_all(b".").expect("the state file is written");
    file.metadata().expect("the state file has a length").len()
}

fn exit_early(flags: &Flags, number: u64) {
    if let Some(code) = flags.usage_and_exit {
        println!("{}", Flags::command().render_usage());
        eprintln!("error: an argument is missing");
        process::exit(code);
    }
    if let Some(code) = flags.exit {
        process::exit(code);
    }
    if number <= flags.exit_before_init {
        process::exit(3);
    }
}

/// What is written before anything is read.
fn start(server: &Server, stdout: &dyn Wire) {
    let flags = &server.flags;
    if flags.bom {
        stdout.bytes("\u{feff}".as_bytes());
    }
    flags.banner.iter().for_each(|text| stdout.line(text));
    script::flood_stderr(flags.stderr_at_start);
    if flags.child {
        let mut child = Command::new("sleep").arg("600").spawn().expect("there is a `sleep`");
        server.journal.event("child", json!({"child": child.id()}));
        thread::spawn(move || child.wait());
    }
}

/// No server outlives the test that holds its stdin, however the test ends.
fn end_with_stdin(server: Arc<Server>) {
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        if !server.flags.ignore_eof {
            process::exit(0);
        }
    });
}

fn watch_sigterm(server: Arc<Server>) {
    let mut signals = Signals::new([SIGTERM]).expect("SIGTERM can be watched");
    thread::spawn(move || {
        for _ in signals.forever() {
            server.journal.event("sigterm", json!({}));
            if !server.flags.ignore_sigterm {
                process::exit(128 + SIGTERM);
            }
        }
    });
}
