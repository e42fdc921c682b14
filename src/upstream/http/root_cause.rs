//! Errors of connections, in words for people.

use std::error::Error;
use std::io::{self, ErrorKind::UnexpectedEof};

/// The innermost cause of an error, which is what people can act on: a part of a sentence.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if innermost.downcast_ref().is_some_and(|e: &io::Error| e.kind() == UnexpectedEof) {
        return "it was closed in the middle".to_owned();
    }
    let text = innermost.to_string();
    // The words of rustls are for its users.
    if text.ends_with("InvalidContentType") {
        return "it does not speak TLS; is its URL one of http://?".to_owned();
    }
    if text == "tls handshake eof" {
        return "it hung up in the middle of the TLS handshake".to_owned();
    }
    // "Connection refused (os error 111)"
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_owned()
}
