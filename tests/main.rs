//! The tests of behaviour, one binary: each module is one area and drives the built program or reads the sources.

mod layering;
