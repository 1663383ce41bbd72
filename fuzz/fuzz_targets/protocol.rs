//! Messages between a build and its parser processes.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sextant_fuzz::protocol(input));
