//! Status codes of HTTP.

use support::json::path;

/// The words for a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        415 => "Unsupported Media Type",
        502 => "Bad Gateway",
        _ => "Whatever",
    }
}

/// The status for a response of 2026-07-28 while none has been sent (protocol §1.2).
pub(crate) fn of_response(response: &str) -> u16 {
    match path(response, &["error", "code"]) {
        Some("-32601") => 404,
        Some("-32020" | "-32021" | "-32022") => 400,
        _ => 200,
    }
}
