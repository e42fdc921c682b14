//! Calls that outlived their budget: one state machine ([`job`]), one [`registry`], and what
//! clients and models see of them ([`handle`], [`tools`], [`pages`]). Nothing here knows of
//! transports.

pub mod caller;
pub mod duplicates;
pub mod eta;
pub mod handle;
pub mod job;
pub mod pages;
pub mod registry;
pub mod tools;
