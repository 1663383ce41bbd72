//! What the fuzz targets do with an input. The tests of the program do the same with the seeds.
//!
//! Must not need a fuzzer. Invariant: each function returns for every input; a panic is a defect that was found.

use sextant::languages::REGISTRY;
use sextant::model::codec;
use sextant::parse::{protocol, validate};
use sextant::query::request;

/// Makes the facts of a source in every dialect of a language: they fit the source, and their bytes are theirs.
pub fn extract(language: &str, input: &[u8]) {
    let language = REGISTRY.iter().find(|known| known.name() == language).expect("a registered language");
    // No other text gets as far as a grammar.
    let Ok(source) = std::str::from_utf8(input) else { return };
    if source.contains('\0') {
        return;
    }
    for dialect in language.dialects() {
        let facts = language.extract(source, dialect, &mut || false).expect("nobody stops it");
        validate::validate(&facts, source).expect("facts fit their source");
        let encoded = codec::encode(&facts).expect("facts have bytes");
        assert!(encoded.len() <= protocol::max_answer(source.len()), "{} of {}", encoded.len(), source.len());
        assert_eq!(codec::decode(&encoded).as_ref(), Some(&facts));
    }
}

/// Parses a request of the wire contract.
pub fn request(input: &[u8]) {
    if let Err(error) = request::parse(input) {
        assert!(!error.code().is_empty() && !error.to_string().is_empty());
    }
}

/// Takes the input for what a parser process says, for what it is told, and for facts.
pub fn protocol(input: &[u8]) {
    if let Ok((answer, facts)) = protocol::parse_answer(input) {
        let mut frame = Vec::new();
        protocol::write_answer(&mut frame, &answer, facts);
        assert_eq!(protocol::parse_answer(&frame[protocol::LENGTH_BYTES..]), Ok((answer, facts)));
    }
    if let Ok((header, source)) = protocol::parse_request(input) {
        let mut frame = Vec::new();
        protocol::write_request(&mut frame, &header, source);
        assert_eq!(protocol::parse_request(&frame[protocol::LENGTH_BYTES..]), Ok((header, source)));
        let _ = header.language(REGISTRY);
    }
    let (mut stream, mut frame) = (input, Vec::new());
    while let Ok(true) = protocol::read_frame(&mut stream, &mut frame) {
        assert!(frame.len() <= input.len());
    }
    if let Some(facts) = codec::decode(input) {
        for source in ["", "x = 1\n", "def f():\n    return f\n"] {
            let _ = validate::validate(&facts, source);
        }
    }
}
