//! The wrapper, `unhurry -- COMMAND`: a client on stdio in front of a server that is its child.
#![forbid(unsafe_code)]

mod bad_input;
mod batches;
mod budgets;
mod cancel;
mod concurrency;
mod crashes;
mod duplicates;
mod eras;
mod framing;
mod greeting;
mod handles;
mod handles_by_era;
mod ids;
mod input;
mod job_cancel;
mod job_get;
mod limits;
mod lists;
mod logs;
mod names;
mod other_requests;
mod pages;
mod processes;
mod progress;
mod requests_of_the_server;
mod results;
mod shutdown;
