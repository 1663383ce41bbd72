//! What a build does with bytes while they are in hand: keep the source, take the blob id, make the facts.
//!
//! Must not open files. Invariant: facts and stored source of a hash come from the very bytes that were hashed, and each content is
//! worked on once, however many files have it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dashmap::{DashMap, Entry};

use crate::analysis::Outcome;
use crate::languages::{Dialect, LanguageSupport, find_language, text};
use crate::model::{ContentHash, Demand, FileFacts, RepoPath};
use crate::parse::{Extracted, ParseError, ParseFailure, ParseLimits, Parser};
use crate::store::{ObjectRef, PackWriter};
use crate::workspace::{ObjectFormat, blob_id};

use super::EngineError;
use super::failed::{FailedContent, FailedParse};

/// A content as one dialect reads it: what facts are a function of.
pub(super) type FactsKey = (ContentHash, Dialect);

/// What a file's content came to.
pub(super) type Extraction = Result<Arc<FileFacts>, FailedContent>;

/// What was made of a content from its bytes.
pub(super) struct Fresh {
    pub reading: Reading,
    pub extraction: Extraction,
    /// The facts as the facts cache keeps them, where the parser gave them so.
    pub encoded: Option<Vec<u8>>,
}

/// Where a content is kept and what Git calls it.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub object: ObjectRef,
    /// `None` without Git.
    pub blob: Option<Vec<u8>>,
}

/// How one path is read: by a registered language, or as text.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub language: Option<&'static dyn LanguageSupport>,
    pub dialect: Dialect,
}

impl Reading {
    pub fn of(languages: &[&'static dyn LanguageSupport], path: &RepoPath) -> Self {
        match find_language(languages, path) {
            Some((index, dialect)) => Self { language: Some(languages[index]), dialect },
            None => Self { language: None, dialect: text::dialect(languages, path) },
        }
    }

    /// Returns how files of a dialect are read.
    pub fn of_dialect(languages: &[&'static dyn LanguageSupport], dialect: Dialect) -> Self {
        Self { language: languages.iter().copied().find(|language| language.dialects().contains(&dialect)), dialect }
    }

    /// Returns whether resolution reads the facts.
    pub fn is_resolved(self) -> bool {
        self.language.is_some() || self.dialect == text::CONFIGURATION
    }

    /// Returns what changes whenever equal bytes may give other facts.
    pub fn build(self) -> &'static str {
        self.language.map_or(text::BUILD, LanguageSupport::extractor_build)
    }

    /// Returns what the database is told of a file, which has facts or could not be parsed.
    pub fn outcome(self, facts: Option<&Arc<FileFacts>>) -> Outcome {
        match (self.language, facts) {
            (None, Some(facts)) if self.dialect == text::CONFIGURATION => Outcome::Facts(Arc::clone(facts)),
            (None, _) => Outcome::Text,
            (Some(_), Some(facts)) => Outcome::Facts(Arc::clone(facts)),
            (Some(_), None) => Outcome::Failed,
        }
    }

    /// Makes the facts of a content.
    ///
    /// # Errors
    /// When no content can be parsed.
    pub fn facts(self, parser: &dyn Parser, bytes: &[u8], limits: &ParseLimits) -> Result<Fresh, EngineError> {
        let made = match self.language {
            Some(language) => parser.facts(language, self.dialect, bytes, limits),
            None => {
                // The scan lets no other text pass.
                let facts = Arc::new(text::facts(self.dialect, &String::from_utf8_lossy(bytes)));
                Ok(Extracted { facts, encoded: None })
            }
        };
        match made {
            Ok(Extracted { facts, encoded }) => Ok(Fresh { reading: self, extraction: Ok(facts), encoded }),
            Err(ParseError::File(failure)) => {
                let failed = FailedParse::new(failure, *limits, self.build());
                Ok(Fresh { reading: self, extraction: Err(FailedContent::new(failed, bytes)), encoded: None })
            }
            Err(ParseError::Parser(error)) => Err(EngineError::Parser(error)),
        }
    }
}

/// What is known of contents before the scan, and need not be done again.
pub(super) trait Known: Sync {
    fn is_stored(&self, hash: &ContentHash) -> bool;
    fn has_facts(&self, key: &FactsKey, reading: Reading) -> bool;
}

/// Takes in the files of one scan, on its threads.
pub(super) struct Intake<'a> {
    pub languages: &'static [&'static dyn LanguageSupport],
    pub parser: &'a dyn Parser,
    pub limits: ParseLimits,
    /// The object format of blob ids; `None` without Git.
    pub format: Option<ObjectFormat>,
    pub known: &'a dyn Known,
    pub pack: &'a PackWriter,
    pub demand: &'a Demand,
    pub stored: DashMap<ContentHash, Option<Stored>>,
    pub extracted: DashMap<FactsKey, Option<Fresh>>,
    /// Contents whose parse took too long beside others, to be tried once more alone.
    pub slow: Mutex<Vec<(FactsKey, Reading, Vec<u8>)>>,
    /// The first failure of the store or of all parsers; after it nothing more is done.
    pub failure: OnceLock<EngineError>,
}

impl Intake<'_> {
    /// Returns whether nothing would be done with the bytes of a file.
    pub fn is_known(&self, path: &RepoPath, hash: &ContentHash) -> bool {
        let reading = Reading::of(self.languages, path);
        self.known.is_stored(hash) && self.known.has_facts(&(*hash, reading.dialect), reading)
    }

    /// Takes in one file.
    pub fn take(&self, path: &RepoPath, hash: &ContentHash, bytes: &[u8]) {
        if self.failure.get().is_some() || self.demand.ended().is_some() {
            return;
        }
        // The claim is made first and the work done outside of the table's lock, so that threads do not wait for each other's parse.
        if !self.known.is_stored(hash) && claim(&self.stored, *hash) {
            match self.pack.append(*hash, bytes) {
                Ok(object) => {
                    let blob = self.format.map(|format| blob_id(format, bytes));
                    self.stored.insert(*hash, Some(Stored { object, blob }));
                }
                Err(error) => {
                    let _ = self.failure.set(EngineError::Write(error));
                    return;
                }
            }
        }
        let reading = Reading::of(self.languages, path);
        let key = (*hash, reading.dialect);
        if self.known.has_facts(&key, reading) || !claim(&self.extracted, key) {
            return;
        }
        if self.extract(key, reading, bytes) == Some(ParseFailure::Timeout) {
            self.slow.lock().unwrap_or_else(PoisonError::into_inner).push((key, reading, bytes.to_vec()));
        }
    }

    /// Tries once more, with no other parse beside it, what took too long.
    pub fn retry_slow(&self) {
        let slow = std::mem::take(&mut *self.slow.lock().unwrap_or_else(PoisonError::into_inner));
        for (key, reading, bytes) in slow {
            if self.failure.get().is_some() || self.demand.ended().is_some() {
                return;
            }
            self.extract(key, reading, &bytes);
        }
    }

    /// Makes the facts of a content. Returns why it has none.
    fn extract(&self, key: FactsKey, reading: Reading, bytes: &[u8]) -> Option<ParseFailure> {
        match reading.facts(self.parser, bytes, &self.limits) {
            Ok(fresh) => {
                let failure = fresh.extraction.as_ref().err().map(|failed| failed.parse.failure);
                self.extracted.insert(key, Some(fresh));
                failure
            }
            Err(error) => {
                let _ = self.failure.set(error);
                None
            }
        }
    }
}

/// Puts an empty place under a key; false when another thread did so before.
pub(super) fn claim<K: Eq + std::hash::Hash, V>(table: &DashMap<K, Option<V>>, key: K) -> bool {
    match table.entry(key) {
        Entry::Vacant(place) => {
            place.insert(None);
            true
        }
        Entry::Occupied(_) => false,
    }
}
