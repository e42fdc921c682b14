//! What a legacy server says by itself: the stream of a GET (protocol §6.2).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tracing::debug;

use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::observer::MessageOrigin;
use crate::upstream::outgoing::Headers;

use super::context::LifeContext;
use super::resumable_stream::ResumableStream;
use super::session::ServerSession;

/// How the stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StandaloneEnd {
    /// the server offers none, or no longer
    Over,
    /// the server does not know the session
    SessionForgotten,
}

/// Reads the stream as long as the server offers one.
pub(crate) async fn read(
    context: Arc<LifeContext>,
    session: Arc<ServerSession>,
    headers: Headers,
) -> StandaloneEnd {
    let mut stream = match ResumableStream::open(context.clone(), session, headers).await {
        Ok(stream) => stream,
        Err(loss) => {
            debug!("no stream of the server's own: {}", loss.cause);
            return StandaloneEnd::Over;
        }
    };
    loop {
        while let Some(event) = stream.next().await {
            let is_message = event.is_message();
            if let Some(data) = event.data.filter(|_| is_message) {
                let origin = MessageOrigin::default();
                ParsedLine::parse(&data, |line| context.observer.message(line, origin));
            }
        }
        // Nobody waits for it, so it may take as long as it will.
        if let Err(why) = stream.reopen(Duration::MAX).await {
            debug!("the server's own stream is over: {why}");
            return match stream.refused {
                Some(StatusCode::NOT_FOUND) => StandaloneEnd::SessionForgotten,
                _ => StandaloneEnd::Over,
            };
        }
    }
}
