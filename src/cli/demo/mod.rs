//! `unhurry demo`: a slow tool, called without unhurry and through it. First a timeline of who waits
//! for whom, then the messages. All of it is measured: both cases are run, side by side.

mod client;
mod error;
mod layout;
mod report;
mod scene;
mod server;
mod timeline;
mod transcript;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};

use super::INTERNAL;
use error::DemoError;
use scene::Program;

pub(crate) use server::{VERB as SERVER, serve as server};

/// Runs the demonstration and prints it; with `verbose`, every message whole. Returns the exit code.
pub(crate) async fn demo(verbose: bool, environment: Vec<(OsString, OsString)>) -> u8 {
    match show(verbose, environment).await {
        Ok(()) => 0,
        // Whoever closed our stdout, such as `head`, has seen enough.
        Err(DemoError::Print(error)) if error.kind() == ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("unhurry: the demonstration failed: {error}");
            INTERNAL
        }
    }
}

async fn show(verbose: bool, environment: Vec<(OsString, OsString)>) -> Result<(), DemoError> {
    let program = Program::this(environment)?;
    print(&report::introduction())?;
    let (without, with) =
        tokio::try_join!(scene::without_unhurry(&program), scene::with_unhurry(&program))?;
    print(&report::timeline(&without, &with))?;
    print(&report::messages(&without, &with, verbose))
}

fn print(text: &str) -> Result<(), DemoError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(DemoError::Print)
}
