//! The JSON body of an answer: compact, in the order of the contract.
//!
//! Must not know what was cut. Invariant: the text is exactly what [`super::budget`] measured.

use serde::Serialize;

use crate::query::Response;

/// Returns the body of an answer.
pub fn encode(response: &Response) -> String {
    to_json(response)
}

/// Returns the compact JSON of a value of the contract.
pub(super) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("values of the contract have string keys and no failing serialiser")
}

/// Returns how many bytes `text` takes inside a JSON string, quotes not counted.
pub(super) fn encoded_length(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0x00..=0x1f => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_inside_a_string() {
        let every: String = (0..=0x7f).map(char::from).collect();
        for text in ["", "a", "\"\\/\n\r\t\u{8}\u{c}\u{1}\u{7f}", "é→𝄞\u{2028}", every.as_str()] {
            assert_eq!(encoded_length(text) + 2, to_json(&text).len(), "{text:?}");
        }
    }
}
