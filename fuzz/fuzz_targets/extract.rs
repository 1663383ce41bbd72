//! Facts of any text, in the language that the target is named for (`extract_python`).

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let language = env!("CARGO_BIN_NAME").strip_prefix("extract_").expect("the name of the target says the language");
    sextant_fuzz::extract(language, input);
});
