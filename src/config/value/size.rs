//! Sizes in bytes.

use bytesize::ByteSize;

use super::error::ValueError;
use super::text::{FromText, is_number};

/// A number of bytes, at least `MIN`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size<const MIN: u64 = 0>(pub u64);

/// The size of a page. A smaller one could not hold its own `next_action`.
pub(crate) type PageBytes = Size<256>;

impl<const MIN: u64> Size<MIN> {
    /// The size of something in memory: what does not fit the address space is no limit.
    pub(crate) fn in_memory(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64> FromText for Size<MIN> {
    const FORM: &'static str = "a size like \"64KiB\", \"10MB\" or \"1GiB\"";
    const UNIT: Option<&'static str> = Some("B");

    fn from_text(text: &str) -> Result<Self, ValueError> {
        if is_number(text) {
            return Err(ValueError::NoUnit { example: "\"64KiB\" or \"500B\"" });
        }
        match text.parse::<ByteSize>() {
            Ok(ByteSize(bytes)) if bytes >= MIN => Ok(Size(bytes)),
            Ok(_) => Err(ValueError::TooSmall { min: MIN }),
            Err(_) => Err(ValueError::form(Self::FORM)),
        }
    }
}
