//! `unhurry serve`: the sidecar, Streamable HTTP on the client's side.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::config::Config;
use crate::downstream::http::listen;
use crate::relay::Shared;
use crate::sidecar::{PATH, Principals, Sessions, Sidecar};

use super::run::shutdown_signal;
use super::{Context, USAGE};

/// How long the last answers have to leave.
const FLUSH: Duration = Duration::from_secs(1);
/// Connections that may wait to be taken: clients come in bursts.
const BACKLOG: u32 = 4096;
/// File descriptors that are asked for: each client takes one, and each of its calls may take another.
#[cfg(unix)]
const DESCRIPTORS: u64 = 65_536;

/// Serves until a signal comes. Returns the exit code.
pub(crate) async fn serve(context: Context) -> u8 {
    let address = context.config.server.listen;
    let (listener, address) = match bind(address) {
        Ok(bound) => bound,
        Err(error) => {
            eprintln!("unhurry: cannot listen on {address} (server.listen): {error}");
            return USAGE;
        }
    };
    if let Err(error) = raise_descriptor_limit() {
        warn!("the limit on open files stays as it is: {error}");
    }
    let server = context.server(&context.stderr);
    let Context { config, .. } = context;
    let config = Arc::new(config);
    let shared = Shared::new(config.clone());
    let registry = shared.registry.clone();
    let sessions = Sessions::new(shared, server.clone(), config.remote().is_none());
    let principals = Principals::new(&config.server);
    let sidecar = Sidecar::new(config.clone(), sessions.clone(), principals, server);

    // From here on no signal is missed: whoever reads the next line may send one at once.
    let first_signal = shutdown_signal();
    info!("listening on http://{address}{PATH}");
    warn_if_open(&config, address);
    let mut tasks = JoinSet::new();
    let swept = sessions.clone();
    tasks.spawn(async move { swept.sweep().await });
    tasks.spawn(async move { registry.sweep().await });
    let (ending, ended) = watch::channel(false);
    let mut connections = tokio::spawn(listen(listener, Arc::new(sidecar), ended));

    first_signal.await;
    // A second one ends the wait for what runs.
    let second_signal = shutdown_signal();
    info!("ending: what runs has {:?} (server.drain_timeout)", config.server.drain_timeout);
    let _ = ending.send(true);
    sessions.drain(config.server.drain_timeout, second_signal).await;
    if timeout(FLUSH, &mut connections).await.is_err() {
        connections.abort();
    }
    0
}

fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Warns where whoever reaches the address may call every tool.
fn warn_if_open(config: &Config, address: SocketAddr) {
    if !address.ip().is_loopback() && config.server.token.is_none() {
        warn!(
            "{address} is not a loopback address and server.token is not set: anybody who reaches \
             it may call the server's tools"
        );
    }
}

#[cfg(unix)]
fn raise_descriptor_limit() -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = hard.min(DESCRIPTORS);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn raise_descriptor_limit() -> io::Result<()> {
    Ok(())
}
