//! Cutting a snippet out of a file: whole lines, those not shown yet, within two limits.
//!
//! Must not know items. Invariant: the content is a run of whole lines of the range, so that its line numbers and digest are true.

use std::ops::RangeInclusive;

use crate::query::source::{MAX_LINES, SourceRange};

use super::json::encoded_length;

/// A run of whole lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    pub lines: RangeInclusive<u32>,
    pub content: String,
    /// Bytes of `content` inside a JSON string.
    pub encoded: usize,
    /// Why it ends before its range does.
    pub cut: Option<Cut>,
}

/// What ended a snippet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The limits of one snippet.
    Limit,
    /// The room left in the answer.
    Room,
    /// A line that stands in an earlier snippet.
    Shown,
}

/// Why there is no snippet at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// Every line stands in earlier snippets.
    Shown,
    /// The first line is longer than a snippet may be.
    LineTooLarge,
    /// The first line does not fit into the room left.
    NoRoom,
}

/// Cuts the first run of lines of `range` that no range of `shown` holds.
///
/// # Errors
/// [`Nothing`] when not even one line can be shown.
pub fn cut(range: &SourceRange, shown: &[RangeInclusive<u32>], room: usize) -> Result<Snippet, Nothing> {
    let is_shown = |line: u32| shown.iter().any(|lines| lines.contains(&line));
    let last = (*range.lines.end()).min(range.file.line_count());
    let first = (*range.lines.start()..=last).find(|line| !is_shown(*line)).ok_or(Nothing::Shown)?;
    let (mut content, mut encoded, mut end, mut cut) = (String::new(), 0, first, None);
    for number in first..=last {
        let Some(line) = range.file.line(number) else { break };
        let length = encoded_length(line);
        cut = if is_shown(number) {
            Some(Cut::Shown)
        } else if content.len() + line.len() > range.max_bytes || number - first >= MAX_LINES {
            Some(Cut::Limit)
        } else if encoded + length > room {
            Some(Cut::Room)
        } else {
            None
        };
        if cut.is_some() {
            break;
        }
        content.push_str(line);
        encoded += length;
        end = number;
    }
    match (content.is_empty(), cut) {
        (false, _) => Ok(Snippet { lines: first..=end, content, encoded, cut }),
        (true, Some(Cut::Room)) => Err(Nothing::NoRoom),
        (true, Some(Cut::Limit)) => Err(Nothing::LineTooLarge),
        (true, _) => Err(Nothing::Shown),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::query::source::SourceFile;

    fn check(
        text: &str,
        lines: RangeInclusive<u32>,
        shown: &[RangeInclusive<u32>],
        max_bytes: usize,
        room: usize,
        expected: &str,
    ) {
        let file = Arc::new(SourceFile::new(Arc::from(text.as_bytes())));
        let actual = match cut(&SourceRange { file, lines, max_bytes }, shown, room) {
            Ok(snippet) => format!("{:?} {:?} {:?}", snippet.lines, snippet.content, snippet.cut),
            Err(nothing) => format!("{nothing:?}"),
        };
        assert_eq!(actual, expected);
    }

    #[test]
    fn whole_lines_only() {
        check("a\nbb\nc", 1..=3, &[], 99, 99, r#"1..=3 "a\nbb\nc" None"#);
        check("a\nbb\nc", 2..=9, &[], 99, 99, r#"2..=3 "bb\nc" None"#);
        check("a\nbb\nc", 1..=3, &[], 4, 99, r#"1..=1 "a\n" Some(Limit)"#);
        check("a\nbb\nc", 1..=3, &[], 5, 99, r#"1..=2 "a\nbb\n" Some(Limit)"#);
        check("a\nbb\nc", 1..=3, &[], 99, 7, r#"1..=2 "a\nbb\n" Some(Room)"#);
        check("a\nbb\nc", 2..=2, &[], 2, 99, "LineTooLarge");
        check("a\nbb\nc", 2..=2, &[], 9, 3, "NoRoom");
        check("", 1..=1, &[], 9, 9, "Shown");
    }

    #[test]
    fn lines_already_shown_are_left_out() {
        check("a\nb\nc\nd\n", 1..=4, &[3..=3], 99, 99, r#"1..=2 "a\nb\n" Some(Shown)"#);
        check("a\nb\nc\nd\n", 1..=4, &[1..=2], 99, 99, r#"3..=4 "c\nd\n" None"#);
        check("a\nb\nc\nd\n", 2..=3, &[1..=2, 3..=4], 99, 99, "Shown");
    }
}
