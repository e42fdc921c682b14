//! Members of `_meta`: their keys, and the edits of them that contract §1.1 allows.

use crate::rpc::message::Envelope;
use crate::rpc::object::Members;
use crate::rpc::splice::Edits;
use crate::rpc::string::quoted;

/// The revision of a modern request.
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client that sends a modern request.
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The capabilities of the client that sends a modern request.
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The level from which on a modern request wants log messages.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Name and version of a modern server, in the result of `server/discover`.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The `subscriptions/listen` that a notification belongs to: the id of that request.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token with which progress of a request is sent.
pub(crate) const PROGRESS_TOKEN: &str = "progressToken";

/// §1.1.4: the budget that the caller asks for, in seconds; it is not forwarded.
pub(crate) const ANSWER_WITHIN: &str = "unhurry/answer_within";

/// §1.1.2: the `outputSchema` of a deferrable tool, moved here.
pub(crate) const OUTPUT_SCHEMA: &str = "unhurry/outputSchema";

/// §4.2: the status of a job, in every answer about it.
pub(crate) const JOB: &str = "unhurry/job";

/// How the `_meta` of a request is edited on its way to the server.
#[derive(Default)]
pub(crate) struct MetaEdit<'a> {
    /// §1.1.4: take out `unhurry/answer_within`
    pub drop_answer_within: bool,
    /// §1.1.1, §1.1.4: the progress token to put in, as raw JSON
    pub token: Option<&'a str>,
}

/// §1.1.4: edits of `params._meta` of a request, given the envelope parsed from `text`.
pub(crate) fn edit_meta(edits: &mut Edits, text: &str, envelope: &Envelope, change: &MetaEdit) {
    let token = change.token.map(|token| format!(r#"{{"{PROGRESS_TOKEN}":{token}}}"#));
    let Some(params) = envelope.params else {
        if let Some(meta) = token {
            edits.set_member(text, text, "params", &format!(r#"{{"_meta":{meta}}}"#));
        }
        return;
    };
    let Some(members) = Members::parse(params) else { return };
    match (members.get("_meta"), token) {
        (Some(meta), _) => {
            let mut changes = Vec::new();
            if change.drop_answer_within {
                changes.push((ANSWER_WITHIN, None));
            }
            if change.token.is_some() {
                changes.push((PROGRESS_TOKEN, change.token));
            }
            edits.edit_object(text, meta, &changes);
        }
        (None, Some(meta)) => edits.set_member(text, params, "_meta", &meta),
        (None, None) => {}
    }
}

/// §5.1: a result with `_meta["unhurry/job"]`, nothing else changed. `job` is raw JSON.
pub(crate) fn with_job(result: &str, job: &str) -> String {
    let mut edits = Edits::new();
    let alone = format!("{{{}:{job}}}", quoted(JOB));
    match Members::parse(result).and_then(|members| members.get("_meta")) {
        Some(meta) if Members::parse(meta).is_some() => edits.set_member(result, meta, JOB, job),
        // Nothing but an object can hold it, and a program that follows the status has to find it.
        Some(meta) => edits.replace(result, meta, alone),
        None => edits.set_member(result, result, "_meta", &alone),
    }
    edits.apply(result)
}

/// The `_meta` of our own requests to a modern server. `name` and `version`: those of the client.
pub(crate) fn modern_meta(protocol: &str, name: &str, version: &str) -> String {
    serde_json::json!({
        PROTOCOL_VERSION: protocol,
        CLIENT_INFO: { "name": name, "version": version },
        CLIENT_CAPABILITIES: {},
    })
    .to_string()
}

/// The raw id of the subscription that a notification or a result belongs to. `object`: its
/// `params` or `result`, raw JSON.
pub(crate) fn subscription_id(object: &str) -> Option<&str> {
    Members::parse(object)?.object("_meta")?.get(SUBSCRIPTION_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(text: &str, change: MetaEdit) -> String {
        let envelope = Envelope::parse(text).unwrap();
        let mut edits = Edits::new();
        edit_meta(&mut edits, text, &envelope, &change);
        edits.apply(text)
    }

    #[test]
    fn answer_within_is_taken_out_and_nothing_else_s1_1_4() {
        let drop = || MetaEdit { drop_answer_within: true, token: None };
        let text = r#"{"params":{"_meta":{ "unhurry/answer_within" : 1 }}}"#;
        assert_eq!(meta(text, drop()), r#"{"params":{"_meta":{  }}}"#);
        let text = r#"{"params":{"_meta":{"a":1.10,"unhurry/answer_within":1,"b":2}}}"#;
        assert_eq!(meta(text, drop()), r#"{"params":{"_meta":{"a":1.10,"b":2}}}"#);
        let text = r#"{"params":{"_meta":{"a":1.10 , "unhurry/answer_within":1}}}"#;
        assert_eq!(meta(text, drop()), r#"{"params":{"_meta":{"a":1.10}}}"#);
    }

    #[test]
    fn a_token_is_put_in_wherever_there_is_none_s1_1_4() {
        let with = |drop| MetaEdit { drop_answer_within: drop, token: Some("\"t\"") };
        assert_eq!(
            meta(r#"{"method":"x"}"#, with(false)),
            r#"{"method":"x","params":{"_meta":{"progressToken":"t"}}}"#
        );
        assert_eq!(
            meta(r#"{"params":{}}"#, with(false)),
            r#"{"params":{"_meta":{"progressToken":"t"}}}"#
        );
        assert_eq!(
            meta(r#"{"params":{"_meta":{"unhurry/answer_within":1}}}"#, with(true)),
            r#"{"params":{"_meta":{"progressToken":"t"}}}"#
        );
        assert_eq!(
            meta(
                r#"{"params":{"_meta":{"progressToken":7,"unhurry/answer_within":1}}}"#,
                with(true)
            ),
            r#"{"params":{"_meta":{"progressToken":"t"}}}"#
        );
    }

    #[test]
    fn the_job_is_added_to_meta_and_nothing_else_s5_1() {
        assert_eq!(with_job(r#"{"a":1e400}"#, "1"), r#"{"a":1e400,"_meta":{"unhurry/job":1}}"#);
        assert_eq!(with_job(r#"{}"#, "1"), r#"{"_meta":{"unhurry/job":1}}"#);
        assert_eq!(
            with_job(r#"{"_meta":{"x":-0}, "b":2}"#, "1"),
            r#"{"_meta":{"x":-0,"unhurry/job":1}, "b":2}"#
        );
    }

    #[test]
    fn k36_a_meta_that_is_no_object_gives_way_to_one_s4_2() {
        for meta in ["null", "1.10", "[{}]", "\"x\"", "true"] {
            assert_eq!(
                with_job(&format!(r#"{{ "a":1.10, "_meta" : {meta} ,"b":-0}}"#), "1"),
                r#"{ "a":1.10, "_meta" : {"unhurry/job":1} ,"b":-0}"#
            );
        }
        assert_eq!(
            with_job(r#"{"_meta":{"x":1},"_meta":null}"#, "1"),
            r#"{"_meta":{"x":1},"_meta":{"unhurry/job":1}}"#,
            "the last one counts"
        );
    }
}
