//! Durations, and the words that may stand in the place of one.

use std::time::Duration;

use jiff::fmt::friendly::SpanParser;

use super::error::ValueError;
use super::text::{FromText, is_number};

const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

impl FromText for Duration {
    const FORM: &'static str = "a duration like \"25s\", \"2m\" or \"1h30m\"";
    const UNIT: Option<&'static str> = Some("s");

    fn from_text(text: &str) -> Result<Self, ValueError> {
        parse(text, Self::FORM)
    }
}

fn parse(text: &str, form: &'static str) -> Result<Duration, ValueError> {
    match SpanParser::new().parse_unsigned_duration(text) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) => Err(ValueError::TooLong),
        Err(_) => Err(why_no_duration(text, form)),
    }
}

fn why_no_duration(text: &str, form: &'static str) -> ValueError {
    if is_number(text) {
        return ValueError::NoUnit { example: "\"25s\"" };
    }
    match SpanParser::new().parse_span(text) {
        Ok(span) if span.is_negative() => ValueError::Negative,
        Ok(_) => ValueError::CalendarUnit,
        Err(_) => ValueError::form(form),
    }
}

/// How long a caller waits before it gets a handle (contract §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// A handle after this time; 0 is "at once".
    After(Duration),
    /// Always the answer itself.
    Never,
}

impl Budget {
    /// The time until the handle, if there ever is one.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Budget::After(duration) => Some(duration),
            Budget::Never => None,
        }
    }
}

impl FromText for Budget {
    const FORM: &'static str = "a duration like \"25s\", or \"never\"";
    const UNIT: Option<&'static str> = Some("s");

    fn from_text(text: &str) -> Result<Self, ValueError> {
        if text == "never" {
            return Ok(Budget::Never);
        }
        parse(text, Self::FORM).map(Budget::After)
    }
}

/// The usual duration of a tool; the empty text is "not known".
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedDuration(pub Option<Duration>);

impl FromText for ExpectedDuration {
    const FORM: &'static str = "a duration like \"2m\", or \"\"";
    const UNIT: Option<&'static str> = Some("s");

    fn from_text(text: &str) -> Result<Self, ValueError> {
        if text.is_empty() {
            return Ok(ExpectedDuration(None));
        }
        parse(text, Self::FORM).map(|usual| ExpectedDuration(Some(usual)))
    }
}
