//! Requests of the wire contract.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sextant_fuzz::request(input));
