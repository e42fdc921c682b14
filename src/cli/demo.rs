//! `unhurry demo`: a slow MCP server behind the real proxy, and what a client sends and gets.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::INTERNAL;

/// The hidden verb that is the server.
pub const SERVER: &str = "demo-server";
/// The budget of the demonstration, and how long its slow tool takes.
const BUDGET: &str = "2s";
const SLOW: Duration = Duration::from_secs(5);

/// Runs the demonstration and prints the transcript.
pub fn demo() -> ExitCode {
    match transcript(&mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("unhurry: the demonstration failed: {error}");
            ExitCode::from(INTERNAL)
        }
    }
}

fn transcript(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "A server whose tool `slow_report` takes {} s, behind `unhurry --answer-within {BUDGET}`.\n\
         \"-->\" is what the client sends, \"<--\" what it gets, with the seconds since the start.\n",
        SLOW.as_secs()
    )?;
    let mut client = Client::start()?;
    let client_info = json!({ "name": "demo-client", "version": "1" });
    client.note(out, "The handshake is the server's own, but for a paragraph of instructions.")?;
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info });
    client.ask(out, "initialize", hello)?;
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;

    client.note(out, "The list has the server's tools, then job_get and job_cancel.")?;
    let list = client.ask_quietly("tools/list", json!({}))?;
    let names = list["tools"].as_array().into_iter().flatten().filter_map(|t| t["name"].as_str());
    writeln!(out, "<-- tools: {}\n", names.collect::<Vec<_>>().join(", "))?;

    client.note(out, "A fast call is answered as without the proxy.")?;
    client.ask(out, "tools/call", json!({ "name": "greet", "arguments": { "name": "Ada" } }))?;

    client.note(out, "A slow call is answered when its budget ends. The work goes on.")?;
    let slow = json!({ "name": "slow_report", "arguments": { "topic": "patience" } });
    let mut answer = client.ask(out, "tools/call", slow)?;

    client.note(out, "Whoever follows next_action literally gets the result.")?;
    while answer["_meta"]["unhurry/job"]["done"] != true {
        let next = answer["structuredContent"]["next_action"].clone();
        if next.is_null() {
            return Err(io::Error::other("an answer names no next_action"));
        }
        let call = json!({ "name": next["tool"], "arguments": next["args"] });
        answer = client.ask(out, "tools/call", call)?;
    }
    client
        .note(out, "That was the server's own result; only `unhurry/job` in `_meta` is added.")?;
    client.stop()
}

/// A client of the proxy.
struct Client {
    proxy: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    start: Instant,
    asked: u64,
}

impl Client {
    fn start() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let mut proxy = Command::new(&program)
            .args(["--answer-within", BUDGET, "--log-level", "error", "--"])
            .arg(&program)
            .arg(SERVER)
            .env_remove("UNHURRY_CONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = proxy.stdin.take().expect("piped above");
        let from = BufReader::new(proxy.stdout.take().expect("piped above"));
        Ok(Client { proxy, to, from, start: Instant::now(), asked: 0 })
    }

    fn note(&self, out: &mut impl Write, text: &str) -> io::Result<()> {
        writeln!(out, "# {text}")
    }

    /// Sends a request, shows it, waits for its answer and shows that.
    fn ask(&mut self, out: &mut impl Write, method: &str, params: Value) -> io::Result<Value> {
        writeln!(out, "--> {:4.1}  {method} {params}", self.start.elapsed().as_secs_f64())?;
        out.flush()?;
        let result = self.ask_quietly(method, params)?;
        let pretty = serde_json::to_string_pretty(&result)?;
        writeln!(out, "<-- {:4.1}  {pretty}\n", self.start.elapsed().as_secs_f64())?;
        out.flush()?;
        Ok(result)
    }

    fn ask_quietly(&mut self, method: &str, params: Value) -> io::Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.from.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the proxy ended"));
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return Ok(message["result"].take());
            }
        }
    }

    fn send(&mut self, message: Value) -> io::Result<()> {
        writeln!(self.to, "{message}")
    }

    fn stop(mut self) -> io::Result<()> {
        drop(self.to);
        self.proxy.wait().map(drop)
    }
}

/// The server: one thread, blocked by its own tool, like many.
pub fn server() -> ExitCode {
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
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "demo", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [
            tool("greet", "Greets somebody, at once.", "name"),
            tool("slow_report", "Writes a report, slowly.", "topic"),
        ] })),
        "tools/call" => Ok(call(params)),
        _ => Err(json!({ "code": -32601, "message": "method not found" })),
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
        // The demonstration's tool is slow on purpose.
        std::thread::sleep(SLOW);
        format!("A report on {}: it pays.", arguments["topic"].as_str().unwrap_or("nothing"))
    };
    json!({ "content": [{ "type": "text", "text": text }] })
}
