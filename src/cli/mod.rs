//! The command line (contract §2): one file a verb, and what they share.
#![expect(clippy::disallowed_macros, reason = "help, reports and errors are written by hand here")]

mod allow_lists;
mod check;
mod demo;
mod probe;
mod run;
mod serve;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{Config, ConfigError, Overrides, Upstream};
use crate::logging::{self, Stderr};
use crate::upstream::{Launch, REAPER_ROLE, RemoteServer, Server, run_reaper};

/// Exit codes (contract §2).
const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;
const INTERNAL: u8 = 70;

/// A transparent MCP proxy for tools that take longer than their client will wait.
///
/// Put `unhurry --` in front of a server's command, or `unhurry` in front of its URL. Fast calls pass
/// untouched; a call that takes too long is answered in time with a job_id, and `job_get` fetches
/// its result. `unhurry serve` does the same for clients that come over HTTP.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(override_usage = "unhurry [OPTIONS] (URL | -- COMMAND [ARGS]...)
       unhurry serve [OPTIONS] (URL | -- COMMAND [ARGS]...)
       unhurry check [OPTIONS] (URL | -- COMMAND [ARGS]...)
       unhurry demo [--verbose]")]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: Target,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serves clients over HTTP, at /mcp
    #[command(override_usage = "unhurry serve [OPTIONS] (URL | -- COMMAND [ARGS]...)")]
    Serve {
        /// Where clients connect, such as 127.0.0.1:8808
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Checks the configuration, asks the server, and prints each tool with its policy
    #[command(override_usage = "unhurry check [OPTIONS] (URL | -- COMMAND [ARGS]...)")]
    Check(Target),
    /// Shows a slow server without and with the proxy, as a client sees it
    Demo {
        /// Prints every message whole, as a line of JSON
        #[arg(long)]
        verbose: bool,
    },
    /// The server of the demonstration
    #[command(name = demo::SERVER, hide = true)]
    DemoServer,
}

/// A server and how to treat it.
#[derive(Debug, Args)]
struct Target {
    /// The config file [default: unhurry/config.toml in the user's config directory]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long a call may take before it is answered with a job_id, such as 25s
    #[arg(long, value_name = "DURATION")]
    answer_within: Option<String>,
    /// A variable for the server's command; ${VAR} is expanded
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A header for the server's URL; ${VAR} is expanded
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Where jobs are kept [possible values: memory]
    #[arg(long, value_name = "KIND")]
    store: Option<String>,
    /// What the names of job_get and job_cancel begin with
    #[arg(long, value_name = "PREFIX")]
    tool_prefix: Option<String>,
    /// What is logged to stderr: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: tracing::Level,
    /// The form of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: logging::Format,
    /// The server's URL
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// The server's command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The whole program. Only protocol lines, help and reports go to stdout.
pub fn main() -> ExitCode {
    // In its other role, the reaper, the program has to be there at once and to stay small.
    if std::env::args_os().nth(1).is_some_and(|role| role == REAPER_ROLE) {
        run_reaper();
        return ExitCode::SUCCESS;
    }
    end_on_panic();
    verb()
}

/// A bug of ours ends the process with a code of its own (§2). To go on without the task that it
/// hit would leave a client waiting for ever; the reaper ends the server.
#[expect(clippy::disallowed_methods, reason = "after a panic in a task nobody returns to `main`")]
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::exit(i32::from(INTERNAL));
    }));
}

fn verb() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match cli.verb {
        None => with_config(cli.run, None, run::run),
        Some(Verb::Serve { listen, target }) => with_config(target, listen, serve::serve),
        // Its report says all there is to say: only errors are logged.
        Some(Verb::Check(target)) => {
            let target = Target { log_level: tracing::Level::ERROR, ..target };
            with_config(target, None, check::check)
        }
        Some(Verb::Demo { verbose }) => block_on(demo::demo(verbose, environment())),
        Some(Verb::DemoServer) => demo::server(),
    }
}

/// What a verb gets to work with.
pub struct Context {
    /// What holds.
    pub config: Config,
    /// Our own environment, for the server.
    pub environment: Vec<(OsString, OsString)>,
    /// Where the server's stderr and our logs go.
    pub stderr: Stderr,
}

impl Context {
    /// The configured server; a process's stderr goes to `stderr`.
    fn server(&self, stderr: &Stderr) -> Server {
        match &self.config.upstream {
            Upstream::Command(command) => {
                let (environment, stderr) = (self.environment.clone(), stderr.clone());
                Server::Command(Launch::new(command.clone(), environment, stderr))
            }
            Upstream::Remote(remote) => Server::Remote(RemoteServer::new(remote)),
        }
    }
}

/// Why a verb can't begin: bad usage, or a bad configuration.
#[derive(Debug, thiserror::Error)]
enum UsageError {
    /// A word that is no URL, where the server's URL stands. A query, which may be a secret, is not
    /// repeated.
    #[error(
        "what is {0:?}? The server's command stands behind `--`: unhurry -- {0} …; its URL begins \
         with http:// or https://"
    )]
    StrayWord(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Loads the configuration, starts logging, and runs a verb.
fn with_config<F: Future<Output = u8>>(
    target: Target,
    listen: Option<String>,
    verb: impl FnOnce(Context) -> F,
) -> ExitCode {
    let environment = environment();
    let config = match load(&target, listen, &environment) {
        Ok(config) => config,
        Err(problem) => {
            eprintln!("unhurry: {problem}");
            return ExitCode::from(USAGE);
        }
    };
    let stderr = Stderr::start();
    logging::init(&stderr, target.log_level, target.log_format);
    let code = block_on(verb(Context { config, environment, stderr: stderr.clone() }));
    stderr.flush();
    code
}

/// Runs a verb on a runtime of one thread: over stdio all there is to do is to wait, and a second
/// thread would only cost wake-ups.
fn block_on(verb: impl Future<Output = u8>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("unhurry: cannot start: {error}");
            return ExitCode::from(INTERNAL);
        }
    };
    let code = runtime.block_on(verb);
    // A thread may still sit in a read of stdin; nobody waits for it.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// The environment of this process. Whoever needs it gets it from here.
#[expect(clippy::disallowed_methods, reason = "the one place where it is read")]
fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

fn load(
    target: &Target,
    listen: Option<String>,
    environment: &[(OsString, OsString)],
) -> Result<Config, UsageError> {
    if let Some(stray) = target.url.as_ref().filter(|url| !url.contains("://")) {
        let word = stray.split('?').next().unwrap_or_default();
        return Err(UsageError::StrayWord(word.to_owned()));
    }
    let text = |(name, value): &(OsString, OsString)| {
        Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
    };
    let environment: Vec<(String, String)> = environment.iter().filter_map(text).collect();
    let overrides = Overrides {
        config_file: target.config.clone(),
        answer_within: target.answer_within.clone(),
        env: target.env.clone(),
        headers: target.headers.clone(),
        listen,
        store: target.store.clone(),
        tool_prefix: target.tool_prefix.clone(),
        url: target.url.clone(),
        command: target.command.clone(),
    };
    Ok(Config::load(&overrides, &environment)?)
}
