//! Calls that outlived their budget.
//!
//! [`record`] says what a job is, [`live`] who runs it and who waits for it; [`store`] keeps the
//! records, and every change goes through [`registry`]. What clients and models see of jobs is in
//! [`tools`] (`job_get`, `job_cancel`), [`handle`] and [`pages`]; every sentence is in [`wording`].
//! Nothing here knows of transports.

pub mod caller;
pub mod duplicates;
pub mod eta;
pub mod handle;
mod joinable;
pub mod live;
pub mod pages;
pub mod record;
pub mod registry;
pub mod store;
pub mod tools;
pub mod wording;
