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

pub use addresses::{Host, Origin};
pub use choices::{Duplicates, OnClientCancel, StoreKind, Transport};
pub use duration::{Budget, ExpectedDuration};
pub use headers::Headers;
pub use size::{PageBytes, Size};
pub use text::{Text, at_least_one, positive, text};
pub use token::BearerToken;
pub use tool_prefix::ToolPrefix;
