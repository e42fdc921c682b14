//! The life of the server, and the end of everything: the handshake, a server that is started anew
//! and told what the old one knew (`restart`), requests that get no answer (`loss`), and the end of
//! the client or of the proxy (`ending`).

mod ending;
mod handshake;
mod loss;
mod restart;
mod settings;
mod step;

pub(crate) use settings::Settings;
pub(crate) use step::RestartStep;
