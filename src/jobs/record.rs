//! The record of a job: all that a store keeps of it (contract §11). Times are wall-clock times,
//! since a record may outlive the process that made it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::ToolPolicy;
use crate::rpc::object::Members;

use super::caller::Caller;
use super::duplicates::Fingerprint;

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub id: Uuid,
    /// who may see it
    pub caller: Caller,
    pub tool: Arc<str>,
    /// the arguments, shortened to 120 bytes
    pub arguments: Box<str>,
    /// by what an equal call is found; `None` where the job may not be joined
    pub fingerprint: Option<Fingerprint>,
    /// when the request arrived
    pub started: Timestamp,
    pub terms: Terms,
    /// whether the server marks the tool as safe to repeat, where it says so
    pub repeatable: Option<bool>,
    /// `None` while it runs
    pub end: Option<End>,
    /// when its result was first read to the end
    pub fetched: Option<Timestamp>,
}

/// What the configuration says of a job, as it was when the job began (contract §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub expected: Option<Duration>,
    pub max_runtime: Duration,
    pub result_ttl: Duration,
    pub fetched_ttl: Duration,
    pub join_window: Duration,
}

impl From<&ToolPolicy> for Terms {
    fn from(policy: &ToolPolicy) -> Self {
        Terms {
            expected: policy.expected,
            max_runtime: policy.max_runtime,
            result_ttl: policy.result_ttl,
            fetched_ttl: policy.fetched_ttl,
            join_window: policy.join_window,
        }
    }
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    pub at: Timestamp,
    /// from the arrival of the request to the end
    pub took: Duration,
    /// how it ended, also after it expired
    pub status: Status,
    /// whether the server may have begun with it
    pub reached: bool,
    /// the last progress that the server sent: raw JSON of `{progress, total?, message?}`
    pub progress: Option<Box<str>>,
    /// `None` once it has expired
    pub outcome: Option<Outcome>,
}

impl Record {
    /// The status; of a live job, `Working` until its end is stored.
    pub(crate) fn status(&self) -> Status {
        match &self.end {
            None => Status::Working,
            Some(End { outcome: None, .. }) => Status::Expired,
            Some(end) => end.status,
        }
    }

    /// The first 8 characters of the id: all that logs may show (§10).
    pub(crate) fn short_id(&self) -> String {
        let mut id = self.id.to_string();
        id.truncate(8);
        id
    }

    /// Bytes that the outcome takes up; 0 where there is none.
    pub(crate) fn outcome_size(&self) -> u64 {
        self.end.as_ref().and_then(|end| end.outcome.as_ref()).map_or(0, Outcome::size)
    }

    /// The tombstone that is left when the result expires; `None` where there is no result to drop.
    pub(crate) fn expired(&self) -> Option<Record> {
        let end = self.end.as_ref().filter(|end| end.outcome.is_some())?;
        let end = End { outcome: None, ..end.clone() };
        Some(Record { end: Some(end), ..self.clone() })
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// the server's result, raw JSON
    Result(#[serde(with = "raw_json")] Bytes),
    /// the server's JSON-RPC error object, raw JSON
    Error(#[serde(with = "raw_json")] Bytes),
    /// no answer came, for this cause (contract §7)
    Lost(Arc<str>),
    /// stopped by `job_cancel`
    Cancelled,
}

impl Outcome {
    /// The same in memory of its own, so that a job does not hold a whole read buffer.
    pub(crate) fn copied(self) -> Self {
        match self {
            Outcome::Result(raw) => Outcome::Result(Bytes::copy_from_slice(&raw)),
            Outcome::Error(raw) => Outcome::Error(Bytes::copy_from_slice(&raw)),
            Outcome::Lost(_) | Outcome::Cancelled => self,
        }
    }

    /// The status of a job that ended so; a result with `isError: true` is a failure (§4.2).
    pub(crate) fn status(&self) -> Status {
        match self {
            Outcome::Result(result) if is_error(result) => Status::Failed,
            Outcome::Result(_) => Status::Completed,
            Outcome::Error(_) | Outcome::Lost(_) => Status::Failed,
            Outcome::Cancelled => Status::Cancelled,
        }
    }

    /// Bytes that the outcome takes up.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Outcome::Result(bytes) | Outcome::Error(bytes) => bytes.len() as u64,
            Outcome::Lost(cause) => cause.len() as u64,
            Outcome::Cancelled => 0,
        }
    }
}

fn is_error(result: &[u8]) -> bool {
    std::str::from_utf8(result)
        .ok()
        .and_then(Members::parse)
        .is_some_and(|members| members.get("isError") == Some("true"))
}

/// The words of MCP tasks, and `expired` (contract §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Working,
    /// the server has asked for input (§8.4)
    InputRequired,
    Completed,
    Failed,
    Cancelled,
    Expired,
}

impl Status {
    /// Whether the job has ended.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Status::Working | Status::InputRequired)
    }

    /// The word for models and programs.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Working => "working",
            Status::InputRequired => "input_required",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Expired => "expired",
        }
    }
}

/// Raw JSON text, stored as a string so that not a byte of it changes.
mod raw_json {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(raw: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(raw))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        String::deserialize(deserializer).map(Bytes::from)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A running job of this caller.
    pub(crate) fn record(caller: &Caller, tool: &str) -> Record {
        Record {
            id: Uuid::new_v4(),
            caller: caller.clone(),
            tool: tool.into(),
            arguments: "{}".into(),
            fingerprint: None,
            started: Timestamp::now(),
            terms: Terms::from(&ToolPolicy::default()),
            repeatable: None,
            end: None,
            fetched: None,
        }
    }

    /// The same job, ended now.
    pub(crate) fn ended(record: &Record, outcome: Outcome) -> Record {
        let end = End {
            at: Timestamp::now(),
            took: Duration::from_millis(1500),
            status: outcome.status(),
            reached: true,
            progress: Some(r#"{"progress":1.10}"#.into()),
            outcome: Some(outcome),
        };
        Record { end: Some(end), ..record.clone() }
    }

    #[test]
    fn a_record_is_the_same_after_it_was_stored_s11() {
        let result = Bytes::from(r#"{"n":1e400, "x":"\u00e9é","isError":true}"#);
        let running = record(&Caller::of_session("s"), "build");
        let failed = ended(&running, Outcome::Result(result));
        assert_eq!(failed.status(), Status::Failed);
        let all = [
            ended(&running, Outcome::Error(Bytes::from(r#"{"code":-1}"#))),
            ended(&running, Outcome::Lost("gone".into())),
            ended(&running, Outcome::Cancelled),
            failed.expired().unwrap(),
            failed,
            running,
        ];
        for record in all {
            let stored = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&stored).unwrap(), record);
        }
    }
}
