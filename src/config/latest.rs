//! The configuration as it is now, for services that read it for each request.
//!
//! Must not know what is asked. Invariant: the file is read each time, and only parsing it is spared, while its text is the same.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Config, ConfigError, Environment, text_of};

/// Remembers what a text came to, and nothing of a text that is none.
#[derive(Debug, Default)]
pub struct Latest(Mutex<Option<(String, Arc<Config>)>>);

impl Latest {
    /// Reads the configuration as it is now. The file and the environment must be the same each time.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load(&self, file: Option<&Path>, environment: &Environment) -> Result<Arc<Config>, ConfigError> {
        let Some((name, text)) = text_of(file, environment)? else { return Config::load(file, environment).map(Arc::new) };
        let last = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) = last().as_ref().filter(|(known, _)| *known == text) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(Config::parse(&text, &name, environment)?);
        *last() = Some((text, Arc::clone(&config)));
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_counts_at_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sextant.toml");
        let environment = Environment { current_dir: folder.path().to_owned(), ..Environment::default() };
        let latest = Latest::default();
        let load = |text: &str| {
            std::fs::write(&path, text).expect("written");
            latest.load(Some(&path), &environment).map(|config| config.limits.max_files).map_err(drop)
        };
        let with = |files: u32| format!("cache_dir = \"/cache\"\n[limits]\nmax_files = {files}\n");
        assert_eq!([load(&with(7)), load(&with(7)), load(&with(8)), load(&with(7))], [Ok(7), Ok(7), Ok(8), Ok(7)]);
        assert_eq!([load("[limits"), load("[limits"), load(&with(7))], [Err(()), Err(()), Ok(7)]);
    }
}
