//! Text as the search sees it: identifiers whole, and cut into their parts.
//!
//! Must not know a language. Invariant: words are lower-cased and hold letters, digits and `_` only.

/// Appends the words of a text: each run of word characters whole, and its parts when it has several (`getHTTPResponse` gives
/// `gethttpresponse get http response`).
pub(super) fn append_words(text: &str, out: &mut String) {
    for word in text.split(|character: char| !(character.is_alphanumeric() || character == '_')) {
        if word.is_empty() {
            continue;
        }
        let start = out.len();
        push_lower(word, out);
        out.push(' ');
        let whole = start..out.len() - 1;
        let before = out.len();
        append_parts(word, out);
        // A word that is its only part stands there once.
        if out[before..].trim_end() == &out[whole] {
            out.truncate(before);
        }
    }
}

fn push_lower(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.extend(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        out.extend(text.chars().flat_map(char::to_lowercase));
    }
}

fn append_parts(word: &str, out: &mut String) {
    let mut part = 0;
    let mut before: Option<char> = None;
    let mut characters = word.char_indices().peekable();
    while let Some((index, character)) = characters.next() {
        let after = characters.peek().map(|(_, after)| *after);
        let begins = character == '_'
            || before == Some('_')
            || character.is_uppercase()
                && before.is_some_and(|before| {
                    before.is_lowercase() || before.is_numeric() || before.is_uppercase() && after.is_some_and(char::is_lowercase)
                });
        if begins {
            push_part(&word[part..index], out);
            part = index;
        }
        before = Some(character);
    }
    push_part(&word[part..], out);
}

fn push_part(part: &str, out: &mut String) {
    if !part.is_empty() && part != "_" {
        push_lower(part, out);
        out.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_parts() {
        for (text, expected) in [
            ("getHTTPResponse", "gethttpresponse get http response"),
            ("QuerySet.iterator", "queryset query set iterator"),
            ("chunked_fetch", "chunked_fetch chunked fetch"),
            ("__init__", "__init__ init"),
            ("HTTP2Server", "http2server http2 server"),
            ("def f(a: int = 1) -> str", "def f a int 1 str"),
            ("ÄpfelBaum", "äpfelbaum äpfel baum"),
            ("\"; DROP", "drop"),
            ("_", "_"),
        ] {
            let mut words = String::new();
            append_words(text, &mut words);
            assert_eq!(words.trim_end(), expected, "{text}");
        }
    }
}
