//! TLS in front of a server that speaks none.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::generate_simple_self_signed;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Takes TLS connections and hands what is in them to a server. Dropped, it takes none any more.
pub struct TlsFront {
    port: u16,
    home: TempDir,
    task: JoinHandle<()>,
}

impl TlsFront {
    /// Starts it in front of `HOST:PORT`, with a certificate for this name alone.
    pub async fn start(authority: &str, name: &str) -> Self {
        let signed = generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let home = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(home.path().join("ca.pem"), signed.cert.pem()).expect("it can be written");
        let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![signed.cert.der().clone()], key);
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("the two belong together")));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let task = tokio::spawn(accept(listener, acceptor, authority.to_owned()));
        TlsFront { port, home, task }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The file with the certificate that a client must trust.
    pub fn root(&self) -> PathBuf {
        self.home.path().join("ca.pem")
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, authority: String) {
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, authority) = (acceptor.clone(), authority.clone());
        tokio::spawn(async move {
            let Ok(mut inside) = acceptor.accept(socket).await else { return };
            let Ok(mut server) = TcpStream::connect(authority).await else { return };
            let _ = copy_bidirectional(&mut inside, &mut server).await;
        });
    }
}
