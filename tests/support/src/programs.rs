//! Where the programs are that the tests start.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The program that is tested. Cargo says where it is; without cargo, say in a debugger, it is the one
/// in the folder above the test's own.
pub fn unhurry() -> PathBuf {
    if let Some(program) = env::var_os("CARGO_BIN_EXE_unhurry") {
        return program.into();
    }
    let test = env::current_exe().expect("a process knows its program");
    let folder = test.ancestors().nth(2).expect("a test is two folders deep in `target`");
    folder.join(format!("unhurry{}", env::consts::EXE_SUFFIX))
}

/// The program `fake-server`, which `cargo test` builds as an example (`cargo test --test NAME` does
/// not).
pub fn fake_server() -> PathBuf {
    const BUILD: &str = "run `cargo build --example fake-server` first";
    let directory = unhurry().with_file_name("examples");
    let program = directory.join(format!("fake-server{}", env::consts::EXE_SUFFIX));
    let Some(built) = modified(&program) else { panic!("no {}: {BUILD}", program.display()) };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("fake_server");
    let directories = [sources.join("http"), sources];
    let files = directories.iter().map(|path| fs::read_dir(path).expect("the sources are there"));
    let is_newer = |path: &Path| modified(path).is_some_and(|changed| changed > built);
    let stale = files.flatten().flatten().any(|file| is_newer(&file.path()));
    assert!(!stale, "{} is older than its sources: {BUILD}", program.display());
    program
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
