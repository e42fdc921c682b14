//! A server over HTTP whose answers to calls a test writes byte by byte.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::DEADLINE;
use crate::json::{member, path};

/// It answers what a session begins with by itself; all other requests are the test's. Dropped, it
/// takes no more.
pub struct Canned {
    url: String,
    requests: Mutex<mpsc::UnboundedReceiver<CannedRequest>>,
    task: JoinHandle<()>,
}

/// A request that a test answers; dropped, the connection ends.
pub struct CannedRequest {
    /// The line of the request and its headers, in lower case.
    pub head: String,
    /// What was POSTed.
    pub body: String,
    socket: BufReader<TcpStream>,
}

impl Canned {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("it is bound"));
        let (sender, requests) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, sender.clone()));
            }
        });
        Canned { url, requests: Mutex::new(requests), task }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next request that is for the test.
    pub async fn next(&self) -> CannedRequest {
        let mut requests = self.requests.lock().await;
        let next = timeout(DEADLINE, requests.recv()).await;
        next.expect("a request comes before the deadline").expect("the server runs")
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CannedRequest {
    /// The raw id of the request.
    pub fn id(&self) -> &str {
        member(&self.body, "id").expect("a request has an id")
    }

    /// A response to it with this text.
    pub fn answer(&self, text: &str) -> String {
        let result = json!({"content": [{"type": "text", "text": text}], "resultType": "complete"});
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id())
    }

    /// Progress of it.
    pub fn progress(&self, progress: u32) -> String {
        let token = path(&self.body, &["params", "_meta", "progressToken"]).expect("a token");
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
        )
    }

    /// Writes bytes.
    pub async fn write(&mut self, bytes: &[u8]) {
        let socket = self.socket.get_mut();
        socket.write_all(bytes).await.expect("the client reads");
    }

    /// Begins a 200 with these headers, each with its line end, and a body in chunks.
    pub async fn begin(&mut self, headers: &str) {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";
        self.write(format!("{head}{headers}\r\n").as_bytes()).await;
    }

    /// A part of the body that has begun; an empty one ends it. The connection is not used again.
    pub async fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let size = format!("{:x}\r\n", bytes.len());
        self.write(&[size.as_bytes(), bytes, b"\r\n"].concat()).await;
    }

    /// Answers with this line of status and headers, each with its line end, and this body.
    pub async fn whole(mut self, status: &str, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let length = format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        let head = format!("HTTP/1.1 {status}\r\n{headers}{length}");
        self.write(&[head.as_bytes(), body].concat()).await;
    }

    /// Waits until the client hangs up.
    pub async fn hung_up(&mut self) {
        let end = timeout(DEADLINE, self.socket.read_to_end(&mut Vec::new())).await;
        let _ = end.expect("the client hangs up before the deadline");
    }
}

async fn serve(socket: TcpStream, requests: mpsc::UnboundedSender<CannedRequest>) {
    let mut socket = BufReader::new(socket);
    while let Some((head, body)) = read(&mut socket).await {
        let Some((status, answer)) = by_itself(&head, &body) else {
            let _ = requests.send(CannedRequest { head, body, socket });
            return;
        };
        let kind = "Content-Type: application/json";
        let length = answer.len();
        let answer =
            format!("HTTP/1.1 {status} X\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{answer}");
        if socket.get_mut().write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(socket: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if socket.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    socket.read_exact(&mut body).await.ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

/// Status and answer to what a session begins with.
fn by_itself(head: &str, body: &str) -> Option<(u16, String)> {
    if !head.starts_with("post ") {
        return Some((405, String::new()));
    }
    let Some(id) = member(body, "id") else { return Some((202, String::new())) };
    let message: Value = serde_json::from_str(body).ok()?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "canned", "version": "1"},
        }),
        "tools/list" => json!({
            "tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        }),
        _ => return None,
    };
    Some((200, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)))
}
