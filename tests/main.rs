//! The tests of behaviour, one binary: each module is one area and drives the built program or reads the sources.

mod background;
mod bad_input;
mod commands;
mod concurrency;
mod daemon;
mod daemon_trees;
mod damage;
mod faults;
mod hooks;
mod hostile;
mod http;
mod in_process;
mod kills;
mod layering;
mod limits;
mod mcp;
mod mixed;
mod permissions;
mod program;
mod reach;
mod sandbox;
mod service;
mod surface_suite;
mod watch;
mod why;
mod workers;
