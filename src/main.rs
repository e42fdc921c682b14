//! The `unhurry` program.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    unhurry::cli::main()
}
