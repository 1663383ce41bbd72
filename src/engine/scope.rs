//! A scope made ready: its worktree opened, its policy compiled, and the digests that tie an answer to them.
//!
//! Must not read any file of the worktree. Invariant: equal [`Scope::state`]s mean that a generation answers for what was captured.

use std::path::PathBuf;

use crate::config::{self, Check, Config, Limits, OnStale};
use crate::languages::{self, LanguageSupport};
use crate::model::{Canonical, ContentHash, Demand, Fingerprint, RepoPath};
use crate::workspace::{Capture, Entry, Policy, ScanLimits, Spare, Visitor, Worktree, scan_part, scan_sparing};

use super::EngineError;
use super::progress::{Gauge, Step};

/// Changes whenever equal captures may give other rows of a generation.
const SCHEMA: &str = "5";

/// One binding of a worktree and a policy.
pub struct Scope {
    config: config::Scope,
    limits: Limits,
    cache_dir: PathBuf,
    enabled: bool,
    binding: String,
    worktree: Worktree,
    policy: Policy,
    languages: &'static [&'static dyn LanguageSupport],
    /// Digest of all that decides about a generation beside what was captured.
    rules: ContentHash,
    gauge: Gauge,
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Scope").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Scope {
    /// Opens the scope that the configuration gave.
    ///
    /// # Errors
    /// When its root cannot be read, or a pattern of it is none.
    pub fn open(config: &Config, scope: config::Scope) -> Result<Self, EngineError> {
        let policy = Policy::new(&scope).map_err(EngineError::Policy)?;
        let worktree = Worktree::open(&scope.root)?;
        let worktree = match scope.check {
            Check::Full => worktree,
            Check::Sealed => worktree.sealed(),
        };
        let binding = scope.binding_id();
        let languages = languages::REGISTRY;
        let rules = rules(&binding, &policy, &scope, languages);
        Ok(Self {
            limits: config.limits.clone(),
            cache_dir: config.cache_dir.clone(),
            enabled: config.enabled,
            config: scope,
            binding,
            worktree,
            policy,
            languages,
            rules,
            gauge: Gauge::default(),
        })
    }

    pub fn id(&self) -> &str {
        &self.config.id
    }

    pub fn root(&self) -> &std::path::Path {
        self.worktree.root()
    }

    pub fn on_stale(&self) -> OnStale {
        self.config.on_stale
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns whether the configuration lets the scope answer.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    pub fn cache_dir(&self) -> &std::path::Path {
        &self.cache_dir
    }

    pub fn binding_id(&self) -> &str {
        &self.binding
    }

    pub fn worktree(&self) -> &Worktree {
        &self.worktree
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the digest of all that decides about a generation beside what was captured.
    pub(super) fn rules(&self) -> ContentHash {
        self.rules
    }

    pub(super) fn languages(&self) -> &'static [&'static dyn LanguageSupport] {
        self.languages
    }

    pub(super) fn source_roots(&self) -> Option<&[String]> {
        self.config.source_roots.as_deref()
    }

    pub fn check(&self) -> Check {
        self.config.check
    }

    /// Returns where the steps are noted that are worked on for the scope.
    pub(super) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Reads the whole worktree, while that is wanted, as a step of something, and gives each included file to `visit`. Where the scope is
    /// checked by seals, files for which `spare` says so, given the hash of their bytes, may not be read and are not given.
    pub(super) fn capture(
        &self,
        step: Step,
        demand: &Demand,
        spare: &Spare<'_>,
        visit: &Visitor<'_>,
    ) -> Result<Capture, EngineError> {
        let limits = ScanLimits::from(&self.limits).wanted(demand);
        let work = self.gauge.begin(step);
        Ok(scan_sparing(&self.worktree, &self.policy, limits, &work, spare, visit)?)
    }

    /// Reads what stands at `paths` and below them, while that is wanted, and gives each included file to `visit`.
    pub(super) fn capture_part(
        &self,
        demand: &Demand,
        paths: &[RepoPath],
        visit: &Visitor<'_>,
    ) -> Result<Vec<Entry>, EngineError> {
        let limits = ScanLimits::from(&self.limits).wanted(demand);
        Ok(scan_part(&self.worktree, &self.policy, limits, paths.to_vec(), visit)?)
    }

    /// Returns the digest of all that a fingerprint covers except `dirty`, which follows from the rest.
    pub(super) fn state(&self, capture: &Capture) -> ContentHash {
        let mut record = Canonical::new("state");
        record.field(&self.rules.0);
        record.field(&capture.state_digest().0);
        ContentHash(record.finish())
    }
}

/// Returns the fingerprint of a state (contract §4).
pub(super) fn fingerprint(state: &ContentHash, dirty: bool) -> Fingerprint {
    let mut record = Canonical::new("fingerprint");
    record.field(&state.0);
    record.number(u64::from(dirty));
    Fingerprint(record.finish())
}

fn rules(binding: &str, policy: &Policy, scope: &config::Scope, languages: &[&'static dyn LanguageSupport]) -> ContentHash {
    let mut record = Canonical::new("rules");
    record.field(SCHEMA.as_bytes());
    record.field(binding.as_bytes());
    record.field(&policy.digest().0);
    match &scope.source_roots {
        None => record.number(0),
        Some(roots) => {
            record.number(1).number(roots.len() as u64);
            roots.iter().fold(&mut record, |record, root| record.field(root.as_bytes()))
        }
    };
    record.field(languages::text::BUILD.as_bytes());
    record.number(languages.len() as u64);
    for language in languages {
        record.field(language.name().as_bytes());
        record.field(language.extractor_build().as_bytes());
        record.field(language.resolver_build().as_bytes());
    }
    ContentHash(record.finish())
}
