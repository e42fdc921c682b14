//! How a value that is written as text gets from TOML into its type.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::error::ValueError;

/// A value that is written as text in TOML.
pub(crate) trait FromText: Sized {
    /// What it has to look like, for errors.
    const FORM: &'static str;
    /// What a bare number most likely lacks, where a number makes sense at all.
    const UNIT: Option<&'static str> = None;

    /// # Errors
    /// What is wrong with `text`, without `text` itself.
    fn from_text(text: &str) -> Result<Self, ValueError>;
}

/// For `#[serde(deserialize_with)]`: a value that is written as text.
///
/// # Errors
/// It is no text, or [`FromText::from_text`] refuses it.
pub(crate) fn text<'de, D: Deserializer<'de>, T: FromText>(from: D) -> Result<Option<T>, D::Error> {
    from.deserialize_any(TextVisitor(PhantomData)).map(Some)
}

/// For `#[serde(deserialize_with)]`: a duration that would break everything if it were 0.
///
/// # Errors
/// It is no duration, or 0.
pub(crate) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    match text(from)? {
        Some(Duration::ZERO) => Err(D::Error::custom(ValueError::ZeroDuration)),
        duration => Ok(duration),
    }
}

/// For `#[serde(deserialize_with)]`: a count that must not be 0.
///
/// # Errors
/// It is no whole number, or 0.
pub(crate) fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    match usize::deserialize(from)? {
        0 => Err(D::Error::custom(ValueError::ZeroCount)),
        count => Ok(Some(count)),
    }
}

/// A value that is written as text, within a list or a table.
#[derive(Debug)]
pub(crate) struct Text<T>(pub T);

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextVisitor(PhantomData)).map(Text)
    }
}

/// Takes text, and refuses bare numbers with the right spelling. Numbers never come out of a
/// `${VAR}`, so they may be repeated.
struct TextVisitor<T>(PhantomData<T>);

impl<T: FromText> TextVisitor<T> {
    fn refuse<E: Error>(number: f64) -> Result<T, E> {
        Err(E::custom(match T::UNIT {
            Some(unit) if number >= 0.0 && number.is_finite() => {
                ValueError::BareNumber { number, unit }
            }
            _ => ValueError::form(T::FORM),
        }))
    }
}

impl<T: FromText> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::FORM)
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

/// Whether `text` would be a number if it stood without quotes.
pub(crate) fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}
