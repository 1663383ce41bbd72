//! Paths as people type them: as seen from the current directory, from the root of the worktree, or absolute.
//!
//! Must not know commands. Invariant: what is typed never leads out of the worktree, and of several meanings the one that is there is meant,
//! the nearest first.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use crate::cli::failure::Failure;
use crate::model::{PathPrefix, RepoPath};
use crate::query::QueryError;
use crate::store::{Generation, StoreError};

/// What a typed path prefix may mean, nearest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prefixes(Vec<PathPrefix>);

impl Prefixes {
    /// Returns the prefix that has files in a generation; the one seen from the root when none has.
    pub(super) fn in_generation(&self, generation: &Generation) -> Result<PathPrefix, Failure> {
        for prefix in &self.0 {
            if generation.holds(prefix).map_err(of_store)? {
                return Ok(prefix.clone());
            }
        }
        Ok(self.0.last().cloned().unwrap_or_default())
    }
}

fn of_store(error: StoreError) -> Failure {
    Failure::of_query(&QueryError::Store(error))
}

/// Where paths are typed and read.
pub(super) struct Place {
    root: PathBuf,
    /// The current directory below the root; `None` when it is not below it.
    below: Option<PathBuf>,
}

impl Place {
    pub(super) fn new(root: &Path, here: &Path) -> Self {
        // The root of a scope is canonical.
        let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
        Self { root: root.to_owned(), below: here.strip_prefix(root).ok().map(Path::to_owned) }
    }

    /// Returns what a typed path may mean, nearest first: as seen from the current directory, and as Git prints it.
    pub(super) fn candidates(&self, typed: &str) -> Vec<RepoPath> {
        self.meanings(typed).iter().filter_map(|path| RepoPath::parse(path).ok()).collect()
    }

    /// As [`Self::candidates`], of a path that may be the root of the worktree.
    fn meanings(&self, typed: &str) -> Vec<String> {
        let plain = |path: PathBuf| {
            let mut parts: Vec<&str> = Vec::new();
            for part in path.components() {
                match part {
                    Component::Normal(part) => parts.push(part.to_str()?),
                    Component::ParentDir => {
                        parts.pop()?;
                    }
                    Component::CurDir => {}
                    Component::RootDir | Component::Prefix(_) => return None,
                }
            }
            Some(parts.join("/"))
        };
        let typed = Path::new(typed);
        let mut found: Vec<String> = Vec::new();
        if typed.is_absolute() {
            found.extend(typed.strip_prefix(&self.root).ok().and_then(|path| plain(path.to_owned())));
            return found;
        }
        found.extend(self.below.as_ref().and_then(|below| plain(below.join(typed))));
        found.extend(plain(typed.to_owned()).filter(|path| found.first() != Some(path)));
        found
    }

    /// Returns what a typed path prefix may mean; the whole worktree when none was typed.
    pub(super) fn prefixes(&self, typed: Option<&str>) -> Result<Prefixes, Failure> {
        let Some(typed) = typed.filter(|typed| !typed.is_empty()) else { return Ok(Prefixes(vec![PathPrefix::default()])) };
        let meanings = self.meanings(typed);
        let mut error = None;
        let mut found = Vec::new();
        for meaning in &meanings {
            match PathPrefix::parse(meaning) {
                Ok(prefix) => found.push(prefix),
                Err(why) => error = Some(why.to_string()),
            }
        }
        match error {
            _ if !found.is_empty() => Ok(Prefixes(found)),
            Some(error) => Err(Failure::usage(error)),
            None => Err(Failure::usage("the path is outside the worktree")),
        }
    }

    /// Returns the file of a generation that a typed path means; `None` where there is none.
    pub(super) fn file(&self, generation: &Generation, typed: &str) -> Result<Option<RepoPath>, Failure> {
        for path in self.candidates(typed) {
            if generation.file(path.as_str()).map_err(of_store)?.is_some() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Returns what names a symbol with its path, if it has one, as seen from the root: `path`, `path:line`, `path::name`.
    pub(super) fn symbol<'t>(&self, generation: &Generation, typed: &'t str) -> Result<Cow<'t, str>, Failure> {
        let is_line = |(_, line): &(&str, &str)| line.bytes().all(|byte| byte.is_ascii_digit());
        let (path, rest) = match (typed.split_once("::"), typed.rsplit_once(':').filter(is_line)) {
            (Some((path, _)), _) | (None, Some((path, _))) => (path, &typed[path.len()..]),
            (None, None) => (typed, ""),
        };
        // A name without any mark of a path means a definition first, where both are there.
        if path.is_empty() || !path.contains(['.', '/']) {
            return Ok(Cow::Borrowed(typed));
        }
        let found = self.file(generation, path)?;
        Ok(found.map_or(Cow::Borrowed(typed), |path| Cow::Owned(format!("{path}{rest}"))))
    }

    /// Returns a path of the worktree as it is typed in the current directory.
    pub(super) fn seen_from_here(&self, path: &str) -> String {
        let Some(below) = &self.below else { return path.to_owned() };
        let here: Vec<_> = below.iter().collect();
        let there: Vec<_> = Path::new(path).iter().collect();
        let shared = here.iter().zip(&there).take_while(|(here, there)| here == there).count();
        let mut seen: PathBuf = std::iter::repeat_n("..", here.len() - shared).collect();
        seen.extend(&there[shared..]);
        seen.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_as_seen_from_here() {
        let check = |below: Option<&str>, typed: &str, want: &str| {
            let place = Place { root: PathBuf::from("/w"), below: below.map(PathBuf::from) };
            let found: Vec<String> = place.candidates(typed).iter().map(RepoPath::to_string).collect();
            assert_eq!(found.join(" "), want, "{typed}");
        };
        check(Some(""), "a/b.py", "a/b.py");
        check(Some(""), "./a.py", "a.py");
        check(Some("a"), "b.py", "a/b.py b.py");
        check(Some("a"), "../b.py", "b.py");
        check(Some("a"), "a/b.py", "a/a/b.py a/b.py");
        check(Some("a"), "../../b.py", "");
        check(Some("a"), "/w/b.py", "b.py");
        check(Some("a"), "/other/b.py", "");
        check(None, "b.py", "b.py");
        check(Some(""), ".", "");
        check(Some(""), "a:b", "");
    }

    #[test]
    fn paths_as_printed_here() {
        let check = |below: Option<&str>, path: &str, want: &str| {
            let place = Place { root: PathBuf::from("/w"), below: below.map(PathBuf::from) };
            assert_eq!(place.seen_from_here(path), want);
        };
        check(Some(""), "tests/a.py", "tests/a.py");
        check(Some("tests"), "tests/a.py", "a.py");
        check(Some("src/x"), "src/tests/a.py", "../tests/a.py");
        check(None, "tests/a.py", "tests/a.py");
    }

    #[test]
    fn prefixes_as_people_type_them() {
        let check = |below: Option<&str>, typed: &str, want: Option<&str>| {
            let place = Place { root: PathBuf::from("/w"), below: below.map(PathBuf::from) };
            let found = place.prefixes(Some(typed)).ok();
            let found = found.map(|found| found.0.iter().map(PathPrefix::as_str).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), want, "{typed}");
        };
        for (typed, want) in
            [("", ""), (".", ""), ("./", ""), ("src/", "src"), ("./src/a", "src/a"), ("/w", ""), ("/w/src", "src")]
        {
            check(Some(""), typed, Some(want));
        }
        check(Some("src"), "a", Some("src/a a"));
        check(Some("src"), ".", Some("src "));
        check(Some("src"), "..", Some(""));
        check(None, "src", Some("src"));
        for bad in ["/", "/etc", "..", "a/../../b", "a\\b"] {
            check(Some(""), bad, None);
        }
    }
}
