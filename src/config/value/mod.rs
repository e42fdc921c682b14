//! What a key may hold: one type for each form in which a value is written (contract §3). Nothing
//! in here knows which keys there are.

mod addresses;
mod choices;
mod duration;
mod error;
mod headers;
mod size;
mod text;
mod token;
mod tool_prefix;

pub(crate) use addresses::{Host, Origin};
pub use choices::{Duplicates, OnClientCancel, StoreKind, Transport};
pub use duration::Budget;
pub(crate) use duration::ExpectedDuration;
pub(crate) use headers::Headers;
pub(crate) use size::{PageBytes, Size};
pub(crate) use text::{Text, at_least_one, positive, text};
pub use token::BearerToken;
pub(crate) use tool_prefix::ToolPrefix;
