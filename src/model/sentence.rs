//! An error and its causes, told as one sentence.
//!
//! Must not know who reads it. Invariant: nothing is said twice.

/// Returns an error and its causes as one sentence: `cannot do this: permission denied`.
pub fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors repeat their cause in their own words.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
