//! `unhurry -- COMMAND`: the wrapper, stdio on both sides.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, info};

use crate::downstream::{Reply, StdioClient, stdin, stdout};
use crate::jobs::caller::Caller;
use crate::relay::{Session, Shared};
use crate::rpc::lines::each_line;
use crate::rpc::outbox::Outbox;
use crate::upstream::Supervisor;

use super::{Context, UNAVAILABLE};

/// How long answers in flight have to leave after the client closed our stdin (§9).
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long written answers have to reach a client that reads slowly.
const FLUSH: Duration = Duration::from_millis(200);
/// How long a wrapper without a server waits for a request that it can answer with the cause (§2).
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// Why the relay ends.
enum Cause {
    /// The client closed our stdin.
    EndOfInput,
    /// The client's end of our stdout is closed, or a signal came.
    AtOnce,
    /// The server can't be started.
    NoServer(Arc<str>),
}

/// Relays until the client leaves. Returns the exit code.
pub(crate) async fn run(context: Context) -> u8 {
    let server = context.server(&context.stderr);
    let Context { config, stderr, .. } = context;
    let config = Arc::new(config);
    let shared = Shared::new(config.clone());
    let registry = shared.registry.clone();
    let client = Arc::new(Outbox::default());
    let make = |events| Supervisor::new(server, config.max_message, events);
    let channel = StdioClient::new(client.clone());
    // Over stdio the caller is the user who runs us (§10).
    let session = Session::new(&shared, channel.clone(), Caller::local(), true, make);
    if let Err(error) = session.start() {
        session.fail(&error.to_string());
    }

    let mut tasks = JoinSet::new();
    let timed = session.clone();
    tasks.spawn(async move { timed.run_deadlines().await });
    tasks.spawn(async move { registry.sweep().await });
    let to_client = client.clone();
    let mut writer = tokio::spawn(async move { to_client.run(stdout()).await });
    // A task of its own: within the `select!` below, each message would wake all that waits there.
    let mut reader = tokio::spawn(read_client(session.clone(), channel, config.max_message));

    let mut signal = pin!(shutdown_signal());
    let cause = tokio::select! {
        biased;
        cause = session.failed() => Cause::NoServer(cause),
        _ = &mut reader => Cause::EndOfInput,
        _ = &mut writer => Cause::AtOnce,
        () = &mut signal => Cause::AtOnce,
    };
    let code = match cause {
        Cause::EndOfInput => {
            debug!("the client closed stdin");
            let idle = tokio::select! {
                idle = timeout(LAST_ANSWERS, session.all_answered()) => idle.is_ok(),
                () = &mut signal => false,
            };
            if !idle {
                info!("the client left before all its requests were answered");
            }
            0
        }
        Cause::AtOnce => 0,
        Cause::NoServer(cause) => {
            stderr.line(format!("unhurry: {cause}\n").into_bytes()).await;
            let _ = timeout(FIRST_REQUEST, session.request_over()).await;
            UNAVAILABLE
        }
    };
    session.close();
    let _ = tokio::join!(timeout(FLUSH, client.flushed()), session.stop());
    client.close();
    reader.abort();
    writer.abort();
    code
}

/// Hands the client's lines to the session. While there is no room on the way to the server, the
/// client is not read, as it would be without us.
async fn read_client(session: Arc<Session>, to: Reply, max_message: usize) {
    each_line(stdin(), max_message, |line| session.from_client(&line, &to), || session.room())
        .await;
}

/// Waits for a signal to end. Signals count from this call on, before the future is polled.
#[cfg(unix)]
pub(super) fn shutdown_signal() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let signals = kinds.map(signal);
    async {
        let [mut terminate, mut interrupt, mut hangup] = match signals {
            [Ok(a), Ok(b), Ok(c)] => [a, b, c],
            _ => return std::future::pending().await,
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Waits for a signal to end.
#[cfg(not(unix))]
pub(super) async fn shutdown_signal() {
    let _ = tokio::signal::ctrl_c().await;
}
