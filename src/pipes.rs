//! Pipes, ours and those of the server.

/// Gives a pipe more room, so that large messages need fewer turns; no matter if it can't be had.
#[cfg(target_os = "linux")]
pub(crate) fn widen(pipe: &impl std::os::fd::AsFd) {
    use nix::fcntl::{FcntlArg, fcntl};
    const ROOM: i32 = 256 << 10;
    let _ = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(ROOM));
}

/// Pipes have one size here.
#[cfg(not(target_os = "linux"))]
pub fn widen<T>(_pipe: &T) {}
