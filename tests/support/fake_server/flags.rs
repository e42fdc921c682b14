//! The command line of the fake server: how it starts and what it can do.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

use crate::http::faults::Fault;

/// A scriptable MCP server, over stdio unless told otherwise.
#[derive(Parser, Default)]
#[command(name = "fake-server", disable_version_flag = true)]
pub(crate) struct Flags {
    /// Appends what is received and what happens, one JSON object a line.
    #[arg(long)]
    pub journal: Option<PathBuf>,

    /// Text printed to stdout, with a line end, before anything else; may be given several times.
    #[arg(long)]
    pub banner: Vec<String>,
    /// Starts stdout with a byte order mark.
    #[arg(long)]
    pub bom: bool,
    /// Ends lines with CR LF.
    #[arg(long)]
    pub crlf: bool,
    /// Writes every byte by itself.
    #[arg(long)]
    pub byte_writes: bool,
    /// Bytes written to stderr before anything is read.
    #[arg(long, default_value_t = 0)]
    pub stderr_at_start: usize,

    /// Exits at once with this code.
    #[arg(long, value_name = "CODE")]
    pub exit: Option<i32>,
    /// Prints its usage to stdout and exits with this code.
    #[arg(long, value_name = "CODE")]
    pub usage_and_exit: Option<i32>,
    /// Counts its processes here, for the two flags below.
    #[arg(long)]
    pub state_file: Option<PathBuf>,
    /// The first N processes exit with code 3 at their first `tools/call`.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "state_file")]
    pub crash_first: u64,
    /// The first N processes exit with code 3 at once.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "state_file")]
    pub exit_before_init: u64,
    /// Exits with code 3 at a `server/discover`.
    #[arg(long)]
    pub discover_dies: bool,

    /// Stays when stdin ends.
    #[arg(long)]
    pub ignore_eof: bool,
    /// Stays at a SIGTERM.
    #[arg(long)]
    pub ignore_sigterm: bool,
    /// Starts a child of its own that holds its pipes and sleeps for ten minutes.
    #[arg(long)]
    pub child: bool,

    /// Never answers `initialize` nor `server/discover`.
    #[arg(long)]
    pub silent: bool,
    /// Answers `initialize` and `server/discover` only after this many milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub slow_start: u64,
    /// Reads nothing while a call runs.
    #[arg(long)]
    pub block: bool,

    /// Speaks 2026-07-28 only.
    #[arg(long)]
    pub modern: bool,
    /// Speaks 2026-07-28 and all before it.
    #[arg(long)]
    pub dual: bool,
    /// Answers `initialize` with this version, instead of the client's.
    #[arg(long)]
    pub protocol: Option<String>,
    /// The `capabilities`, as raw JSON.
    #[arg(long)]
    pub capabilities: Option<String>,
    /// The `instructions`.
    #[arg(long)]
    pub instructions: Option<String>,

    /// Has no tools.
    #[arg(long)]
    pub no_tools: bool,
    /// A file with the JSON array of the tools to list, read anew for every list.
    #[arg(long)]
    pub tools: Option<PathBuf>,
    /// Answers no `tools/list`, and reads nothing, while there is such a file.
    #[arg(long, value_name = "FILE")]
    pub hold_lists: Option<PathBuf>,
    /// Lists this many tools a page.
    #[arg(long)]
    pub page_size: Option<usize>,
    /// `METHOD=JSON`: answers all requests of a method with this raw result.
    #[arg(long, value_name = "METHOD=JSON", value_parser = method_and_json)]
    pub answer: Vec<(String, String)>,
    /// Leaves all requests of a method unanswered.
    #[arg(long, value_name = "METHOD")]
    pub unanswered: Vec<String>,

    /// Serves Streamable HTTP at this address, on `/mcp`, and prints `listening on URL`.
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// Serves HTTP+SSE (2024-11-05) at this address, on `/sse`, and prints
    /// `listening on URL`.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "http")]
    pub sse: Option<SocketAddr>,
    /// The address in the `endpoint` event, with the session for `$SESSION` and `http://HOST:PORT` for
    /// `$BASE`.
    #[arg(long, default_value = "/messages?session=$SESSION")]
    pub endpoint: String,
    /// Tells no sessions apart and hands out no session ids.
    #[arg(long)]
    pub no_sessions: bool,
    /// Answers a POST with JSON; what is not the answer goes on the stream of the GET.
    #[arg(long)]
    pub json: bool,
    /// Asks its clients on the stream of their GET, not on that of the call.
    #[arg(long)]
    pub questions_apart: bool,
    /// Gives events of the legacy eras ids, and starts each stream with an empty event.
    #[arg(long)]
    pub event_ids: bool,
    /// The milliseconds in the `retry` field at the start of each stream.
    #[arg(long, value_name = "MS")]
    pub retry: Option<u64>,
    /// Breaks every connection of a stream after this time, whatever happens on it.
    #[arg(long, value_name = "MS")]
    pub cut_after: Option<u64>,
    /// Answers a call with nothing, not even headers, before there is a message.
    #[arg(long)]
    pub late_headers: bool,
    /// Refuses a POST whose headers break a rule of its era, or differ from its body.
    #[arg(long)]
    pub strict: bool,
    /// Wants this bearer token, and says so in its resource metadata.
    #[arg(long)]
    pub token: Option<String>,
    /// Something that goes wrong, as JSON (see `Fault`); may be given several times.
    #[arg(long, value_name = "JSON", value_parser = fault)]
    pub fault: Vec<Fault>,
}

fn method_and_json(text: &str) -> Result<(String, String), String> {
    let (method, json) = text.split_once('=').ok_or("METHOD=JSON expected")?;
    Ok((method.to_owned(), json.to_owned()))
}

fn fault(json: &str) -> Result<Fault, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}
