//! The byte budget of an answer: what is shown first, what is left out, and that it is said.
//!
//! Must not know operations. Invariant: the encoded answer is never longer than the budget; items keep their order, and identities with
//! their witnesses come before any source.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::model::ContentHash;
use crate::query::response::{Item, OUTPUT_BUDGET, Response, SOURCE_LINE_TOO_LARGE, SOURCE_TRUNCATED, Side, SourceOmitted};

use super::json::to_json;
use super::snippet::{self, Cut, Nothing};

/// The smallest honest answer does not fit into the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the smallest honest answer needs {needed} bytes; `max_bytes` is {max_bytes}")]
pub struct BudgetTooSmall {
    pub needed: usize,
    pub max_bytes: usize,
}

impl BudgetTooSmall {
    /// Returns the code of the contract (§3).
    pub fn code(&self) -> &'static str {
        "budget_too_small"
    }
}

/// Words that placing snippets may still add to `limitations`, encoded, with their commas.
const RESERVE: usize = SOURCE_TRUNCATED.len() + SOURCE_LINE_TOO_LARGE.len() + 6;

/// Shows all that the response wants to show, within `max_bytes` of JSON.
///
/// # Errors
/// [`BudgetTooSmall`] when not even the answer without items fits.
pub fn fit(response: Response, max_bytes: usize) -> Result<Response, BudgetTooSmall> {
    let _span = tracing::debug_span!("render", items = response.items.len(), max_bytes).entered();
    let whole = unbounded(response.clone());
    let whole_length = to_json(&whole).len();
    if whole_length <= max_bytes {
        return Ok(whole);
    }
    drop(whole);
    let mut response = response;
    let wants_source = response.items.iter().any(|item| item.source.is_some());
    let mut items = std::mem::take(&mut response.items);
    items.iter_mut().for_each(strip);
    let lengths: Vec<usize> = items.iter().map(|item| to_json(item).len() + 1).collect();

    response.cut(OUTPUT_BUDGET);
    let mut envelope = to_json(&response).len();
    if envelope > max_bytes && response.coverage.near.take().is_some() {
        envelope = to_json(&response).len();
    }
    if envelope > max_bytes {
        // An answer of next to nothing may be shorter whole than cut, as it need not say that it was cut.
        return Err(BudgetTooSmall { needed: envelope.min(whole_length), max_bytes });
    }
    // The first item has no comma before it.
    let mut used = envelope - 1;
    let kept = lengths
        .iter()
        .take_while(|length| {
            let fits = used + **length <= max_bytes;
            used += if fits { **length } else { 0 };
            fits
        })
        .count();
    items.truncate(kept);
    if items.is_empty() {
        return Ok(response);
    }

    let room = max_bytes.saturating_sub(if wants_source { RESERVE } else { 0 });
    for item in &mut items {
        let before = to_json(item).len();
        item.detail = item.wanted.take();
        let longer = to_json(item).len() - before;
        if used + longer <= room {
            used += longer;
        } else {
            item.wanted = item.detail.take();
        }
    }
    let mut shown = Shown::default();
    for item in &mut items {
        used = place(item, &mut shown, &mut response, used, room);
    }
    response.items = items;
    Ok(response)
}

/// Shows all that the response wants to show; only the limits of single snippets hold.
pub fn unbounded(mut response: Response) -> Response {
    let mut items = std::mem::take(&mut response.items);
    let mut shown = Shown::default();
    for item in &mut items {
        strip(item);
        item.detail = item.wanted.take();
        place(item, &mut shown, &mut response, 0, usize::MAX / 2);
    }
    response.items = items;
    response
}

/// Lines shown of a file, which has others in another generation.
type Shown = BTreeMap<(Arc<str>, Option<Side>), Vec<RangeInclusive<u32>>>;

/// Leaves an item with its identity and witness, saying that its source found no room.
fn strip(item: &mut Item) {
    item.detail = None;
    item.content = None;
    item.snippet_sha256 = None;
    if item.source.is_some() {
        item.source_omitted = Some(SourceOmitted::OutputBudget);
    }
}

/// Gives an item its snippet, as far as there is room, and returns how many bytes are used then.
fn place(item: &mut Item, shown: &mut Shown, response: &mut Response, used: usize, room: usize) -> usize {
    let Some(range) = item.source.clone() else { return used };
    let before = to_json(item).len();
    let bare = (item.start_line, item.end_line, item.source_omitted);
    // Measured with the longest line numbers the snippet can have, and empty content.
    item.source_omitted = None;
    item.start_line = *range.lines.end();
    item.end_line = *range.lines.end();
    item.snippet_sha256 = Some("0".repeat(64));
    item.content = Some(String::new());
    let framed = used - before.min(used) + to_json(item).len();
    let earlier = shown.entry((item.path.clone(), item.generation)).or_default();
    let omitted = match snippet::cut(&range, earlier, room.saturating_sub(framed)) {
        Ok(_) if framed > room => SourceOmitted::OutputBudget,
        Ok(snippet) => {
            match snippet.cut {
                Some(Cut::Limit) => response.cut(SOURCE_TRUNCATED),
                Some(Cut::Room) => {
                    response.cut(SOURCE_TRUNCATED);
                    response.cut(OUTPUT_BUDGET);
                }
                Some(Cut::Shown) | None => {}
            }
            earlier.push(snippet.lines.clone());
            item.start_line = *snippet.lines.start();
            item.end_line = *snippet.lines.end();
            item.snippet_sha256 = Some(ContentHash::of(snippet.content.as_bytes()).hex());
            item.content = Some(snippet.content);
            return used - before.min(used) + to_json(item).len();
        }
        Err(Nothing::NoRoom) => SourceOmitted::OutputBudget,
        Err(Nothing::LineTooLarge) => SourceOmitted::SourceLineTooLarge,
        Err(Nothing::Shown) => SourceOmitted::ShownAbove,
    };
    (item.start_line, item.end_line) = (bare.0, bare.1);
    item.content = None;
    item.snippet_sha256 = None;
    item.source_omitted = Some(omitted);
    match omitted {
        // The same word in the same place: as long as before.
        SourceOmitted::OutputBudget => response.cut(OUTPUT_BUDGET),
        SourceOmitted::SourceLineTooLarge => response.cut(SOURCE_LINE_TOO_LARGE),
        SourceOmitted::ShownAbove => {}
    }
    let after = used - before.min(used) + to_json(item).len();
    if after > room {
        item.source_omitted = bare.2;
        response.cut(OUTPUT_BUDGET);
        return used;
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Resolution, SymbolKind};
    use crate::query::response::{CoverageReport, Detail, SCHEMA, Site, Status};
    use crate::query::source::{MAX_SNIPPET, SourceFile, SourceRange};
    use crate::query::tests::graph::Dice;

    fn response(items: Vec<Item>) -> Response {
        Response {
            schema: SCHEMA,
            scope_id: "demo".to_owned(),
            fingerprint: "f".repeat(64),
            before_fingerprint: None,
            commit: None,
            git_object_format: "sha1".to_owned(),
            dirty: true,
            checked_at: "2026-11-30T02:11:09.123456+00:00".to_owned(),
            operation: "explore",
            status: Status::Ok,
            total: items.len() as u64,
            asked: None,
            deepest: false,
            items,
            coverage: CoverageReport::default(),
            limitations: vec!["static_analysis_only".to_owned(), "dynamic_relationships_may_be_missing".to_owned()],
            subject: None,
        }
    }

    fn item(path: &str, file: &Arc<SourceFile>, lines: RangeInclusive<u32>) -> Item {
        Item {
            id: Some(ContentHash::of(path.as_bytes())),
            kind: Some(SymbolKind::Function),
            path: Arc::from(path),
            start_line: *lines.start(),
            end_line: *lines.end(),
            file_sha256: Some(ContentHash([0; 32])),
            resolution: Some(Resolution::ResolvedStatic),
            source: Some(SourceRange { file: file.clone(), lines, max_bytes: MAX_SNIPPET }),
            ..Item::default()
        }
    }

    fn file(text: &str) -> Arc<SourceFile> {
        Arc::new(SourceFile::new(Arc::from(text.as_bytes())))
    }

    /// Says of every item what it shows.
    fn outline(response: &Response) -> String {
        let shows = |item: &Item| match (&item.content, item.source_omitted) {
            (Some(_), None) => format!("{}-{}", item.start_line, item.end_line),
            (None, Some(why)) => format!("{why:?}"),
            other => format!("{other:?}"),
        };
        response.items.iter().map(shows).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn identities_before_sources() {
        let text = file(&"x = 1\n".repeat(100));
        let items = || vec![item("a", &text, 1..=60), item("b", &text, 1..=60), item("c", &text, 1..=2)];
        let whole = to_json(&fit(response(items()), 32_768).expect("fits")).len();
        let exact = fit(response(items()), whole).expect("fits");
        assert_eq!((outline(&exact).as_str(), exact.status), ("1-60 1-60 1-2", Status::Ok));
        let less = fit(response(items()), whole - 1).expect("fits");
        assert_eq!(outline(&less), "1-60 1-60 OutputBudget");
        assert_eq!(less.limitations[2..], ["output_budget"]);
        let less = fit(response(items()), whole - 200).expect("fits");
        assert_eq!(outline(&less), "1-60 1-33 OutputBudget");
        assert_eq!(less.limitations[2..], ["output_budget", "source_truncated"]);
        let tight = fit(response(items()), 1_700).expect("fits");
        assert_eq!((tight.items.len(), tight.status), (3, Status::Partial));
        let none = fit(response(items()), 500).expect_err("too small");
        assert_eq!(fit(response(items()), none.needed).expect("fits").items.len(), 0);
    }

    #[test]
    fn lines_are_shown_once() {
        let text = file("a\nb\nc\nd\ne\nf\n");
        let items = vec![item("a", &text, 2..=4), item("a", &text, 1..=6), item("a", &text, 3..=3)];
        let all = fit(response(items), 32_768).expect("fits");
        assert_eq!((outline(&all).as_str(), all.status), ("2-4 1-1 ShownAbove", Status::Ok));
    }

    #[test]
    fn a_long_line_is_not_split() {
        let text = file(&format!("{}\nshort\n", "x".repeat(2_001)));
        let all = fit(response(vec![item("a", &text, 1..=2)]), 32_768).expect("fits");
        assert_eq!(outline(&all), "SourceLineTooLarge");
        assert_eq!(all.limitations[2..], ["source_line_too_large"]);
    }

    #[test]
    fn any_answer_at_any_size() {
        let pieces = ["x = \"é→\"", "\t\\", "\r", "\n", "\n", "\r\n", "def f():", "\u{1}", "  𝄞", "abcdefghijklmnopqrstuvwxyz"];
        let mut dice = Dice(0x5eed);
        for _ in 0..300 {
            let count = dice.roll(9);
            let items: Vec<Item> = (0..count)
                .map(|index| {
                    let text: String = (0..dice.roll(400)).map(|_| pieces[dice.roll(pieces.len())]).collect();
                    let text = file(&text);
                    let start = 1 + dice.roll(20) as u32;
                    let lines = start..=start + dice.roll(90) as u32;
                    let mut item = item(&format!("p{}", index / 2), &text, lines);
                    if dice.roll(2) == 0 {
                        let sites = vec![Site { line: start, text: Some("call(\"x\")".to_owned()) }];
                        item.wanted = Some(Detail { sites: Some(sites), ..Detail::default() });
                    }
                    item
                })
                .collect();
            let max_bytes = 512 + dice.roll(9_000);
            let sources: Vec<_> = items.iter().map(|item| item.source.clone()).collect();
            let Ok(answer) = fit(response(items), max_bytes) else {
                assert!(max_bytes < 1_200, "an empty answer fits into {max_bytes}");
                continue;
            };
            let body = to_json(&answer);
            assert!(body.len() <= max_bytes, "{} > {max_bytes}", body.len());
            let value: serde_json::Value = serde_json::from_str(&body).expect("valid JSON");
            for (item, source) in value["items"].as_array().expect("a list").iter().zip(&sources) {
                let Some(content) = item["content"].as_str() else { continue };
                let source = source.as_ref().expect("shown");
                let line = |name: &str| item[name].as_u64().expect("a number") as u32;
                let whole: String =
                    (line("start_line")..=line("end_line")).map(|number| source.file.line(number).expect("exists")).collect();
                assert_eq!(content, whole);
                assert_eq!(item["snippet_sha256"], ContentHash::of(content.as_bytes()).hex());
                assert!(content.len() <= MAX_SNIPPET);
            }
        }
    }
}
