//! The lives of the server, and the end of the session: the handshake, a server that was restarted
//! and is told what the last one knew (`restart`), requests that get no answer (`loss`), and the
//! end of the client or of the proxy (`ending`).

mod ending;
mod handshake;
mod loss;
mod restart;
