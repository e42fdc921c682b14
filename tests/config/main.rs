//! What is set before the program does its work: the command line, the configuration in all its layers,
//! the files in `deploy/`, and `unhurry check`, which shows what holds.
#![forbid(unsafe_code)]

mod check;
mod check_url;
mod command_line;
mod config;
mod config_budget;
mod config_example;
mod config_http;
mod deploy;
