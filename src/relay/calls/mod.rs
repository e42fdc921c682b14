//! The life of a request, and above all of a `tools/call`.
//!
//! ```text
//!  attached ──(answer in time)──► answered                       attach, finish
//!     │
//!     ├──(budget ends: handle)──┐                                detach
//!     ├──(client gave up)───────┤                                cancel, disconnect
//!     ▼                         ▼
//!  cancelled upstream        detached = a job ──► its end        job_tools, waiting, input
//! ```
//!
//! What is under way is in `state/calls`. `queue` is about tools with `max_concurrent`, and
//! `call_headers` makes and checks the headers that repeat arguments.

mod attach;
mod budget;
mod call_headers;
mod cancel;
mod detach;
mod disconnect;
mod finish;
mod input;
mod job_tools;
mod queue;
mod waiting;
