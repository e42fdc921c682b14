//! Arguments that are HTTP headers too (`Mcp-Param-*`, 2026-07-28). An HTTP client makes them, an
//! HTTP server checks them: where only one side speaks HTTP, that is for the proxy to do.

use std::sync::Arc;

use http::HeaderMap;

use crate::downstream::ParamHeaders;
use crate::mcp::method::Method;
use crate::mcp::params::Params;

use super::call::Call;
use super::client::Client;
use super::pending::Asker;
use super::session::{Session, State};
use crate::mcp::compose::request_line;
use crate::mcp::error_code::HEADER_MISMATCH;
use crate::rpc::message::{Message, text_of};

impl Session {
    /// The server may want headers that the client can't send.
    pub(super) fn makes_param_headers(&self) -> bool {
        self.client.param_headers() == ParamHeaders::MadeByProxy && self.config.remote().is_some()
    }

    /// The server does not see the headers that the client sends.
    fn checks_param_headers(&self) -> bool {
        self.client.param_headers() == ParamHeaders::MadeByClient && self.config.remote().is_none()
    }

    /// Whether a call can only go on once the server's tools are known.
    pub(super) fn needs_catalog(&self, client: &Client) -> bool {
        client.is_modern() && (self.makes_param_headers() || self.checks_param_headers())
    }

    /// Whether the server refuses a call for headers that we made: what is known of its tools is out
    /// of date.
    pub(super) fn missed_headers(&self, call: &Call, message: &Message) -> bool {
        message.envelope.error_code() == Some(HEADER_MISMATCH)
            && call.client.is_modern()
            && self.makes_param_headers()
    }

    /// Reads the list again, and sends the call once more, with the headers that the server wants
    /// now. It has not looked at the call itself.
    pub(super) fn call_again(&self, state: &mut State, call: &Call, asker: Asker) {
        let line = request_line(&asker.key, Method::CallTool, Some(text_of(&call.params)));
        let asker = Asker { headers: None, refused: true, ..asker };
        let reading = state.catalog.is_reading();
        state.catalog.hold_call(asker, line);
        if !reading {
            self.read_catalog(state);
        }
    }

    /// Makes or checks the headers of a call.
    ///
    /// # Errors
    /// A sentence for the client on the header that differs from the arguments.
    pub(super) fn mirror_params(
        &self,
        state: &State,
        asker: &mut Asker,
        tool: &str,
        params: &Params,
    ) -> Result<(), String> {
        if !self.needs_catalog(&state.client) {
            return Ok(());
        }
        let Some(declared) = state.catalog.declared(tool).filter(|d| !d.is_empty()) else {
            return Ok(());
        };
        let arguments = params.get("arguments");
        if self.checks_param_headers() {
            let none = HeaderMap::new();
            return declared.check(arguments, asker.headers.as_deref().unwrap_or(&none));
        }
        asker.headers = Some(Arc::new(declared.headers(arguments).into_iter().collect()));
        Ok(())
    }
}
