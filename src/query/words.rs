//! Words: the parts of identifiers, the words of a question, and how near two names are.
//!
//! Must not know nodes. Invariant: every word is lower-case and holds letters, digits and nothing else, so that it can be searched as it is.

/// Most words of one question that are searched; a longer text only repeats itself.
pub const MAX_WORDS: usize = 24;

/// Words that say nothing about code when others stand beside them.
const FILLERS: [&str; 55] = [
    "a",
    "about",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "by",
    "can",
    "code",
    "do",
    "does",
    "done",
    "for",
    "from",
    "get",
    "gets",
    "happen",
    "happens",
    "has",
    "have",
    "how",
    "i",
    "implemented",
    "in",
    "into",
    "is",
    "it",
    "its",
    "me",
    "of",
    "on",
    "or",
    "show",
    "that",
    "the",
    "their",
    "there",
    "these",
    "this",
    "to",
    "used",
    "was",
    "what",
    "when",
    "where",
    "which",
    "who",
    "why",
    "will",
    "with",
    "work",
];

/// Returns the parts of an identifier or path, lower-cased: `getHTTPResponse` → get, http, response; digits stay with what is before them.
pub fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            parts.extend((!part.is_empty()).then(|| std::mem::take(&mut part)));
            continue;
        }
        let before = index.checked_sub(1).map(|index| characters[index]);
        let after = characters.get(index + 1);
        let begins = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if begins && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        part.extend(character.to_lowercase().filter(|character| character.is_alphanumeric()));
    }
    parts.extend((!part.is_empty()).then_some(part));
    parts
}

/// Returns the distinct words of a question in their order, without fillers unless there is nothing else.
pub fn of_question(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in parts(text) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.iter().any(|word| !FILLERS.contains(&word.as_str())) {
        words.retain(|word| !FILLERS.contains(&word.as_str()));
    }
    words.truncate(MAX_WORDS);
    words
}

/// Returns what in a question looks written as code: tokens with `.`, `_`, `::`, `/`, inner capitals or digits, and a single word by itself.
pub fn identifiers(text: &str) -> Vec<&str> {
    let tokens: Vec<&str> = text
        .split(|character: char| character.is_whitespace() || "\"'`,;?!()[]{}<>=".contains(character))
        .map(|token| token.trim_matches(['.', ':', '/']))
        .filter(|token| !token.is_empty())
        .collect();
    if let [only] = tokens[..] {
        return vec![only];
    }
    let is_code = |token: &&str| {
        token.contains(['.', '_', ':', '/'])
            || token.chars().skip(1).any(char::is_uppercase)
            || token.chars().next().is_some_and(char::is_uppercase) && !FILLERS.contains(&token.to_lowercase().as_str())
    };
    tokens.into_iter().filter(is_code).take(8).collect()
}

/// Longest first, so that the whole ending goes.
const ENDINGS: [&str; 21] = [
    "izations", "ization", "ations", "ation", "ators", "ating", "ator", "ates", "ated", "ables", "able", "ings", "ions", "ate",
    "ing", "ion", "ers", "er", "ed", "es", "or",
];

/// Returns a word without its ending: `iteration`, `iterator` and `iterates` have one stem. At least four letters remain.
pub fn stem(word: &str) -> &str {
    let cut = |ending: &str| word.strip_suffix(ending).filter(|stem| stem.chars().count() >= 4);
    let stem = ENDINGS.iter().find_map(|ending| cut(ending)).or_else(|| cut("s")).unwrap_or(word);
    stem.strip_suffix(['e', 'y', 'i']).filter(|shorter| shorter.chars().count() >= 4).unwrap_or(stem)
}

/// Returns a word and the forms of it that names use, for a search that knows no stems. The word itself comes first.
pub fn forms(word: &str) -> Vec<String> {
    let stem = stem(word);
    let mut forms = vec![word.to_owned()];
    if stem.chars().count() < 3 || !stem.is_ascii() || stem.bytes().any(|byte| byte.is_ascii_digit()) {
        return forms;
    }
    for ending in ["", "e", "s", "es", "ed", "er", "or", "ing", "ion", "able", "ate", "ator", "ation", "y", "ies"] {
        let form = format!("{stem}{ending}");
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Returns whether two words are forms of one.
pub fn is_same_word(left: &str, right: &str) -> bool {
    left == right || stem(left) == stem(right)
}

/// Returns how many insertions, deletions, substitutions and swaps of neighbours turn one text into the other (optimal string alignment),
/// without regard to ASCII case; `None` when more than `most`.
pub fn distance(left: &str, right: &str, most: usize) -> Option<usize> {
    let left: Vec<char> = left.chars().map(|character| character.to_ascii_lowercase()).collect();
    let right: Vec<char> = right.chars().map(|character| character.to_ascii_lowercase()).collect();
    if left.len().abs_diff(right.len()) > most {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &l) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        for (column, &r) in right.iter().enumerate() {
            let mut cost = (last[column] + usize::from(l != r)).min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && l == right[column - 1] && left[row - 1] == r {
                cost = cost.min(before_last[column - 1] + 1);
            }
            current.push(cost);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_identifiers() {
        for (name, expected) in [
            ("getHTTPResponse", "get http response"),
            ("get_http_response", "get http response"),
            ("HTTP2Server", "http2 server"),
            ("utf8_decode", "utf8 decode"),
            ("QuerySet.iterator", "query set iterator"),
            ("__init__", "init"),
            ("ÄpfelBaum", "äpfel baum"),
            ("A", "a"),
            ("ABC", "abc"),
            ("a/b-c.py", "a b c py"),
            ("?!", ""),
        ] {
            assert_eq!(parts(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn words_of_questions() {
        for (question, expected) in [
            ("How does the queryset iteration work?", "queryset iteration"),
            ("what is it", "what is it"),
            ("prepare_context prepare", "prepare context"),
        ] {
            assert_eq!(of_question(question).join(" "), expected, "{question}");
        }
    }

    #[test]
    fn identifiers_in_questions() {
        for (question, expected) in [
            ("queryset", "queryset"),
            ("who calls QuerySet.iterator() and a_b?", "QuerySet.iterator a_b"),
            ("where is the cart total", ""),
            ("how does Model save", "Model"),
            ("How does it", ""),
        ] {
            assert_eq!(identifiers(question).join(" "), expected, "{question}");
        }
    }

    #[test]
    fn forms_of_one_word() {
        for (left, right) in [
            ("iteration", "iterator"),
            ("iterable", "iterate"),
            ("chunked", "chunks"),
            ("queries", "query"),
            ("fetch", "fetches"),
        ] {
            assert!(is_same_word(left, right), "{left} {right}: {} {}", stem(left), stem(right));
        }
        for (left, right) in [("set", "sets"), ("form", "format"), ("model", "mode"), ("test", "text")] {
            assert!(!is_same_word(left, right), "{left} {right}: {} {}", stem(left), stem(right));
        }
        assert!(forms("iteration").contains(&"iterable".to_owned()));
        assert_eq!(forms("utf8"), ["utf8"]);
    }

    #[test]
    fn edit_distance() {
        for (left, right, expected) in [
            ("iterator", "iterator", Some(0)),
            ("Iterater", "iterator", Some(1)),
            ("itreator", "iterator", Some(1)),
            ("a", "abcd", None),
        ] {
            assert_eq!(distance(left, right, 2), expected, "{left} {right}");
        }
    }
}
