//! What all parts of one life of a server at a URL need.

use std::sync::Arc;

use crate::upstream::observer::ServerObserver;

use super::remote::RemoteServer;

/// What all parts of one life of a server at a URL need.
pub(crate) struct LifeContext {
    /// where the server is
    pub remote: Arc<RemoteServer>,
    /// told what the server says
    pub observer: Arc<dyn ServerObserver>,
    /// `max_message`
    pub limit: usize,
}
