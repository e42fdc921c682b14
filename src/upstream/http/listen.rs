//! What a legacy server says by itself: the stream of a GET (protocol §6.2).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tracing::debug;

use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::{From, Headers};

use super::link::Link;
use super::message::Session;
use super::stream::Stream;

/// Reads the stream as long as the server offers one.
pub async fn listen(link: Arc<Link>, session: Arc<Session>, headers: Headers) {
    let mut stream = match Stream::open(link.clone(), session, headers).await {
        Ok(stream) => stream,
        Err(loss) => return debug!("no stream of the server's own: {}", loss.cause),
    };
    loop {
        while let Some(event) = stream.next().await {
            let is_message = event.is_message();
            if let Some(data) = event.data.filter(|_| is_message) {
                ParsedLine::parse(&data, |heard| link.events.message(heard, From::default()));
            }
        }
        // Nobody waits for it, so it may take as long as it will.
        if let Err(why) = stream.reopen(Duration::MAX).await {
            debug!("the server's own stream is over: {why}");
            if stream.refused == Some(StatusCode::NOT_FOUND) {
                link.session_gone(stream.session());
            }
            return;
        }
    }
}
