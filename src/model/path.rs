//! Repository-relative paths, byte-exact, `/`-separated, valid by the rules of the wire contract (§1).
//!
//! Must not know the disk: nothing here is canonicalised, folded or looked up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A path below the root of a worktree: not empty, not absolute, without `.`/`..`/empty parts, `\`, `:` or NUL.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(Arc<str>);

/// Why a text is not a repository-relative path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("the path is absolute; give one relative to the root of the worktree")]
    Absolute,
    #[error("the path has an empty, `.` or `..` part")]
    Part,
    #[error("the path holds a backslash, a colon or a NUL")]
    Character,
}

fn check(text: &str) -> Result<(), PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }
    if text.starts_with('/') {
        return Err(PathError::Absolute);
    }
    // One look at each byte: every path of a scan comes through here.
    let bytes = text.as_bytes();
    let (mut start, mut bad_part, mut bad_character) = (0, false, false);
    for (index, byte) in bytes.iter().copied().chain([b'/']).enumerate() {
        match byte {
            b'/' => {
                bad_part |= matches!(&bytes[start..index], b"" | b"." | b"..");
                start = index + 1;
            }
            b'\\' | b':' | 0 => bad_character = true,
            _ => {}
        }
    }
    if bad_character {
        return Err(PathError::Character);
    }
    if bad_part {
        return Err(PathError::Part);
    }
    Ok(())
}

impl RepoPath {
    /// Parses a text from outside.
    ///
    /// # Errors
    /// Returns the first rule of the contract (§1) that the text breaks.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        check(text)?;
        Ok(Self(Arc::from(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part after the last `/`.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the part before the last `/`, `""` for a file at the top.
    pub fn directory(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// Returns the file name up to its last dot, and what follows that dot (lower-cased is up to the caller).
    pub fn stem_and_suffix(&self) -> (&str, Option<&str>) {
        let name = self.file_name();
        match name.rsplit_once('.') {
            Some((stem, suffix)) if !stem.is_empty() => (stem, Some(suffix)),
            _ => (name, None),
        }
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", &self.0)
    }
}

impl TryFrom<String> for RepoPath {
    type Error = PathError;
    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.0.as_ref().to_owned()
    }
}

impl std::borrow::Borrow<str> for RepoPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A path prefix of a request: `""` (everything) or a [`RepoPath`]; matches at `/` boundaries only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathPrefix(Option<RepoPath>);

impl PathPrefix {
    /// Parses the `path_prefix` of a request.
    ///
    /// # Errors
    /// As [`RepoPath::parse`], except that `""` is allowed.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() { Ok(Self(None)) } else { Ok(Self(Some(RepoPath::parse(text)?))) }
    }

    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("", RepoPath::as_str)
    }

    /// Returns whether `path` is the prefix itself or stands below it.
    pub fn matches(&self, path: &str) -> bool {
        match &self.0 {
            None => true,
            Some(prefix) => path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_the_contract() {
        for good in ["a", "a/b.py", ".github/x", "a b", "é/ü", "..a", "a..b", "-"] {
            assert!(RepoPath::parse(good).is_ok(), "{good:?}");
        }
        for (bad, why) in [
            ("", PathError::Empty),
            ("/a", PathError::Absolute),
            ("a//b", PathError::Part),
            ("a/", PathError::Part),
            ("./a", PathError::Part),
            ("a/../b", PathError::Part),
            ("a\\b", PathError::Character),
            ("c:x", PathError::Character),
            ("a\0b", PathError::Character),
        ] {
            assert_eq!(RepoPath::parse(bad), Err(why), "{bad:?}");
        }
    }

    #[test]
    fn prefix_matches_at_boundaries() {
        let prefix = PathPrefix::parse("a/b").expect("valid");
        assert!(prefix.matches("a/b"));
        assert!(prefix.matches("a/b/c.py"));
        assert!(!prefix.matches("a/bc"));
        assert!(!prefix.matches("a"));
        assert!(PathPrefix::default().matches("anything"));
    }
}
