//! The token that clients of `unhurry serve` must send.

use std::fmt;

use sha2::{Digest, Sha256};

use super::error::ValueError;
use super::text::FromText;

/// A secret that callers must know. Only its digest is kept, so it cannot be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken([u8; 32]);

impl BearerToken {
    /// Whether `given` is this token. How long that takes says nothing of where they differ, since
    /// digests are compared.
    pub fn is(&self, given: &[u8]) -> bool {
        self.0 == digest(given)
    }
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
}

impl FromText for BearerToken {
    const FORM: &'static str = "a token: visible ASCII characters, no spaces";
    const UNIT: Option<&'static str> = Some("");

    fn from_text(text: &str) -> Result<Self, ValueError> {
        if text.is_empty() {
            return Err(ValueError::EmptyToken);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ValueError::form(Self::FORM));
        }
        Ok(BearerToken(digest(text.as_bytes())))
    }
}
