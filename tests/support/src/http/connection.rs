//! One request on a connection of its own.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// The task that drives a connection; dropped, it closes the connection.
pub struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request to `HOST:PORT` and waits for the head of the answer. Dropped on the way, it hangs up.
pub async fn send(
    authority: &str,
    request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, Connection), String> {
    let socket = TcpStream::connect(authority).await.map_err(|error| error.to_string())?;
    socket.set_nodelay(true).map_err(|error| error.to_string())?;
    let handshake = http1::handshake(TokioIo::new(socket)).await;
    let (mut sender, driver) = handshake.map_err(|error| error.to_string())?;
    let connection = Connection(tokio::spawn(async move {
        let _ = driver.await;
    }));
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    Ok((response, connection))
}
