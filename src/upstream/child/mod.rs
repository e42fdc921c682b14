//! A server that is a process of ours: how it is started (`launch.rs`), one life of it (`life.rs`)
//! with its stderr, and what sees to it that none of its processes remains.

mod launch;
mod life;
mod process;
mod reaper;
mod stderr;

pub(crate) use launch::Launch;
pub(crate) use process::{Environment, SpawnError};
pub(crate) use reaper::{REAPER_ROLE, run_reaper};
