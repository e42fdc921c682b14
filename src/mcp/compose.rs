//! Messages of our own, as lines.

use bytes::Bytes;

use crate::rpc::id::Id;
use crate::rpc::string::quoted;

use super::meta::SUBSCRIPTION_ID;
use super::method::Method;

/// A request of our own; `params` is raw JSON.
pub(crate) fn request_line(id: &Id, method: Method, params: Option<&str>) -> Bytes {
    let method = method.as_str();
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"{params}}}"#, id.to_json()).into()
}

/// A result of our own; `id` and `result` are raw JSON.
pub(crate) fn result_line(id: &str, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

/// An error of our own; `id` is raw JSON.
pub(crate) fn error_line(id: &str, code: i32, message: &str) -> Bytes {
    raw_error_line(id, &format!(r#"{{"code":{code},"message":{}}}"#, quoted(message)))
}

/// An error; `id` and `error` are raw JSON.
pub(crate) fn raw_error_line(id: &str, error: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
}

/// A notification of our own; `params` is raw JSON.
pub(crate) fn notification_line(method: Method, params: Option<&str>) -> Bytes {
    let method = method.as_str();
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#).into()
}

/// A `notifications/cancelled` for a request to the server.
pub(crate) fn cancelled_line(id: &Id, reason: &str) -> Bytes {
    let (id, reason) = (id.to_json(), quoted(reason));
    let params = format!(r#"{{"requestId":{id},"reason":{reason}}}"#);
    notification_line(Method::Cancelled, Some(&params))
}

/// Progress of our own. `token`: raw JSON.
pub(crate) fn progress_line(token: &str, progress: u64, message: &str) -> Bytes {
    let message = quoted(message);
    let params =
        format!(r#"{{"progressToken":{token},"progress":{progress},"message":{message}}}"#);
    notification_line(Method::Progress, Some(&params))
}

/// The end of a subscription from our side (protocol §2). `id`: of the `subscriptions/listen`, raw
/// JSON.
pub(crate) fn subscription_end_line(id: &str) -> Bytes {
    let meta = format!(r#"{{"{SUBSCRIPTION_ID}":{id}}}"#);
    result_line(id, &format!(r#"{{"resultType":"complete","_meta":{meta}}}"#))
}
