//! Values that are written as text: durations, sizes, budgets, choices (contract §3).
//!
//! No error in here holds the text it refuses: it may have come out of a `${VAR}`.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bytesize::ByteSize;
use jiff::fmt::friendly::SpanParser;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::StoreKind;
use super::error::did_you_mean;
use super::policy::{Budget, Duplicates, OnClientCancel};

/// A value that is written as text in TOML.
pub(super) trait FromText: Sized {
    /// What it has to look like, for errors.
    const EXPECTED: &'static str;
    /// What a bare number most likely lacks, where a number makes sense at all.
    const UNIT: Option<&'static str> = None;

    /// # Errors
    /// A sentence that says what is wrong, without `text` itself.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// For `#[serde(deserialize_with)]`: a value that is written as text.
pub(super) fn text<'de, D: Deserializer<'de>, T: FromText>(from: D) -> Result<Option<T>, D::Error> {
    from.deserialize_any(TextVisitor(PhantomData)).map(Some)
}

/// A value that is written as text, within a list or a table.
#[derive(Debug)]
pub(super) struct Text<T>(pub T);

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextVisitor(PhantomData)).map(Text)
    }
}

/// For `#[serde(deserialize_with)]`: a count that must not be 0.
pub(super) fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    match usize::deserialize(from)? {
        0 => Err(D::Error::custom("must be at least 1")),
        count => Ok(Some(count)),
    }
}

/// For `#[serde(deserialize_with)]`: a duration that would break everything if it were 0.
pub(super) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    match text(from)? {
        Some(Duration::ZERO) => Err(D::Error::custom("must be longer than 0")),
        duration => Ok(duration),
    }
}

/// Takes text, and refuses bare numbers with the right spelling. Numbers never come out of a
/// `${VAR}`, so they may be repeated.
struct TextVisitor<T>(PhantomData<T>);

impl<T: FromText> TextVisitor<T> {
    fn refuse<E: Error>(number: f64) -> Result<T, E> {
        Err(E::custom(match T::UNIT {
            Some(unit) if number >= 0.0 && number.is_finite() => {
                format!("a bare number; write \"{number}{unit}\"")
            }
            _ => format!("expected {}", T::EXPECTED),
        }))
    }
}

impl<T: FromText> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Self::refuse(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Self::refuse(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        Self::refuse(number)
    }
}

/// Longer ones are typing errors, and would overflow clocks.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

impl FromText for Duration {
    const EXPECTED: &'static str = "a duration like \"25s\", \"2m\" or \"1h30m\"";
    const UNIT: Option<&'static str> = Some("s");

    fn from_text(text: &str) -> Result<Self, String> {
        duration(text, Self::EXPECTED)
    }
}

fn duration(text: &str, expected: &str) -> Result<Duration, String> {
    match SpanParser::new().parse_unsigned_duration(text) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) => Err("longer than 10 years".into()),
        Err(_) => Err(no_duration(text, expected)),
    }
}

/// Why `text` is no duration.
fn no_duration(text: &str, expected: &str) -> String {
    if is_number(text) {
        return "a number without a unit; write it like \"25s\"".into();
    }
    match SpanParser::new().parse_span(text) {
        Ok(span) if span.is_negative() => "a duration cannot be negative".into(),
        Ok(_) => "days and longer have no fixed length; count in hours, like \"48h\"".into(),
        Err(_) => format!("expected {expected}"),
    }
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

/// A number of bytes, at least `MIN`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size<const MIN: u64 = 0>(pub u64);

impl<const MIN: u64> Size<MIN> {
    /// The size of something in memory: what does not fit the address space is no limit.
    pub fn in_memory(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64> FromText for Size<MIN> {
    const EXPECTED: &'static str = "a size like \"64KiB\", \"10MB\" or \"1GiB\"";
    const UNIT: Option<&'static str> = Some("B");

    fn from_text(text: &str) -> Result<Self, String> {
        if is_number(text) {
            return Err("a number without a unit; write it like \"64KiB\" or \"500B\"".into());
        }
        match text.parse::<ByteSize>() {
            Ok(ByteSize(bytes)) if bytes >= MIN => Ok(Size(bytes)),
            Ok(_) => Err(format!("must be at least {MIN} bytes")),
            Err(_) => Err(format!("expected {}", Self::EXPECTED)),
        }
    }
}

impl FromText for Budget {
    const EXPECTED: &'static str = "a duration like \"25s\", or \"never\"";
    const UNIT: Option<&'static str> = Some("s");

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Budget::Never);
        }
        duration(text, Self::EXPECTED).map(Budget::After)
    }
}

/// The usual duration of a tool; the empty text is "not known".
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected(pub Option<Duration>);

impl FromText for Expected {
    const EXPECTED: &'static str = "a duration like \"2m\", or \"\"";
    const UNIT: Option<&'static str> = Some("s");

    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Expected(None));
        }
        duration(text, Self::EXPECTED).map(|usual| Expected(Some(usual)))
    }
}

/// The start of our tools' names. Only what every client takes in a tool's name, and short enough
/// to leave room under their limit of 64 characters.
#[derive(Debug)]
pub(super) struct Prefix(pub String);

impl FromText for Prefix {
    const EXPECTED: &'static str = "at most 32 letters, digits, `_`, `.` or `-`";
    const UNIT: Option<&'static str> = Some("");

    fn from_text(text: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if text.len() > 32 || !text.chars().all(allowed) {
            return Err(format!("expected {}", Self::EXPECTED));
        }
        Ok(Prefix(text.into()))
    }
}

impl FromText for OnClientCancel {
    const EXPECTED: &'static str = "`auto`, `cancel` or `detach`";

    fn from_text(text: &str) -> Result<Self, String> {
        let known = [("auto", Self::Auto), ("cancel", Self::Cancel), ("detach", Self::Detach)];
        choose(text, known, Self::EXPECTED)
    }
}

impl FromText for Duplicates {
    const EXPECTED: &'static str = "`join` or `run`";

    fn from_text(text: &str) -> Result<Self, String> {
        choose(text, [("join", Self::Join), ("run", Self::Run)], Self::EXPECTED)
    }
}

impl FromText for StoreKind {
    const EXPECTED: &'static str = "`memory`";

    fn from_text(text: &str) -> Result<Self, String> {
        choose(text, [("memory", Self::Memory)], Self::EXPECTED)
    }
}

/// The one of `known` that is called `text`.
pub(super) fn choose<T, const N: usize>(
    text: &str,
    known: [(&'static str, T); N],
    expected: &str,
) -> Result<T, String> {
    let hint = did_you_mean(text, known.iter().map(|(name, _)| *name));
    let chosen = known.into_iter().find(|(name, _)| *name == text);
    chosen.map(|(_, value)| value).ok_or_else(|| format!("expected {expected}{hint}"))
}
