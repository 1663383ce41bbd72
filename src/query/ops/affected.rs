//! `affected_tests`: the tests that a change of files may break. Must not rank. Invariant: what was walked to comes before what is only
//! named alike, and that nothing was found is not said where a limit was met: the answer is partial then.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::languages::{LanguageSupport, language_of};
use crate::model::{RepoPath, Resolution};
use crate::query::reach::{self, Reached, Strength, USES};
use crate::query::request::{MAX_DEPTH, Paths};
use crate::query::response::{CANDIDATE_TESTS, Granularity, ITEM_LIMIT, Item, Why};
use crate::query::{QueryError, Result};
use crate::store::{Generation, NodeRow, StoreError};

use super::Context;

/// What a path is to a question about source files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Source,
    /// Indexed, but in no language that is read.
    NotSource,
    /// Left out of the index, with the stable word of the reason.
    Omitted(Arc<str>),
    /// Not in the index: deleted, ignored or never there.
    Unknown,
}

impl Standing {
    /// Returns the stable word of the reason why a question cannot start there; `None` when it can.
    pub fn reason(&self) -> Option<Arc<str>> {
        match self {
            Self::Source => None,
            Self::NotSource => Some(Arc::from("not_source")),
            Self::Omitted(reason) => Some(reason.clone()),
            Self::Unknown => Some(Arc::from("not_indexed")),
        }
    }
}

/// Returns what a path is in a generation.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn standing(generation: &Generation, path: &RepoPath) -> std::result::Result<Standing, StoreError> {
    Ok(match generation.file(path.as_str())? {
        None => Standing::Unknown,
        Some(file) => match (file.omitted, file.language) {
            (Some(reason), _) => Standing::Omitted(reason),
            (None, Some(_)) => Standing::Source,
            (None, None) => Standing::NotSource,
        },
    })
}

/// Lists the test files and the definitions in them that use what the paths hold, however indirectly; the paths' own tests first.
pub fn run(context: &mut Context<'_>, asked: &Paths) -> Result<()> {
    let generation = context.generation;
    let mut seeds = Vec::new();
    let mut limitations = BTreeSet::new();
    for path in &asked.paths {
        if !asked.prefix.matches(path.as_str()) || standing(generation, path)? != Standing::Source {
            return Err(QueryError::TargetMissing { what: "such source file" });
        }
        seeds.extend(generation.nodes_in_file(path.as_str())?);
        limitations.extend(language_of(path).map_or(&[][..], |(language, _)| language.test_limitations()));
    }
    context.response.limit(CANDIDATE_TESTS);
    for word in limitations {
        context.response.limit(word);
    }
    seeds.sort_by_key(|seed| seed.id);
    let mut reach = reach::reach(generation, &seeds, &USES, &asked.prefix, MAX_DEPTH)?;
    let changed = seeds.iter().filter(|seed| seed.test);
    let changed = changed.map(|seed| Reached { node: seed.clone(), strength: Strength::default(), path: Vec::new() });
    reach.reached.splice(0..0, changed);
    let hints = hints(context, asked, &reach.reached)?;
    context.response.coverage.unresolved_mentions = Some(context.mentions_of(&seeds)?);
    let mut items = context.strongest(&reach, asked.limit, |reached| reached.node.test)?;
    context.response.total += hints.len() as u64;
    let room = asked.limit - items.len();
    if hints.len() > room {
        context.response.cut(ITEM_LIMIT);
    }
    items.extend(hints.into_iter().take(room));
    context.response.items = items;
    Ok(())
}

/// Returns the test files that no path leads to, but whose place or name says that they test one of the changed files, or run under a
/// file that the walk came to.
fn hints(context: &Context<'_>, asked: &Paths, reached: &[Reached]) -> Result<Vec<Item>> {
    let known: BTreeSet<&str> = reached.iter().filter(|reached| reached.node.test).map(|reached| &*reached.node.path).collect();
    let mut sources: BTreeSet<&str> = asked.paths.iter().map(RepoPath::as_str).collect();
    sources.extend(&known);
    let sources: Vec<(RepoPath, &dyn LanguageSupport)> = sources
        .into_iter()
        .filter_map(|path| RepoPath::parse(path).ok())
        .filter_map(|path| language_of(&path).map(|(language, _)| (path, language)))
        .collect();
    let is_hint = |test: &NodeRow| {
        let Ok(path) = RepoPath::parse(&test.path) else { return false };
        !known.contains(&*test.path)
            && language_of(&path).is_some_and(|(of_test, _)| {
                let of = |(source, language): &(RepoPath, &dyn LanguageSupport)| {
                    language.family() == of_test.family() && language.is_test_of(&path, source)
                };
                sources.iter().any(of)
            })
    };
    let tests = context.generation.test_files(&asked.prefix)?;
    Ok(tests.iter().filter(|test| is_hint(test)).map(|test| hint(context, test)).collect())
}

fn hint(context: &Context<'_>, test: &NodeRow) -> Item {
    let mut item = context.item(test);
    item.reason = Some(Why::NameHint);
    item.resolution = Some(Resolution::Candidate);
    item.granularity = Some(Granularity::Module);
    item.witness_path = Some(Vec::new());
    item
}
