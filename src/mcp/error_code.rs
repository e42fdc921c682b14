//! The codes of JSON-RPC and MCP errors that the proxy reads or sends (protocol §1.2).

use std::ops::RangeInclusive;

use rmcp::model::ErrorCode;

/// The message is no JSON.
pub(crate) const PARSE_ERROR: i32 = ErrorCode::PARSE_ERROR.0;
/// The message is no legal request.
pub(crate) const INVALID_REQUEST: i32 = ErrorCode::INVALID_REQUEST.0;
/// The receiver does not have the method.
pub(crate) const METHOD_NOT_FOUND: i32 = ErrorCode::METHOD_NOT_FOUND.0;
/// The parameters of a request are not legal.
pub(crate) const INVALID_PARAMS: i32 = ErrorCode::INVALID_PARAMS.0;
/// The receiver can't answer the request.
pub(crate) const INTERNAL_ERROR: i32 = ErrorCode::INTERNAL_ERROR.0;

/// A request over HTTP was refused (legacy era).
pub(crate) const REFUSED: i32 = -32000;
/// The session of a request is not known (legacy era).
pub(crate) const NO_SESSION: i32 = -32001;
/// A header differs from the body (2026-07-28).
pub(crate) const HEADER_MISMATCH: i32 = -32020;
/// The server does not speak the revision of a request (2026-07-28).
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;
/// The user has to open a URL first: clients act on this error.
pub(crate) const URL_ELICITATION_REQUIRED: i32 = -32042;

/// The errors that only servers of the modern era send.
pub(crate) const MODERN: RangeInclusive<i32> = UNSUPPORTED_VERSION..=HEADER_MISMATCH;
