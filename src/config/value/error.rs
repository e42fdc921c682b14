//! Why a value is refused.

use crate::config::error::did_you_mean;

/// Why a text is no value of its key.
///
/// It has room for fixed words and for numbers only: the refused text may have come out of a
/// `${VAR}`, and be a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    /// It does not look like what the key takes.
    #[error("expected {form}{hint}")]
    Form { form: &'static str, hint: String },
    /// A number where TOML needs quotes and a unit.
    #[error("a bare number; write \"{number}{unit}\"")]
    BareNumber { number: f64, unit: &'static str },
    /// A number in quotes, without a unit.
    #[error("a number without a unit; write it like {example}")]
    NoUnit { example: &'static str },
    /// A duration that is a typing error, and would overflow clocks.
    #[error("longer than 10 years")]
    TooLong,
    /// A duration below 0.
    #[error("a duration cannot be negative")]
    Negative,
    /// A duration in days, weeks, months or years.
    #[error("days and longer have no fixed length; count in hours, like \"48h\"")]
    CalendarUnit,
    /// A duration of 0 where that would break everything.
    #[error("must be longer than 0")]
    ZeroDuration,
    /// A count of 0 where that would break everything.
    #[error("must be at least 1")]
    ZeroCount,
    /// A size below the least that works.
    #[error("must be at least {min} bytes")]
    TooSmall { min: u64 },
    /// A header that belongs to one hop.
    #[error("unhurry makes this header itself; take it out")]
    HeaderOfTheHop,
    /// A header that is in the table already.
    #[error("is here twice: names of headers may have any case")]
    HeaderTwice,
    /// A URL with a fragment.
    #[error("a server's URL has no fragment; take out the `#` and what follows")]
    Fragment,
    /// A URL with a user or a password.
    #[error(
        "no user or password in a URL: they end up in logs; send them with `upstream.headers` or \
         `--header`"
    )]
    UserInUrl,
    /// A token without a character.
    #[error("must not be empty; take the key out where no token is needed")]
    EmptyToken,
}

impl ValueError {
    /// The text does not look like `form`.
    pub(crate) fn form(form: &'static str) -> Self {
        ValueError::Form { form, hint: String::new() }
    }

    /// The text is none of the words `known`, which `form` lists; names the likely one.
    pub(crate) fn unknown_word(
        text: &str,
        known: impl IntoIterator<Item = &'static str>,
        form: &'static str,
    ) -> Self {
        ValueError::Form { form, hint: did_you_mean(text, known) }
    }
}
