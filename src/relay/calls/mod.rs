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
//! [`Calls`] (`under_way`) holds what is under way, `pending` the requests. `concurrency` and
//! `queue` give out the places of tools with `max_concurrent`; `call_headers` makes and checks the
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
mod queue;
mod recent;
mod under_way;
mod waiting;

pub(crate) use call::Call;
pub(crate) use concurrency::{Concurrency, ReadyCalls};
pub(crate) use pending::{PendingRequest, RequestKind};
pub(crate) use under_way::Calls;
