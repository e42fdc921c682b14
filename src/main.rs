//! The `unhurry` program: parse, log to stderr, run a verb, exit with its code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // The reaper is looked for before anything else: it must be there at once, and small.
    if std::env::args_os().nth(1).is_some_and(|role| role == unhurry::upstream::reaper::ROLE) {
        unhurry::upstream::reaper::run();
        return ExitCode::SUCCESS;
    }
    // A bug of ours has an exit code of its own (CONTRACT §2); its message went to stderr.
    std::panic::catch_unwind(unhurry::cli::main).unwrap_or(ExitCode::from(unhurry::cli::INTERNAL))
}
