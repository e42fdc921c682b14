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

pub(crate) use child::{Environment, Launch, REAPER_ROLE, run_reaper};
pub(crate) use details::without_details;
pub(crate) use http::RemoteServer;
pub(crate) use observer::{Loss, MessageOrigin, ServerEnd, ServerObserver};
pub(crate) use outgoing::{Headers, Outgoing};
pub(crate) use server::{Server, StartError};
pub(crate) use supervisor::{Delivery, Supervisor};
