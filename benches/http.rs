//! What the proxy costs over HTTP: the same server called directly and through `unhurry serve`, in
//! interleaved rounds. Machines are noisy, so only the ratios mean something.
//!
//!     cargo bench --bench http

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

const ROUNDS: usize = 7;
const CALLS: usize = 2_000;
const CLIENTS: usize = 16;

/// What the client talks to.
#[derive(Clone, Copy)]
enum Way {
    Direct,
    /// HTTP → HTTP
    Remote,
    /// HTTP → child
    Child,
}

fn main() -> io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("serve-http") => serve_http(),
        Some("serve-stdio") => serve_stdio(),
        _ => {
            println!("{:36} {:>12} {:>12} {:>8}", "median", "direct", "proxied", "ratio");
            compare("HTTP → HTTP, one at a time", Way::Remote, 1);
            compare("HTTP → child, one at a time", Way::Child, 1);
            compare("HTTP → HTTP, 16 clients", Way::Remote, CLIENTS);
            compare("HTTP → child, 16 clients", Way::Child, CLIENTS);
            Ok(())
        }
    }
}

/// Runs both ways in turn and prints the medians and the median of the paired ratios.
fn compare(name: &str, way: Way, clients: usize) {
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        match (measure(Way::Direct, clients), measure(way, clients)) {
            (Ok(direct), Ok(proxied)) => pairs.push((direct, proxied)),
            (direct, proxied) => println!("{name}: failed: {:?} {:?}", direct.err(), proxied.err()),
        }
    }
    let direct = median(pairs.iter().map(|pair| pair.0).collect());
    let proxied = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.1 / pair.0).collect());
    println!("{name:36} {direct:9.1} µs {proxied:9.1} µs {ratio:8.2}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Microseconds for each call.
fn measure(way: Way, clients: usize) -> io::Result<f64> {
    let servers = Servers::start(way)?;
    let mut clients: Vec<Client> =
        (0..clients).map(|_| Client::start(servers.port)).collect::<io::Result<_>>()?;
    let calls = CALLS / clients.len();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let all: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(move || (0..calls).try_for_each(|_| client.call())))
            .collect();
        all.into_iter().try_for_each(|one| one.join().expect("no panic in a client"))
    })?;
    Ok(1e6 * start.elapsed().as_secs_f64() / (calls * clients.len()) as f64)
}

/// The processes of one measurement; ended when dropped.
struct Servers {
    processes: Vec<Child>,
    port: u16,
}

impl Servers {
    fn start(way: Way) -> io::Result<Self> {
        let own = std::env::current_exe()?;
        let mut servers = Servers { processes: Vec::new(), port: free_port()? };
        let mut proxy = Command::new(env!("CARGO_BIN_EXE_unhurry"));
        proxy.args(["serve", "--log-level", "error"]);
        match way {
            Way::Direct => {
                servers.run(Command::new(own).args(["serve-http", &servers.port.to_string()]))?;
            }
            Way::Remote => {
                let behind = free_port()?;
                servers.run(Command::new(own).args(["serve-http", &behind.to_string()]))?;
                proxy.arg(format!("--listen=127.0.0.1:{}", servers.port));
                servers.run(proxy.arg(format!("http://127.0.0.1:{behind}/mcp")))?;
            }
            Way::Child => {
                proxy.arg(format!("--listen=127.0.0.1:{}", servers.port));
                servers.run(proxy.arg("--").arg(own).arg("serve-stdio"))?;
            }
        }
        Ok(servers)
    }

    fn run(&mut self, command: &mut Command) -> io::Result<()> {
        self.processes.push(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A client with a connection and a session of its own.
struct Client {
    stream: BufReader<TcpStream>,
    session: String,
    last_id: u64,
}

impl Client {
    fn start(port: u16) -> io::Result<Self> {
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::thread::yield_now();
                }
                Err(error) => return Err(error),
            }
        };
        stream.set_nodelay(true)?;
        let mut client =
            Client { stream: BufReader::new(stream), session: String::new(), last_id: 0 };
        let me = json!({ "name": "bench", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": me });
        let (headers, _) = client.request("initialize", hello)?;
        let session = headers.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        client.session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
        Ok(client)
    }

    fn call(&mut self) -> io::Result<()> {
        let arguments = json!({ "text": "hello" });
        let (_, body) =
            self.request("tools/call", json!({ "name": "echo", "arguments": arguments }))?;
        match body["id"] == self.last_id && body["result"].is_object() {
            true => Ok(()),
            false => Err(io::Error::other(format!("a wrong answer: {body}"))),
        }
    }

    fn request(&mut self, method: &str, params: Value) -> io::Result<(String, Value)> {
        self.last_id += 1;
        let body =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        let body = body.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n",
            self.session,
            body.len()
        );
        self.stream.get_mut().write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())?;
        let (head, body) = read_message(&mut self.stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((head, serde_json::from_slice(&body)?))
    }
}

/// Reads the head, in lower case, and the body of a request or a response.
fn read_message(from: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)];
    from.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// The server over HTTP: this program with the arguments `serve-http PORT`.
fn serve_http() -> io::Result<()> {
    let port = std::env::args().nth(2).and_then(|port| port.parse().ok());
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0)))?;
    loop {
        let (stream, _) = listener.accept()?;
        std::thread::spawn(move || answer_all(stream));
    }
}

fn answer_all(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some((_, body)) = read_message(&mut stream)? {
        let response = match answer(&body) {
            Some(answer) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            ),
            None => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        stream.get_mut().write_all(response.as_bytes())?;
    }
    Ok(())
}

/// The server over stdio: this program with the argument `serve-stdio`.
fn serve_stdio() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        if let Some(answer) = answer(line?.as_bytes()) {
            let mut out = io::stdout().lock();
            out.write_all(format!("{answer}\n").as_bytes())?;
            out.flush()?;
        }
    }
    Ok(())
}

fn answer(message: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(message).ok()?;
    let params = &message["params"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "bench", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": [] }),
        _ => json!({ "content": [{ "type": "text", "text": params["arguments"]["text"] }] }),
    };
    let id = message.get("id")?;
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
}
