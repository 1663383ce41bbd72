//! The scopes that are served: those of the configuration, and the one of a root that was named when the service started.
//!
//! Must not know who asks. Invariant: the configuration is read again for each request, so that what it takes back is gone at the next.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Config, ConfigError, Environment, Latest, Scope, Selection};
use crate::engine::{Desk, Desks};

use super::super::answer::Refusal;

/// More scopes than this are not kept warm at once.
const MOST_SCOPES: usize = 64;

/// Finds scopes and their desks.
#[derive(Debug)]
pub struct Scopes {
    environment: Environment,
    /// `--config`.
    file: Option<PathBuf>,
    /// A root that is served although no configuration may name it, and the name of its scope.
    root: Option<(PathBuf, String)>,
    latest: Latest,
    desks: Arc<Desks>,
}

impl Scopes {
    /// Returns the scopes of a configuration, and that of `root`; without both, that of the current directory.
    ///
    /// # Errors
    /// When the configuration cannot be read, or the root not be used.
    pub fn open(environment: Environment, file: Option<PathBuf>, root: Option<PathBuf>) -> Result<Self, ConfigError> {
        let config = Config::load(file.as_deref(), &environment)?;
        let root = if root.is_some() || config.scope_names().is_empty() {
            let scope = config.scope(&Selection { root, scope: None }, &environment)?;
            Some((scope.root, scope.id))
        } else {
            None
        };
        Ok(Self { environment, file, root, latest: Latest::default(), desks: Arc::new(Desks::new(MOST_SCOPES).watching()) })
    }

    /// Reads the configuration as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn config(&self) -> Result<Arc<Config>, ConfigError> {
        self.latest.load(self.file.as_deref(), &self.environment)
    }

    /// Returns the names of the scopes, sorted.
    pub fn names(&self, config: &Config) -> Vec<String> {
        let mut names = config.scope_names();
        names.extend(self.root.iter().map(|(_, name)| name.clone()));
        names.sort();
        names.dedup();
        names
    }

    /// Returns the desk of a scope.
    ///
    /// # Errors
    /// When there is no such scope, or its root cannot be used.
    pub fn desk(&self, config: &Config, name: &str) -> Result<Served, Refusal> {
        let scope = self.scope(config, name).map_err(|error| Refusal::new(error.code(), &error))?;
        let desk = self.desks.desk(config, &scope, &self.environment.parsers);
        let desk = desk.map_err(|error| Refusal::new(error.code(), &error))?;
        Ok(Served { desk, is_implicit: scope.implicit })
    }

    fn scope(&self, config: &Config, name: &str) -> Result<Scope, ConfigError> {
        match &self.root {
            Some((root, own)) if own == name && !config.scope_names().contains(own) => {
                let scope = config.scope(&Selection { root: Some(root.clone()), scope: None }, &self.environment)?;
                // The configuration may have given it another name meanwhile.
                if scope.id == name {
                    Ok(scope)
                } else {
                    Err(ConfigError::UnknownScope { name: name.to_owned(), known: Vec::new() })
                }
            }
            _ => config.scope(&Selection { root: None, scope: Some(name.to_owned()) }, &self.environment),
        }
    }

    pub fn desks(&self) -> &Arc<Desks> {
        &self.desks
    }

    /// Returns the root that was named when the service started, and the name of its scope.
    pub fn own(&self) -> Option<&(PathBuf, String)> {
        self.root.as_ref()
    }
}

/// A scope that is served.
#[derive(Debug)]
pub struct Served {
    pub desk: Arc<Desk>,
    /// Whether no configuration file names it.
    pub is_implicit: bool,
}
