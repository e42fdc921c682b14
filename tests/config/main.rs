//! What is set before the program does its work: the command line, the configuration in all its layers,
//! the files in `deploy/`, and `unhurry check`, which shows what holds.
#![forbid(unsafe_code)]

mod check;
mod check_url;
mod command_line;
mod config;
mod config_budget;
mod config_example;
mod config_http;
mod demo;
mod deploy;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A file `config.toml` with this text, in a new folder that is called `folder`.
fn written(folder: &str, text: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(number).join(folder);
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("config.toml");
    fs::write(&file, text).expect("a file in it");
    file
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
