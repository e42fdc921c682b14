//! The parts of a cause that are for the user alone: the server's stderr and our environment
//! (contract §9).

/// What stands between the cause of an end and the last lines of the server's stderr.
pub(crate) const STDERR: &str = "; its stderr ended with:\n";
/// What stands before the `PATH` in an error.
pub(crate) const PATH: &str = " (PATH=";

/// The part of a cause that strangers may read: neither the server's stderr nor our environment.
pub(crate) fn without_details(cause: &str) -> &str {
    let end = |mark| cause.find(mark).unwrap_or(cause.len());
    &cause[..end(STDERR).min(end(PATH))]
}
