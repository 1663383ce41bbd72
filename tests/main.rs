//! The tests of behaviour, one binary: each module is one area and drives the built program or reads the sources.

mod bad_input;
mod commands;
mod faults;
mod hostile;
mod kills;
mod layering;
mod program;
mod reach;
mod sandbox;
mod workers;
