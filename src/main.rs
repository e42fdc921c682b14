//! The `unhurry` program: parse, log to stderr, run a verb, exit with its code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // The reaper is looked for before anything else: it must be there at once, and small.
    if std::env::args_os().nth(1).is_some_and(|role| role == unhurry::upstream::reaper::ROLE) {
        unhurry::upstream::reaper::run();
        return ExitCode::SUCCESS;
    }
    // A bug of ours ends the process with a code of its own (CONTRACT §2). To go on without the
    // task that it hit would leave a client waiting for ever; the reaper ends the server.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::exit(i32::from(unhurry::cli::INTERNAL));
    }));
    unhurry::cli::main()
}
