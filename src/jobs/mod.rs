//! Jobs: calls whose caller did not wait for the answer.
//!
//! [`record`] says what a job is, [`live`] who runs it and who waits for it; [`store`] keeps the
//! records, and every change goes through [`registry`]. What clients and models see of jobs is in
//! [`tools`] (`job_get`, `job_cancel`), [`handle`] and [`pages`]; every sentence is in [`wording`].
//! Nothing here knows of transports.

pub(crate) mod caller;
pub(crate) mod duplicates;
pub(crate) mod eta;
pub(crate) mod handle;
mod joinable;
pub(crate) mod live;
pub(crate) mod pages;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod store;
pub(crate) mod tools;
pub(crate) mod wording;
