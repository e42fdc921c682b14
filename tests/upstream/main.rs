//! Servers at a URL, over Streamable HTTP and HTTP+SSE, and what holds for every pair of a client and a
//! server, whatever the two speak.
#![forbid(unsafe_code)]

mod http_to_http;
mod pairs;
mod transparency;
mod upstream_bodies;
mod upstream_connections;
mod upstream_edges;
mod upstream_faults;
mod upstream_headers;
mod upstream_redirects;
mod upstream_sessions;
mod upstream_streams;
mod upstream_tokens;
mod upstream_transports;
