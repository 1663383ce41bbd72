//! Files with how much each defines, for a map of the whole.
//!
//! Must not know folders. Invariant: every included file comes once, by path.

use std::sync::Arc;

use crate::model::PathPrefix;

use super::super::error::Result;
use super::{Generation, Within};

/// An included file, and how many definitions it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlinedFile {
    pub path: Arc<str>,
    /// `None` for files of no language.
    pub language: Option<Arc<str>>,
    pub definitions: u64,
}

impl Generation {
    /// Returns the included files below the prefix, by path.
    pub fn outline(&self, prefix: &PathPrefix) -> Result<Vec<OutlinedFile>> {
        let within = Within::new(prefix);
        let sql = format!(
            "SELECT f.path, f.language, f.nodes - 1 FROM files f WHERE f.omitted IS NULL {} ORDER BY f.id",
            within.condition(1)
        );
        self.rows("read the files", &sql, within.values(), |row| {
            let definitions: i64 = row.get(2)?;
            Ok(OutlinedFile { path: row.get(0)?, language: row.get(1)?, definitions: definitions.max(0).cast_unsigned() })
        })
    }
}
