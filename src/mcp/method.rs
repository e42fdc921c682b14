//! The methods of MCP that the proxy reads or sends.

use crate::rpc::message::Envelope;

/// Declares [`Method`] with the text of each.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A method that the proxy knows by name. All others pass unread.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Method {
            $($(#[$doc])* $name,)*
        }

        impl Method {
            /// The method of this name; `None` for one that the proxy does not look at.
            pub(crate) fn parse(name: &str) -> Option<Method> {
                match name {
                    $($text => Some(Method::$name),)*
                    _ => None,
                }
            }

            /// The name on the wire.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Method::$name => $text,)*
                }
            }
        }
    };
}

methods! {
    Initialize = "initialize",
    Discover = "server/discover",
    Ping = "ping",
    ListTools = "tools/list",
    CallTool = "tools/call",
    ListPrompts = "prompts/list",
    GetPrompt = "prompts/get",
    ListResources = "resources/list",
    ListResourceTemplates = "resources/templates/list",
    ReadResource = "resources/read",
    Subscribe = "resources/subscribe",
    Unsubscribe = "resources/unsubscribe",
    SetLogLevel = "logging/setLevel",
    /// opens a stream of notifications (2026-07-28)
    Listen = "subscriptions/listen",
    GetTask = "tasks/get",
    UpdateTask = "tasks/update",
    CancelTask = "tasks/cancel",
    Initialized = "notifications/initialized",
    Cancelled = "notifications/cancelled",
    Progress = "notifications/progress",
    LogMessage = "notifications/message",
    /// a `subscriptions/listen` was taken (2026-07-28)
    SubscriptionAcknowledged = "notifications/subscriptions/acknowledged",
    ToolsChanged = "notifications/tools/list_changed",
    PromptsChanged = "notifications/prompts/list_changed",
    ResourcesChanged = "notifications/resources/list_changed",
    ResourceUpdated = "notifications/resources/updated",
}

impl Method {
    /// The method of a message; `None` where it has none that the proxy knows.
    pub(crate) fn of(envelope: &Envelope) -> Option<Method> {
        Method::parse(&envelope.method_name())
    }

    /// The member of `params` that the header `Mcp-Name` repeats, for the methods that have one
    /// (protocol §6.3).
    pub(crate) fn named_member(self) -> Option<&'static str> {
        match self {
            Method::CallTool | Method::GetPrompt => Some("name"),
            Method::ReadResource => Some("uri"),
            Method::GetTask | Method::UpdateTask | Method::CancelTask => Some("taskId"),
            _ => None,
        }
    }
}

/// Whether a notification of the server says that a list or a resource has changed; it then belongs
/// to no request.
pub(crate) fn is_change_notification(method: &str) -> bool {
    method.ends_with("/list_changed") || method == Method::ResourceUpdated.as_str()
}
