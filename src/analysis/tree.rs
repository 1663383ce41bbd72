//! The tree of included paths, and the firewalls around it: a query that asked about one path is not run again because another came.
//!
//! Must not know contents. Invariant: every directory above an included file is in the tree, and no other.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::RepoPath;

use super::blindness::{Blindness, see};
use super::inputs::Db;

/// The included paths by directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    directories: FxHashMap<Arc<str>, Arc<[RepoPath]>>,
    /// The names of the directories in each directory that has some.
    inside: FxHashMap<Arc<str>, Arc<[Arc<str>]>>,
}

impl Tree {
    /// Makes the tree of `paths`, which are sorted.
    pub(super) fn new<'a>(paths: impl Iterator<Item = &'a RepoPath>) -> Self {
        let mut lists: FxHashMap<&str, Vec<RepoPath>> = FxHashMap::default();
        for path in paths {
            let mut directory = path.directory();
            lists.entry(directory).or_default().push(path.clone());
            while let Some((above, _)) = directory.rsplit_once('/') {
                directory = above;
                if lists.contains_key(directory) {
                    break;
                }
                lists.insert(directory, Vec::new());
            }
        }
        // The root is a directory even of an empty repository.
        lists.entry("").or_default();
        let mut inside: FxHashMap<&str, Vec<Arc<str>>> = FxHashMap::default();
        for directory in lists.keys().filter(|directory| !directory.is_empty()) {
            let (above, name) = directory.rsplit_once('/').unwrap_or(("", directory));
            inside.entry(above).or_default().push(Arc::from(name));
        }
        let sorted = |mut names: Vec<Arc<str>>| {
            names.sort_unstable();
            Arc::from(names)
        };
        Self {
            inside: inside.into_iter().map(|(directory, names)| (Arc::from(directory), sorted(names))).collect(),
            directories: lists.into_iter().map(|(directory, files)| (Arc::from(directory), Arc::from(files))).collect(),
        }
    }

    pub(super) fn is_file(&self, path: &str) -> bool {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        self.directories.get(directory).is_some_and(|files| files.binary_search_by(|file| file.as_str().cmp(path)).is_ok())
    }

    fn is_directory(&self, path: &str) -> bool {
        self.directories.contains_key(path)
    }

    fn files_in(&self, directory: &str) -> Arc<[RepoPath]> {
        self.directories.get(directory).cloned().unwrap_or_default()
    }

    fn directories_in(&self, directory: &str) -> Arc<[Arc<str>]> {
        self.inside.get(directory).cloned().unwrap_or_default()
    }
}

/// A path as a question: of a file or directory that may or may not exist.
#[salsa::interned(revisions = usize::MAX)]
pub(super) struct AskedPath<'db> {
    #[returns(ref)]
    pub text: Arc<str>,
}

/// Not run again when contents change; when a path comes or goes, run again and equal for every other path.
#[salsa::tracked(returns(copy))]
pub(super) fn is_file<'db>(db: &'db dyn Db, path: AskedPath<'db>) -> bool {
    db.note("is_file", path.text(db));
    see(db, Blindness::Paths, path.text(db), db.inventory().tree(db).is_file(path.text(db)))
}

/// As [`is_file`]; a directory that stays is equal whatever comes or goes in it.
#[salsa::tracked(returns(copy))]
pub(super) fn is_directory<'db>(db: &'db dyn Db, path: AskedPath<'db>) -> bool {
    db.note("is_directory", path.text(db));
    let is_directory = db.inventory().tree(db).is_directory(path.text(db));
    see(db, Blindness::Paths, &format_args!("{}/", path.text(db)), is_directory)
}

/// Not run again when contents change; equal while no file comes or goes directly in this directory.
#[salsa::tracked(returns(clone))]
pub(super) fn files_in<'db>(db: &'db dyn Db, directory: AskedPath<'db>) -> Arc<[RepoPath]> {
    db.note("files_in", directory.text(db));
    let files = db.inventory().tree(db).files_in(directory.text(db));
    see(db, Blindness::Folders, &format_args!("files in {}", directory.text(db)), files)
}

/// As [`files_in`], of directories.
#[salsa::tracked(returns(clone))]
pub(super) fn directories_in<'db>(db: &'db dyn Db, directory: AskedPath<'db>) -> Arc<[Arc<str>]> {
    db.note("directories_in", directory.text(db));
    let directories = db.inventory().tree(db).directories_in(directory.text(db));
    see(db, Blindness::Folders, &format_args!("folders in {}", directory.text(db)), directories)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_above_a_file_is_one() {
        let paths = ["a/b/c.py", "a/d.py", "e.py"].map(|path| RepoPath::parse(path).expect("valid"));
        let tree = Tree::new(paths.iter());
        for directory in ["", "a", "a/b"] {
            assert!(tree.is_directory(directory), "{directory:?}");
        }
        assert!(!tree.is_directory("a/b/c.py") && !tree.is_directory("b"));
        assert!(tree.is_file("a/b/c.py") && tree.is_file("e.py") && !tree.is_file("a/b") && !tree.is_file("c.py"));
        assert_eq!(tree.files_in("a").as_ref(), &paths[1..2]);
        assert_eq!(tree.files_in("nowhere").len(), 0);
        assert_eq!(tree.directories_in("").as_ref(), &[Arc::from("a")]);
        assert_eq!(tree.directories_in("a/b").len(), 0);
    }
}
