//! What a client has set at the server, to be set again at the next one (contract §9).

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::rpc::lines::compact;
use crate::rpc::message::Message;

/// Subscriptions remembered, at the most.
const SUBSCRIPTIONS: usize = 10_000;

/// What the client has set so far.
#[derive(Default)]
pub(crate) struct Settings {
    /// raw `params` of `initialize`
    pub initialize: Option<Box<str>>,
    /// the line of `notifications/initialized`
    pub initialized: Option<Bytes>,
    /// raw `params` of the last `logging/setLevel`
    pub log_level: Option<Box<str>>,
    /// raw `params` of `resources/subscribe`, by raw uri
    pub subscriptions: BTreeMap<Box<str>, Box<str>>,
}

impl Settings {
    /// The server refused the client's `initialize`, so it must not be repeated.
    pub(crate) fn initialize_refused(&mut self) {
        self.initialize = None;
    }

    /// Notes what a message of the client sets.
    pub(crate) fn update(&mut self, method: Option<Method>, message: &Message, params: &Params) {
        let raw = message.envelope.params.unwrap_or("{}");
        let uri = || params.get("uri");
        match method {
            Some(Method::Initialize) => self.initialize = Some(raw.into()),
            Some(Method::Initialized) => self.initialized = Some(compact(message.line)),
            Some(Method::SetLogLevel) => self.log_level = Some(raw.into()),
            Some(Method::Subscribe) if self.subscriptions.len() < SUBSCRIPTIONS => {
                if let Some(uri) = uri() {
                    self.subscriptions.insert(uri.into(), raw.into());
                }
            }
            Some(Method::Unsubscribe) => {
                if let Some(uri) = uri() {
                    self.subscriptions.remove(uri);
                }
            }
            _ => {}
        }
    }
}
