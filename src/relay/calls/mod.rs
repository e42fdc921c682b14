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
//! What is under way stands in [`Calls`] (`under_way`), the requests in `pending`. `concurrency` and
//! `turns` hand out the places of tools with `max_concurrent`; `call_headers` makes and checks the
//! headers that repeat arguments.

mod attach;
mod budget;
mod call;
mod call_headers;
mod cancel;
mod concurrency;
mod detach;
mod disconnect;
mod finish;
mod input;
mod job_tools;
mod pending;
mod policies;
mod recent;
mod turns;
mod under_way;
mod waiting;

pub(crate) use call::Call;
pub(crate) use concurrency::{Concurrency, Turns};
pub(crate) use pending::{PendingRequest, RequestKind};
pub(crate) use under_way::Calls;
