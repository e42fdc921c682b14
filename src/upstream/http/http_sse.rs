//! HTTP+SSE of 2024-11-05 (protocol §6.4): the server speaks on the stream of one GET, whose first
//! event names the address that messages are POSTed to.

use std::str::from_utf8;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::time::timeout;

use crate::rpc::line::Line;
use crate::rpc::parsed_line::ParsedLine;
use crate::upstream::observer::Loss;
use crate::upstream::outgoing::Headers;

use super::context::LifeContext;
use super::loss;
use super::resumable_stream::ResumableStream;
use super::session::ServerSession;
use super::url_reference::resolve;

/// How long the server has to name its address.
const ENDPOINT: Duration = Duration::from_secs(10);

/// Opens the stream; returns it with the address.
///
/// # Errors
/// Why there is none; nothing has been sent.
pub(crate) async fn open(
    context: Arc<LifeContext>,
    headers: Headers,
) -> Result<(ResumableStream, Uri), Loss> {
    let remote = context.remote.clone();
    let opening = async {
        let session = Arc::new(ServerSession::default());
        let mut stream = ResumableStream::open(context, session, headers).await?;
        let event = stream.next().await;
        let event = event.filter(|event| event.name.as_deref() == Some(b"endpoint"));
        let Some(Line::Whole(address)) = event.and_then(|event| event.data) else {
            return Err(loss::no_http_sse(
                remote.address(),
                "its stream begins with no `endpoint`",
            ));
        };
        match from_utf8(&address).ok().and_then(|address| resolve(remote.url(), address.trim())) {
            Some(address) => Ok((stream, address)),
            None => Err(loss::no_http_sse(
                remote.address(),
                "the `endpoint` that it names is of another origin, or no URL",
            )),
        }
    };
    let late = |_| loss::no_http_sse(remote.address(), "it names no `endpoint` within 10 s");
    timeout(ENDPOINT, opening).await.map_err(late)?
}

/// Reads the stream to its end, and hands over each message; returns why it ended: a part of a
/// sentence.
pub(crate) async fn read(mut stream: ResumableStream, on_message: impl Fn(&ParsedLine)) -> String {
    while let Some(event) = stream.next().await {
        let is_message = event.is_message();
        if let Some(data) = event.data.filter(|_| is_message) {
            ParsedLine::parse(&data, &on_message);
        }
    }
    stream.why().to_owned()
}
