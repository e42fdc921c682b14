//! What a strict server demands of the headers of a POST.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::http::request::HttpRequest;
use crate::message::Request;
use crate::server::{MODERN, Server};
use crate::tools;
use support::json::string;

const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const HEADER_MISMATCH: i64 = -32020;

/// The status and the JSON-RPC error for a POST that breaks a rule.
pub(crate) fn check(server: &Server, post: &HttpRequest) -> Option<(u16, String)> {
    let requests = post.requests();
    let request = requests.first();
    let refusal = |status, code, words: &str| {
        let id: Value = request.and_then(|request| request.id.parse().ok()).unwrap_or_default();
        let error = json!({"code": code, "message": words});
        Some((status, json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()))
    };
    let accepts = post.header("accept");
    if !accepts.contains("application/json") || !accepts.contains("text/event-stream") {
        return refusal(406, -32000, "both JSON and events must be accepted");
    }
    if !post.header("content-type").starts_with("application/json") {
        return refusal(415, -32000, "the body must be JSON");
    }
    let version = post.header("mcp-protocol-version");
    if !version.is_empty() && !VERSIONS.contains(&version) {
        return refusal(400, -32022, "no such protocol version");
    }
    let request = request.filter(|request| request.is_modern() || version == MODERN)?;
    if ["protocolVersion", "clientCapabilities"].iter().any(|key| meta(request, key).is_none()) {
        return refusal(400, -32602, "a member of _meta is missing");
    }
    let (name, _) = expected(server, request)
        .into_iter()
        .find(|(name, value)| decoded(post.headers.get(name)) != *value)?;
    refusal(400, HEADER_MISMATCH, &format!("the header {name} differs from the body"))
}

fn meta<'a>(request: &'a Request, key: &str) -> Option<&'a str> {
    request.param(&["_meta", &format!("io.modelcontextprotocol/{key}")])
}

/// The headers that the body of a modern request asks for; `None` where there must be none.
fn expected(server: &Server, request: &Request) -> Vec<(String, Option<String>)> {
    let mut headers = vec![
        ("mcp-protocol-version".into(), meta(request, "protocolVersion").and_then(string)),
        ("mcp-method".into(), Some(request.method.clone())),
    ];
    let named_by = match request.method.as_str() {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    if let Some(key) = named_by {
        headers.push(("mcp-name".into(), request.param(&[key]).and_then(string)));
    }
    if request.method == "tools/call" {
        headers.extend(mirrored(server, request));
    }
    headers
}

/// The headers that repeat arguments of the tool, as its schema asks by `x-mcp-header`.
fn mirrored(server: &Server, request: &Request) -> Vec<(String, Option<String>)> {
    let tools: Value = serde_json::from_str(&tools::definitions(server)).unwrap_or_default();
    let name = request.param(&["name"]).and_then(string);
    let is_called = |tool: &&Value| tool["name"].as_str() == name.as_deref();
    let Some(tool) = tools.as_array().into_iter().flatten().find(is_called) else { return vec![] };
    let arguments = request.param(&["arguments"]).unwrap_or("{}");
    let arguments = serde_json::from_str(arguments).unwrap_or_default();
    let mut headers = vec![];
    add_mirrored(&tool["inputSchema"], &arguments, &mut headers);
    headers
}

fn add_mirrored(schema: &Value, value: &Value, headers: &mut Vec<(String, Option<String>)>) {
    if let Some(name) = schema["x-mcp-header"].as_str() {
        let text = match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        headers.push((format!("mcp-param-{}", name.to_lowercase()), text));
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        add_mirrored(inner, &value[key], headers);
    }
}

/// The value that a header stands for. One that cannot be decoded equals none that is expected.
fn decoded(header: Option<&String>) -> Option<String> {
    let header = header?;
    let encoded = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else { return Some(header.clone()) };
    let bytes = BASE64_STANDARD.decode(encoded).unwrap_or_else(|_| b"\0".to_vec());
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
