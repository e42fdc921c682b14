//! What the proxy costs: the same server called directly and through the proxy, in interleaved
//! rounds. Machines are noisy, so only the ratios mean something.
//!
//!     cargo bench                     all
//!     cargo bench -- small burst      some of: small, burst, large, detached

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const ROUNDS: usize = 7;
const IN_FLIGHT: usize = 64;
const DETACHED: usize = 10_000;
const LARGE: usize = 10 << 20;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        return server::serve();
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|a| a == name);
    println!("{:28} {:>12} {:>12} {:>8}", "median", "direct", "proxied", "ratio");
    if wanted("small") {
        compare("small call, one at a time", "µs", |peer| Ok(1e6 * peer.small(2_000)?));
    }
    if wanted("burst") {
        compare("small call, 64 in flight", "µs", |peer| Ok(1e6 * peer.burst(20_000)?));
    }
    if wanted("large") {
        compare("10 MB result", "ms", |peer| Ok(1e3 * peer.large(8)?));
    }
    if wanted("detached") {
        detached()?;
    }
    Ok(())
}

/// Runs both ways in turn and prints the medians and the median of the paired ratios.
fn compare(name: &str, unit: &str, measure: impl Fn(&mut Peer) -> io::Result<f64>) {
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        let once = |proxied| Peer::start(proxied, "25s").and_then(|mut peer| measure(&mut peer));
        match (once(false), once(true)) {
            (Ok(direct), Ok(proxied)) => pairs.push((direct, proxied)),
            (direct, proxied) => println!("{name}: failed: {:?} {:?}", direct.err(), proxied.err()),
        }
    }
    let direct = median(pairs.iter().map(|pair| pair.0).collect());
    let proxied = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.1 / pair.0).collect());
    println!("{name:28} {direct:9.1} {unit} {proxied:9.1} {unit} {ratio:8.2}");
}

/// 10,000 calls that get a handle, then all of their results.
fn detached() -> io::Result<()> {
    let mut peer = Peer::start(true, "250ms")?;
    let start = Instant::now();
    for _ in 0..DETACHED {
        peer.send("sleep", json!({ "ms": 2_000 }))?;
    }
    let handles: Vec<Value> = (0..DETACHED).map(|_| peer.read()).collect::<io::Result<_>>()?;
    let all_out = start.elapsed();
    for handle in &handles {
        let next = &handle["result"]["structuredContent"]["next_action"];
        peer.send("job_get", json!({ "job_id": next["args"]["job_id"], "wait_seconds": 25 }))?;
    }
    let mut done = 0;
    while done < DETACHED {
        let answer = peer.read()?;
        let job = &answer["result"]["_meta"]["unhurry/job"];
        match job["done"] == true {
            true => done += 1,
            false => peer.send("job_get", json!({ "job_id": job["job_id"] }))?,
        }
    }
    println!(
        "10,000 detached calls of 2 s: all handles out after {:.2} s, all results after {:.2} s",
        all_out.as_secs_f64(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A client of the server, with or without the proxy between.
struct Peer {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    line: String,
    last_id: u64,
}

impl Peer {
    fn start(proxied: bool, budget: &str) -> io::Result<Self> {
        let server = std::env::current_exe()?;
        let mut command = if proxied {
            let mut proxy = Command::new(env!("CARGO_BIN_EXE_unhurry"));
            proxy.args(["--answer-within", budget, "--log-level", "error", "--"]).arg(server);
            proxy.env("UNHURRY_JOBS__MAX_RUNNING", "20000");
            proxy
        } else {
            Command::new(server)
        };
        let mut process =
            command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = process.stdin.take();
        let from = BufReader::new(process.stdout.take().expect("piped above"));
        let mut peer = Peer { process, to, from, line: String::new(), last_id: 0 };
        let me = json!({ "name": "bench", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": me });
        peer.request("initialize", hello)?;
        peer.read()?;
        peer.request("tools/list", json!({}))?;
        peer.read()?;
        Ok(peer)
    }

    fn request(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.last_id += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        let to = self.to.as_mut().expect("open until the drop");
        to.write_all(format!("{message}\n").as_bytes())
    }

    fn send(&mut self, tool: &str, arguments: Value) -> io::Result<()> {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        match self.from.read_line(&mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn read(&mut self) -> io::Result<Value> {
        self.read_line()?;
        Ok(serde_json::from_str(&self.line)?)
    }

    /// Median seconds of a call when one follows the other.
    fn small(&mut self, calls: usize) -> io::Result<f64> {
        self.each(calls, "echo", json!({ "text": "hello" }))
    }

    fn large(&mut self, calls: usize) -> io::Result<f64> {
        self.each(calls, "payload", json!({ "bytes": LARGE }))
    }

    fn each(&mut self, calls: usize, tool: &str, arguments: Value) -> io::Result<f64> {
        let mut times = Vec::new();
        for _ in 0..calls {
            let start = Instant::now();
            self.send(tool, arguments.clone())?;
            self.read_line()?;
            times.push(start.elapsed().as_secs_f64());
        }
        Ok(median(times))
    }

    /// Seconds for each call with 64 of them always in flight.
    fn burst(&mut self, calls: usize) -> io::Result<f64> {
        let start = Instant::now();
        for sent in 0..calls + IN_FLIGHT {
            if sent < calls {
                self.send("echo", json!({ "text": "hello" }))?;
            }
            if sent >= IN_FLIGHT {
                self.read_line()?;
            }
        }
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.to.take());
        let _ = self.process.wait();
    }
}

/// The server: this program with the argument `serve`.
mod server {
    use super::*;

    pub(crate) fn serve() -> io::Result<()> {
        let (answers, sleepers) = mpsc::channel::<(Instant, String)>();
        std::thread::spawn(move || wake(sleepers));
        for line in io::stdin().lock().lines() {
            let message: Value = serde_json::from_str(&line?)?;
            let Some(id) = message.get("id") else { continue };
            let params = &message["params"];
            let arguments = &params["arguments"];
            let result = match (message["method"].as_str(), params["name"].as_str()) {
                (Some("initialize"), _) => json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "bench", "version": "1" },
                }),
                (Some("tools/list"), _) => {
                    let schema = json!({ "type": "object" });
                    json!({ "tools": [{ "name": "echo", "inputSchema": schema }] })
                }
                (_, Some("payload")) => {
                    text(&"x".repeat(arguments["bytes"].as_u64().unwrap_or(0) as usize))
                }
                _ => text(arguments["text"].as_str().unwrap_or_default()),
            };
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
            match arguments["ms"].as_u64() {
                Some(ms) => {
                    let at = Instant::now() + Duration::from_millis(ms);
                    let _ = answers.send((at, answer));
                }
                None => print(&answer)?,
            }
        }
        Ok(())
    }

    fn text(text: &str) -> Value {
        json!({ "content": [{ "type": "text", "text": text }] })
    }

    fn print(answer: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(format!("{answer}\n").as_bytes())?;
        out.flush()
    }

    /// Prints answers when their time has come.
    fn wake(sleepers: mpsc::Receiver<(Instant, String)>) {
        let mut asleep = BTreeMap::new();
        let mut serial = 0u64;
        loop {
            let next = asleep.first_key_value().map(|(&(at, _), _): (&(Instant, u64), _)| at);
            let pause = next.map_or(Duration::from_secs(3600), |at| {
                at.saturating_duration_since(Instant::now())
            });
            match sleepers.recv_timeout(pause) {
                Ok((at, answer)) => {
                    serial += 1;
                    asleep.insert((at, serial), answer);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let due = asleep.pop_first().map(|(_, answer)| answer);
                    if due.is_some_and(|answer| print(&answer).is_err()) {
                        return;
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
