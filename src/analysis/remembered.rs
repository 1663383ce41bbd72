//! What a database that has looked at few files knows of all of them: what is rebound, and who may declare a member.
//!
//! Must not decide what is still true; that is [`super::revisit`]'s. Invariant: it gives what the queries over all files would give.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::model::{Canonical, RepoPath, Target};

use super::edges::{Rebound, declared_members};
use super::inputs::{Content, Db, Inventory, LanguageIndex, SourceFile};
use super::question::facts;

/// What holds of all files while no input changes.
#[derive(Default)]
pub(super) struct Remembered {
    rebound: Rebound,
    /// Every source file, with the hashes of the members it declares where these are known.
    declaring: Vec<(SourceFile, Option<Box<[u32]>>)>,
    by_name: OnceLock<FxHashMap<u32, Vec<SourceFile>>>,
}

impl Remembered {
    pub(super) fn new(
        rebound: impl IntoIterator<Item = (RepoPath, Option<Arc<str>>)>,
        declaring: Vec<(SourceFile, Option<Box<[u32]>>)>,
    ) -> Self {
        let mut names: HashMap<RepoPath, BTreeSet<Arc<str>>> = HashMap::new();
        for (file, name) in rebound {
            names.entry(file).or_default().extend(name);
        }
        let rebound = names.into_iter().map(|(file, names)| (file, Arc::new(names))).collect();
        Self { rebound, declaring, by_name: OnceLock::new() }
    }

    pub(super) fn rebound_in(&self, file: &RepoPath) -> Arc<BTreeSet<Arc<str>>> {
        self.rebound.get(file).cloned().unwrap_or_default()
    }

    /// Asks those that may declare a member what they declare.
    pub(super) fn members_named(&self, db: &dyn Db, language: LanguageIndex, name: &str) -> Arc<[Target]> {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name: FxHashMap<u32, Vec<SourceFile>> = FxHashMap::default();
            for (file, hashes) in &self.declaring {
                for hash in hashes.iter().flatten() {
                    by_name.entry(*hash).or_default().push(*file);
                }
            }
            by_name
        });
        let unknown = self.declaring.iter().filter(|(_, hashes)| hashes.is_none()).map(|(file, _)| *file);
        let likely = by_name.get(&name_hash(name)).into_iter().flatten().copied();
        let mut targets = Vec::new();
        for file in likely.chain(unknown).filter(|file| file.language(db) == language) {
            for (_, definition) in declared_members(db, file).iter().filter(|(member, _)| member.as_ref() == name) {
                targets.push(Target { file: file.path(db).clone(), definition: Some(definition.clone()) });
            }
        }
        targets.sort_unstable();
        targets.dedup();
        Arc::from(targets)
    }
}

/// Returns a hash of a name that is the same in every process.
pub(super) fn name_hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns the hashes of the members that a file declares, sorted.
pub(super) fn member_hashes(db: &dyn Db, file: SourceFile) -> Box<[u32]> {
    let facts = facts(db, file.content(db), file.dialect(db));
    let declared = facts.map(|facts| db.language(file.language(db)).declared_members(&facts.surface)).unwrap_or_default();
    let mut hashes: Vec<u32> = declared.iter().map(|(name, _)| name_hash(name)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into()
}

/// Returns a digest of all contents. What follows from [`Remembered`] asks for it, so as to run again after any change.
#[salsa::tracked(returns(copy))]
pub(super) fn state(db: &dyn Db, inventory: Inventory) -> [u8; 32] {
    db.note("state", &"");
    let _ = inventory.tree(db);
    let mut record = Canonical::new("contents");
    for &file in db.source_files() {
        match file.content(db) {
            Content::Absent => record.number(0),
            Content::Failed => record.number(1),
            Content::Facts(hash) => record.field(&hash.0),
        };
    }
    record.finish()
}
