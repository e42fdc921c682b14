//! `unhurry`, a transparent MCP proxy for slow tools.
//!
//! A message goes straight through: one parse of its envelope, one write. A `tools/call` that
//! outlasts its budget becomes a job; its caller gets a handle, and the result is kept.
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | one file a verb: `run`, `serve`, `check`, `demo` |
//! | [`config`] | what was typed becomes what the program uses |
//! | `sidecar` | many clients over HTTP: their sessions, and who may use them |
//! | `relay` | what passes between a client and a server, and the life of a call |
//! | `downstream` | a client's side: stdin and stdout or HTTP, and where answers go |
//! | `upstream` | the server's side: its process or its URL, and starting it anew |
//! | `jobs` | calls that went to the background, where they are kept, and what is said of them |
//! | `mcp` | the words of MCP: methods, revisions, error codes, headers, `_meta` |
//! | `rpc` | JSON-RPC as text: envelope, splices, framing |
//! | `logging` | lines on stderr that never block the relay |
//!
//! Knowledge runs one way: `cli → sidecar → relay → (downstream | upstream | jobs) → mcp → rpc`.
//! `docs/architecture.md` is the whole map.
#![forbid(unsafe_code)]
// The list stands in `clippy.toml`; tests and benches are free of it (`Cargo.toml`).
#![warn(clippy::disallowed_methods, clippy::disallowed_macros)]

pub mod cli;
pub mod config;
mod downstream;
mod jobs;
mod logging;
mod mcp;
mod pipes;
mod relay;
mod rpc;
mod sidecar;
mod upstream;
