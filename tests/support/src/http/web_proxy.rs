//! A web proxy as companies have them: it knows the way to one server, whatever name that has.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A proxy for http (whole URLs) and https (`CONNECT`). Dropped, it takes no connection any more.
pub struct WebProxy {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl WebProxy {
    /// Starts it; whatever it is asked for, it connects to `HOST:PORT`.
    pub async fn to(authority: &str) -> Self {
        Self::start(Some(authority.to_owned())).await
    }

    /// One that wants another password.
    pub async fn that_refuses() -> Self {
        Self::start(None).await
    }

    async fn start(authority: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let seen = heads.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, authority.clone(), seen.clone()));
            }
        });
        WebProxy { port, heads, task }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `HOST:PORT` of it.
    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The head of the first request on each connection.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no holder panics").clone()
    }
}

impl Drop for WebProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, authority: Option<String>, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let tunnels = text.starts_with("CONNECT ");
    heads.lock().expect("no holder panics").push(text);
    let Some(authority) = authority else {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\
                       Proxy-Authenticate: Basic realm=\"web\"\r\nContent-Length: 0\r\n\r\n";
        let _ = client.write_all(refusal.as_bytes()).await;
        return;
    };
    let Ok(mut server) = TcpStream::connect(authority).await else { return };
    let begun = match tunnels {
        true => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await,
        // The server understands whole URLs, as every server must.
        false => server.write_all(&head).await,
    };
    if begun.is_ok() {
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
