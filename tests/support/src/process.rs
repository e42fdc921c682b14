//! Processes, as `/proc` shows them.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::eventually;

/// Whether there is such a process, other than a zombie.
pub fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state != 'Z' && stat.state != 'X')
}

/// Waits until a process has ended.
pub async fn wait_gone(pid: u32) {
    let gone = eventually(|| async { (!alive(pid)).then_some(()) }).await;
    assert!(gone.is_some(), "process {pid} is still there");
}

/// The children of a process that run.
pub fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| stat(*pid).is_some_and(|stat| stat.parent == parent);
    all().filter(|pid| is_child(pid) && alive(*pid)).collect()
}

/// The running processes that have `NAME=VALUE` in their environment, as all descendants of a process
/// have that was started with it.
pub fn with_variable(name: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{name}={value}");
    let has_it = |pid: &u32| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    all().filter(|pid| has_it(pid) && alive(*pid)).collect()
}

/// The resident memory of a process in bytes; 0 if it is gone.
pub fn memory(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// The most resident memory that a process ever had, in bytes; 0 if it is gone.
pub fn peak_memory(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Sends a signal; to a process that is gone it does nothing.
pub fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

struct Stat {
    state: char,
    parent: u32,
}

/// The fields after the name, which stands in parentheses and may hold any character.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
