//! Clients whose time limit is known from their sources (contract §3, "Which budget holds").

use std::time::Duration;

/// `clientInfo.name` (a `*` at its end stands for any ending), the budget in seconds, and where cap
/// and name were read. The budget is below the cap where that is short, and 45 s where it is a
/// minute that the client announces when it is over, or minutes: a longer wait is fewer turns for
/// the model.
///
/// `mcp` is the Python SDK's default name. Who sends it may have no cap at all, but those that
/// have 5 s give up without a word, so that nothing could be learned from them.
pub(super) const KNOWN: &[(&str, u64, &str)] = &[
    ("mcp", 4, "5 s: openai/openai-agents-python, src/agents/mcp/server.py"),
    ("Java SDK MCP Client", 16, "20 s: modelcontextprotocol/java-sdk, client/McpClient.java"),
    (
        "spring-ai-mcp-client*",
        16,
        "20 s: spring-projects/spring-ai, McpClientCommonProperties.java",
    ),
    ("gemini-cli-mcp-client", 45, "600 s: google-gemini/gemini-cli, core/src/tools/mcp-client.ts"),
    ("qwen-code-mcp-client", 45, "300 s: QwenLM/qwen-code, core/src/tools/mcp-client.ts"),
    ("codex-mcp-client", 45, "60 to 300 s: openai/codex, codex-mcp/src/rmcp_client.rs"),
    ("goose-cli", 45, "300 s: block/goose, crates/goose/src/agents/mcp_client.rs"),
    ("goose-desktop", 45, "300 s: block/goose, crates/goose/src/agents/mcp_client.rs"),
    ("crush", 45, "none: charmbracelet/crush, internal/agent/tools/mcp/init.go"),
    ("Q DEV CLI", 45, "120 s: aws/amazon-q-developer-cli, chat-cli/src/mcp_client/client.rs"),
    ("Cline", 45, "60 s: cline/cline, apps/vscode/src/services/mcp/McpHub.ts"),
    ("Roo Code", 45, "60 s: RooCodeInc/Roo-Code, src/services/mcp/McpHub.ts"),
    ("opencode", 45, "60 s: anomalyco/opencode, packages/opencode/src/mcp/index.ts"),
    ("Cherry Studio", 45, "60 s: CherryHQ/cherry-studio, src/main/services/MCPService.ts"),
    ("continue-client", 45, "60 s: continuedev/continue, core/context/mcp/MCPConnection.ts"),
    ("continue-cli-client", 45, "60 s: continuedev/continue, cli/src/services/MCPService.ts"),
    ("langchain4j", 45, "60 s: langchain4j/langchain4j, DefaultMcpClient.java"),
];

/// What `mcp-remote` appends to the name of the client that it speaks for.
const VIA: &str = " (via mcp-remote ";

/// A client's own name, without what a bridge has appended.
pub(super) fn own_name(name: &str) -> &str {
    name.split_once(VIA).map_or(name, |(own, _)| own)
}

/// The built-in budget of the client that calls itself `name`, and the entry's own name.
pub(super) fn budget(name: &str) -> Option<(Duration, &'static str)> {
    KNOWN.iter().find_map(|(pattern, budget, _)| {
        let prefix = pattern.strip_suffix('*');
        let known = prefix.map_or(name == *pattern, |prefix| name.starts_with(prefix));
        known.then_some((Duration::from_secs(*budget), prefix.unwrap_or(pattern)))
    })
}
