//! Which matches come first: exact names, then parts of names, then text; and which definitions answer a question in plain words.
//!
//! Must not know the wire. Invariant: orders are total (ties end at path and position), and files of tests, generated, minified and
//! deprioritised files come last.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::model::{EdgeKind, ParseStatus, PathPrefix, SymbolKind};
use crate::store::{Generation, NodeId, NodeRow, SearchHit, StoreError};

use super::select::{self, Fit};
use super::words;

/// Most hits of one text search that are ranked.
const MAX_HITS: usize = 300;

/// Returns whether a node is ranked last in the answer to `words`: who asks for tests wants tests.
fn is_demoted_for(node: &NodeRow, words: &[String]) -> bool {
    let wants_tests = words.iter().any(|word| words::is_same_word(word, "test"));
    (select::is_of_tests(node) && !wants_tests) || node.generated || node.minified || node.deprioritized
}

/// How a node matches the query of `symbols`; the smaller the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// The path, or the qualified name.
    Qualified,
    /// The last parts of the qualified name.
    Suffix,
    /// The name.
    Name,
    /// The name, but for the case of its letters.
    Folded,
    /// All words are parts of the name.
    Parts,
    /// The name begins so.
    Start,
    /// The text of the definition holds all words.
    Text,
}

struct Match {
    tier: Tier,
    /// The whole path or module-qualified name: such a match stands first even in a file that is ranked last.
    whole: bool,
    /// Parts of the name that were not asked for.
    extra: usize,
    score: f64,
    node: NodeRow,
}

/// Finds and ranks the symbols that match a query: the first `limit`, and how many there are.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn symbols(
    generation: &Generation,
    query: &str,
    prefix: &PathPrefix,
    limit: usize,
) -> Result<(Vec<NodeRow>, usize), StoreError> {
    let span = tracing::debug_span!("search", matches = tracing::field::Empty);
    let _entered = span.enter();
    let query = query.trim();
    let mut matches: Vec<Match> = Vec::new();
    let mut add = |tier: Tier, score: f64, node: NodeRow| {
        matches.push(Match { tier, whole: false, extra: 0, score, node });
    };
    let paths = exact_path(generation, query, prefix)?;
    // A path that exists is all that was asked for.
    let is_path = query.contains('/') && !paths.is_empty();
    for node in paths {
        add(Tier::Qualified, 0.0, node);
    }
    for (fit, node) in select::by_name(generation, query, prefix)? {
        let tier = match fit {
            Fit::Whole | Fit::Lexical => Tier::Qualified,
            Fit::Suffix if *node.name == *query => Tier::Name,
            Fit::Suffix => Tier::Suffix,
        };
        add(tier, 0.0, node);
    }
    let is_word = !query.contains(char::is_whitespace);
    if is_word {
        for node in generation.nodes_named_folded(query, prefix, MAX_HITS)? {
            add(Tier::Folded, 0.0, node);
        }
        for node in generation.nodes_with_name_prefix(query, prefix, MAX_HITS)? {
            add(Tier::Start, 0.0, node);
        }
    }
    let mut asked: Vec<String> = words::parts(query);
    asked.sort();
    asked.dedup();
    asked.truncate(words::MAX_WORDS);
    if !asked.is_empty() && !is_path {
        for hit in generation.search(&asked, false, prefix, MAX_HITS)? {
            let name = words::parts(&hit.node.name);
            let tier = if asked.iter().all(|word| name.contains(word)) { Tier::Parts } else { Tier::Text };
            add(tier, hit.score, hit.node);
        }
    }
    for found in &mut matches {
        let name = words::parts(&found.node.name);
        found.whole = found.tier == Tier::Qualified && select::fit(&found.node, query) != Some(Fit::Lexical);
        found.extra = if found.tier == Tier::Parts { name.len().saturating_sub(asked.len()) } else { 0 };
    }
    matches.sort_by(|left, right| compare(left, right, &asked));
    let mut seen: BTreeSet<NodeId> = BTreeSet::new();
    matches.retain(|found| seen.insert(found.node.id));
    let total = matches.len();
    span.record("matches", total);
    Ok((matches.into_iter().take(limit).map(|found| found.node).collect(), total))
}

fn compare(left: &Match, right: &Match, asked: &[String]) -> Ordering {
    let key = |found: &Match| (!found.whole, is_demoted_for(&found.node, asked), found.tier, found.extra);
    key(left).cmp(&key(right)).then_with(|| left.score.total_cmp(&right.score)).then_with(|| by_position(&left.node, &right.node))
}

fn by_position(left: &NodeRow, right: &NodeRow) -> Ordering {
    (&left.path, left.start_byte, left.id).cmp(&(&right.path, right.start_byte, right.id))
}

fn exact_path(generation: &Generation, query: &str, prefix: &PathPrefix) -> Result<Vec<NodeRow>, StoreError> {
    if !prefix.matches(query) {
        return Ok(Vec::new());
    }
    match generation.file(query)?.and_then(|file| file.node) {
        Some(id) => Ok(vec![generation.node(id)?]),
        None => Ok(Vec::new()),
    }
}

/// Finds the definitions that answer a question best, at most `limit`, best first. Empty when nothing holds enough of its words.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn seeds(generation: &Generation, question: &str, prefix: &PathPrefix, limit: usize) -> Result<Vec<NodeRow>, StoreError> {
    let span = tracing::debug_span!("search", words = tracing::field::Empty, hits = tracing::field::Empty);
    let _entered = span.enter();
    let mut named = named_seeds(generation, question, prefix)?;
    let asked = words::of_question(question);
    // Who writes a name and nothing else has said what is wanted.
    let is_name = !named.is_empty() && !question.trim().contains(char::is_whitespace);
    if asked.is_empty() || is_name {
        named.truncate(limit);
        return Ok(named);
    }
    let stemmed: Vec<Asked<'_>> = asked.iter().map(|word| Asked { word, stem: words::stem(word) }).collect();
    // A single token is a name: all its parts count. Of a sentence, half the words are enough.
    let enough = if question.trim().contains(char::is_whitespace) { asked.len().div_ceil(2) } else { asked.len() };
    let forms: Vec<String> = asked.iter().flat_map(|word| words::forms(word)).collect();
    let mut hits = generation.search(&asked, false, prefix, MAX_HITS)?;
    hits.extend(generation.search(&forms, true, prefix, MAX_HITS)?);
    let mut seen: BTreeSet<NodeId> = BTreeSet::new();
    hits.retain(|hit| seen.insert(hit.node.id));
    span.record("words", asked.len());
    span.record("hits", hits.len());
    let best = hits.iter().map(|hit| -hit.score).fold(f64::MIN_POSITIVE, f64::max);
    let mut scored: Vec<(f64, NodeRow)> = Vec::new();
    for hit in hits {
        let coverage = coverage(&hit.node, &stemmed, &words_in_text(generation, &hit.node, &asked)?);
        if coverage.words >= enough {
            scored.push((score(&hit, &coverage, best), hit.node));
        }
    }
    let order = |left: &(f64, NodeRow), right: &(f64, NodeRow)| {
        (is_demoted_for(&left.1, &asked).cmp(&is_demoted_for(&right.1, &asked)))
            .then_with(|| right.0.total_cmp(&left.0))
            .then_with(|| by_position(&left.1, &right.1))
    };
    scored.sort_by(order);
    scored.truncate(24);
    for (score, node) in &mut scored {
        let uses = generation.in_degree(node.id, &[EdgeKind::Calls, EdgeKind::Inherits, EdgeKind::References])?;
        *score += 0.06 * (1.0 + uses as f64).log2().min(6.0);
    }
    scored.sort_by(order);
    // A weak match beside strong ones is noise; demoted ones are measured among themselves.
    let first = scored.first().map(|(score, node)| (*score, is_demoted_for(node, &asked)));
    if let Some((top, demoted)) = first {
        scored.retain(|(score, node)| *score >= top * 0.55 && is_demoted_for(node, &asked) == demoted);
    }
    for (_, node) in scored {
        if !named.iter().any(|known| known.id == node.id) {
            named.push(node);
        }
    }
    named.truncate(limit);
    Ok(named)
}

/// Finds the definitions that the question names as code does.
fn named_seeds(generation: &Generation, question: &str, prefix: &PathPrefix) -> Result<Vec<NodeRow>, StoreError> {
    let mut seeds: Vec<NodeRow> = Vec::new();
    for token in words::identifiers(question) {
        let mut found = exact_path(generation, token, prefix)?;
        let named = select::by_name(generation, token, prefix)?;
        let best = named.iter().map(|(fit, node)| (select::is_demoted(node), *fit)).min();
        found
            .extend(named.into_iter().filter(|(fit, node)| Some((select::is_demoted(node), *fit)) == best).map(|(_, node)| node));
        // A plain word that many definitions bear says little; the text search weighs it with the others.
        if found.len() > 4 && !token.contains(['.', ':']) {
            continue;
        }
        found.sort_by(by_position);
        for node in found {
            if !seeds.iter().any(|known| known.id == node.id) {
                seeds.push(node);
            }
        }
    }
    Ok(seeds)
}

/// What of a question's words a node holds, and where.
struct Coverage {
    /// Distinct words found anywhere.
    words: usize,
    /// Sum over words of the weight of the best place each was found in, as a share of the most there could be.
    weight: f64,
    /// Share of the name's own parts that were asked for.
    name: f64,
}

/// A word of the question, and its stem, found once.
struct Asked<'w> {
    word: &'w str,
    stem: &'w str,
}

impl Asked<'_> {
    fn is_form_of(&self, part: &str) -> bool {
        // Forms of one word begin with its stem, which spares most parts a look at their endings.
        part == self.word || part.starts_with(self.stem) && words::stem(part) == self.stem
    }
}

/// Returns which of the words stand in a file that could not be parsed; its text is all there is to find it by.
fn words_in_text<'w>(generation: &Generation, node: &NodeRow, asked: &'w [String]) -> Result<Vec<&'w str>, StoreError> {
    let mut found = Vec::new();
    if node.kind == SymbolKind::File
        && node.parse_status == ParseStatus::Failed
        && let Ok(itself) = PathPrefix::parse(&node.path)
    {
        for word in asked {
            if !generation.search(&words::forms(word), true, &itself, 1)?.is_empty() {
                found.push(word.as_str());
            }
        }
    }
    Ok(found)
}

fn coverage(node: &NodeRow, asked: &[Asked<'_>], in_text: &[&str]) -> Coverage {
    let name = words::parts(&node.name);
    let scope: Vec<String> = if node.kind == SymbolKind::File {
        words::parts(&node.path)
    } else {
        let mut scope = words::parts(&node.qualified_name);
        // `QuerySet` is written `queryset` as often as not.
        scope.extend(node.qualified_name.split('.').map(str::to_lowercase));
        scope
    };
    let path = words::parts(&node.path);
    let signature = node.signature.as_deref().map(words::parts).unwrap_or_default();
    let docstring = node.docstring.as_deref().map(|text| words::parts(first_bytes(text, 600))).unwrap_or_default();
    let whole = node.name.to_lowercase();
    let has = |place: &[String], word: &Asked<'_>| place.iter().any(|part| word.is_form_of(part));
    let (mut found, mut weight) = (0, 0.0);
    for word in asked {
        let best = if has(&name, word) || whole == word.word {
            1.0
        } else if has(&scope, word) {
            0.75
        } else if has(&signature, word) {
            0.5
        } else if has(&docstring, word) {
            0.4
        } else if has(&path, word) {
            0.35
        } else if in_text.contains(&word.word) {
            0.3
        } else {
            continue;
        };
        found += 1;
        weight += best;
    }
    let named = name.iter().filter(|part| asked.iter().any(|word| word.is_form_of(part))).count();
    let share = if asked.iter().any(|word| word.word == whole) { 1.0 } else { named as f64 / name.len().max(1) as f64 };
    Coverage { words: found, weight: weight / asked.len().max(1) as f64, name: share }
}

fn first_bytes(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

fn score(hit: &SearchHit, coverage: &Coverage, best: f64) -> f64 {
    let kind = match hit.node.kind {
        SymbolKind::Class | SymbolKind::Struct | SymbolKind::Interface | SymbolKind::Trait => 0.2,
        SymbolKind::Function | SymbolKind::Method | SymbolKind::Enum | SymbolKind::Type | SymbolKind::Namespace => 0.15,
        SymbolKind::Variable | SymbolKind::Constant => -0.15,
        SymbolKind::File => -0.45,
    };
    let text = (-hit.score / best).clamp(0.0, 1.0);
    2.0 * coverage.weight + 0.5 * coverage.name * coverage.weight.min(0.5) * 2.0 + 0.5 * text + kind
}
