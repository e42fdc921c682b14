//! What the names of our tools begin with.

use super::error::ValueError;
use super::text::FromText;

/// The start of our tools' names. Only what every client takes in a tool's name, and short enough
/// to leave room under their limit of 64 characters.
#[derive(Debug)]
pub(crate) struct ToolPrefix(pub String);

impl FromText for ToolPrefix {
    const FORM: &'static str = "at most 32 letters, digits, `_`, `.` or `-`";
    const UNIT: Option<&'static str> = Some("");

    fn from_text(text: &str) -> Result<Self, ValueError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if text.len() > 32 || !text.chars().all(allowed) {
            return Err(ValueError::form(Self::FORM));
        }
        Ok(ToolPrefix(text.into()))
    }
}
