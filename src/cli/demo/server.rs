//! The built-in slow server: MCP over stdio, with a fast tool and a slow one.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::error_code::METHOD_NOT_FOUND;
use crate::mcp::method::Method;

/// The hidden verb that is the server.
pub(crate) const VERB: &str = "demo-server";
/// How long `slow_report` takes.
pub(crate) const SLOW: Duration = Duration::from_secs(5);

/// The server: one thread, blocked by its own tool, like many.
pub(crate) fn serve() -> ExitCode {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = message.get("id") else { continue };
        let body = match respond(&message) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        if writeln!(out, "{body}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn respond(message: &Value) -> Result<Value, Value> {
    let params = &message["params"];
    match message["method"].as_str().and_then(Method::parse) {
        Some(Method::Initialize) => Ok(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "demo", "version": env!("CARGO_PKG_VERSION") },
        })),
        Some(Method::Ping) => Ok(json!({})),
        Some(Method::ListTools) => Ok(json!({ "tools": [
            tool("greet", "Greets somebody, at once.", "name"),
            tool("slow_report", "Writes a report, slowly.", "topic"),
        ] })),
        Some(Method::CallTool) => Ok(call(params)),
        _ => Err(json!({ "code": METHOD_NOT_FOUND, "message": "method not found" })),
    }
}

fn tool(name: &str, description: &str, argument: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { argument: { "type": "string" } } });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

fn call(params: &Value) -> Value {
    let arguments = &params["arguments"];
    let text = if params["name"] == "greet" {
        format!("Hello, {}!", arguments["name"].as_str().unwrap_or("stranger"))
    } else {
        work();
        format!("A report on {}: it pays.", arguments["topic"].as_str().unwrap_or("nothing"))
    };
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Takes its time. Like many servers, this one has a single thread, and hears nothing meanwhile.
#[expect(
    clippy::disallowed_methods,
    reason = "a process of its own, whose only thread is blocked on purpose"
)]
fn work() {
    std::thread::sleep(SLOW);
}
