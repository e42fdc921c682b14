//! Keys that take one of a few words.

use super::error::ValueError;
use super::text::FromText;

/// How a client's cancel before the handle is read (contract §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnClientCancel {
    /// Tell a user's cancel from a time-out.
    Auto,
    /// It is the user's: forward it.
    Cancel,
    /// It is a time-out: the job goes on.
    Detach,
}

impl FromText for OnClientCancel {
    const FORM: &'static str = "`auto`, `cancel` or `detach`";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        choose(text, [("auto", Self::Auto), ("cancel", Self::Cancel), ("detach", Self::Detach)])
    }
}

/// What happens to a call that equals a running or just finished one (contract §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// It waits for that one.
    Join,
    /// It runs by itself.
    Run,
}

impl FromText for Duplicates {
    const FORM: &'static str = "`join` or `run`";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        choose(text, [("join", Self::Join), ("run", Self::Run)])
    }
}

/// Where jobs are kept (contract §11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Gone with the process.
    Memory,
}

impl FromText for StoreKind {
    const FORM: &'static str = "`memory`";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        choose(text, [("memory", Self::Memory)])
    }
}

/// How MCP is spoken over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Found out from the server's answers.
    #[default]
    Auto,
    /// 2025-03-26 and later.
    StreamableHttp,
    /// HTTP+SSE, 2024-11-05.
    Sse,
}

impl FromText for Transport {
    const FORM: &'static str = "`auto`, `streamable-http` or `sse`";

    fn from_text(text: &str) -> Result<Self, ValueError> {
        let known =
            [("auto", Self::Auto), ("streamable-http", Self::StreamableHttp), ("sse", Self::Sse)];
        choose(text, known)
    }
}

/// The one of `known` that is called `text`.
fn choose<T: FromText + Copy, const N: usize>(
    text: &str,
    known: [(&'static str, T); N],
) -> Result<T, ValueError> {
    let chosen = known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    let names = known.iter().map(|(name, _)| *name);
    chosen.ok_or_else(|| ValueError::unknown_word(text, names, T::FORM))
}
