//! `unhurry`, a transparent MCP proxy for slow tools.
#![forbid(unsafe_code)]
