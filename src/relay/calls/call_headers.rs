//! Arguments that are HTTP headers too (`Mcp-Param-*`, 2026-07-28). An HTTP client makes these
//! headers, an HTTP server checks them; where only one side speaks HTTP, the proxy does the other
//! part.

use std::sync::Arc;

use http::HeaderMap;

use crate::downstream::ParamHeaders;
use crate::mcp::compose::request_line;
use crate::mcp::error_code::HEADER_MISMATCH;
use crate::mcp::method::Method;
use crate::mcp::params::Params;
use crate::relay::session::Session;
use crate::relay::state::State;
use crate::relay::state::calls::Call;
use crate::relay::state::client::Client;
use crate::relay::state::requester::Requester;
use crate::rpc::message::{Message, text_of};

impl Session {
    /// Whether the proxy makes the headers: the server wants them, and the client sends none.
    pub(in crate::relay) fn makes_param_headers(&self) -> bool {
        self.client.param_headers() == ParamHeaders::MadeByProxy && self.config.remote().is_some()
    }

    /// Whether the proxy checks the headers: the client sends them, and the server does not see
    /// them.
    fn checks_param_headers(&self) -> bool {
        self.client.param_headers() == ParamHeaders::MadeByClient && self.config.remote().is_none()
    }

    /// Whether a call can only go on once the server's tools are known.
    pub(super) fn needs_tools(&self, client: &Client) -> bool {
        client.is_modern() && (self.makes_param_headers() || self.checks_param_headers())
    }

    /// Whether the server refuses a call for headers that we made: then its tools have changed
    /// since they were read.
    pub(super) fn is_header_mismatch(&self, call: &Call, message: &Message) -> bool {
        message.envelope.error_code() == Some(HEADER_MISMATCH)
            && call.client.is_modern()
            && self.makes_param_headers()
    }

    /// Reads the tools again, and then sends the call once more, with the headers that the server
    /// wants now. The server has not created with the call, so it may be sent twice (§7).
    pub(super) fn retry_with_new_headers(
        &self,
        state: &mut State,
        call: &Call,
        requester: Requester,
    ) {
        let params = Some(text_of(&call.params));
        let line = request_line(&requester.key, Method::CallTool, params);
        let requester = Requester { headers: None, headers_refused: true, ..requester };
        let reading = state.lists.catalog.is_reading();
        state.lists.catalog.hold_call(requester, line);
        if !reading {
            self.read_tools(state);
        }
    }

    /// Makes or checks the headers of a call.
    ///
    /// # Errors
    /// A sentence for the client on the header that differs from the arguments.
    pub(super) fn apply_param_headers(
        &self,
        state: &State,
        requester: &mut Requester,
        tool: &str,
        params: &Params,
    ) -> Result<(), String> {
        if !self.needs_tools(&state.client.info) {
            return Ok(());
        }
        let Some(declared) = state.lists.catalog.declared(tool).filter(|d| !d.is_empty()) else {
            return Ok(());
        };
        let arguments = params.get("arguments");
        if self.checks_param_headers() {
            let none = HeaderMap::new();
            return declared.check(arguments, requester.headers.as_deref().unwrap_or(&none));
        }
        requester.headers = Some(Arc::new(declared.headers(arguments).into_iter().collect()));
        Ok(())
    }
}
