//! The server's side: its process or its URL, and the supervisor that starts it anew.
//!
//! A [`Supervisor`] keeps one server there, life after life. How a life begins says the [`Server`]:
//! as a child process or as requests to a URL. Either takes messages as [`Outgoing`]s, and tells a
//! [`ServerObserver`] what comes back; nothing here knows who that is.

mod child;
mod details;
mod http;
mod life;
mod message_sink;
mod observer;
mod outgoing;
mod server;
mod supervisor;

pub use child::{Environment, Launch, REAPER_ROLE, run_reaper};
pub use details::without_details;
pub use http::RemoteServer;
pub use observer::{Loss, MessageOrigin, ServerEnd, ServerObserver};
pub use outgoing::{Headers, Outgoing};
pub use server::{Server, StartError};
pub use supervisor::{Delivery, Supervisor};
