//! Configuration: a file, the environment and flags become one [`Config`], which is passed on and never global.
//!
//! Must not know Git, SQLite or any command. Invariant: a [`Scope`] handed out has a canonical root that exists, is not below the top of
//! a worktree, and does not hold the cache.

mod http;
mod latest;
mod settings;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Canonical, ContentHash, PathPrefix};

pub use http::{Http, Right, Token};
pub use latest::Latest;
pub use settings::{Origin, Setting};

/// Everything a command is told before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Where generations, sources and facts are kept; absolute.
    pub cache_dir: PathBuf,
    /// Whether questions are answered at all; false refuses with `code_disabled`.
    pub enabled: bool,
    pub limits: Limits,
    pub watch: Watch,
    pub daemon: Daemon,
    pub http: Http,
    pub mcp: Mcp,
    /// Scopes by name, their roots as written.
    scopes: BTreeMap<String, ScopeFile>,
}

/// No limit of time is longer: some eleven days, so that it can be multiplied and added to a time of day.
const MAX_SECONDS: u64 = 1_000_000;

/// Bounds on what one scope, one build and one query may use (contract §4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub max_files: u64,
    pub max_file_bytes: u64,
    pub max_source_bytes: u64,
    pub max_cache_bytes: u64,
    pub worker_memory_bytes: u64,
    pub build_seconds: u64,
    pub parse_seconds: u64,
    pub query_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_files: 20_000,
            max_file_bytes: 2 << 20,
            max_source_bytes: 512 << 20,
            max_cache_bytes: 2 << 30,
            worker_memory_bytes: 1 << 30,
            build_seconds: 600,
            parse_seconds: 5,
            query_seconds: 5,
        }
    }
}

impl Limits {
    pub fn build(&self) -> Duration {
        Duration::from_secs(self.build_seconds)
    }

    pub fn parse(&self) -> Duration {
        Duration::from_secs(self.parse_seconds)
    }

    pub fn query(&self) -> Duration {
        Duration::from_secs(self.query_seconds)
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (name, value) in [
            ("max_files", self.max_files),
            ("max_file_bytes", self.max_file_bytes),
            ("max_source_bytes", self.max_source_bytes),
            ("max_cache_bytes", self.max_cache_bytes),
            ("worker_memory_bytes", self.worker_memory_bytes),
            ("build_seconds", self.build_seconds),
            ("parse_seconds", self.parse_seconds),
            ("query_seconds", self.query_seconds),
        ] {
            if value == 0 {
                return Err(ConfigError::Invalid {
                    key: format!("limits.{name}"),
                    problem: "must be greater than zero".to_owned(),
                });
            }
        }
        for (name, value) in
            [("build_seconds", self.build_seconds), ("parse_seconds", self.parse_seconds), ("query_seconds", self.query_seconds)]
        {
            if value > MAX_SECONDS {
                return Err(ConfigError::Invalid {
                    key: format!("limits.{name}"),
                    problem: format!("must be at most {MAX_SECONDS}"),
                });
            }
        }
        if self.max_file_bytes > u64::from(u32::MAX) / 2 {
            return Err(ConfigError::Invalid {
                key: "limits.max_file_bytes".to_owned(),
                problem: "must be below 2 GiB".to_owned(),
            });
        }
        Ok(())
    }
}

/// How changes of a worktree are noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    /// Changes are told when nothing more has happened for so long.
    pub quiet_milliseconds: u64,
    /// How often everything is looked at where the system does not tell of changes.
    pub poll_seconds: u64,
    /// A tree of more directories is looked at as if the system did not tell, to leave some of its watches to others.
    pub max_directories: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Self { quiet_milliseconds: 100, poll_seconds: 5, max_directories: 1_000_000 }
    }
}

impl Watch {
    pub fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_milliseconds)
    }

    pub fn poll(&self) -> Duration {
        Duration::from_secs(self.poll_seconds)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let bounds = [
            ("quiet_milliseconds", self.quiet_milliseconds, MAX_SECONDS),
            ("poll_seconds", self.poll_seconds, MAX_SECONDS),
            ("max_directories", self.max_directories, u64::MAX),
        ];
        for (name, value, most) in bounds {
            if value == 0 || value > most {
                let problem = if value == 0 { "must be greater than zero".to_owned() } else { format!("must be at most {most}") };
                return Err(ConfigError::Invalid { key: format!("watch.{name}"), problem });
            }
        }
        Ok(())
    }
}

/// How the background process of a user and a cache behaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Daemon {
    /// Whether who finds none starts one. Left out, a server for agents does, and a command does not.
    pub autostart: Option<bool>,
    /// It leaves when nobody asked anything for so long.
    #[serde(rename = "idle_minutes", serialize_with = "in_minutes", deserialize_with = "minutes")]
    pub idle: Duration,
    /// It drops what it keeps in memory of a scope that nobody asked for so long.
    #[serde(rename = "unload_minutes", serialize_with = "in_minutes", deserialize_with = "minutes")]
    pub unload: Duration,
    /// It syncs by itself when nothing has changed for so long; 0 for never.
    pub auto_sync_ms: u64,
}

impl Daemon {
    /// Returns after how much quiet it syncs by itself, if it does.
    pub fn auto_sync(&self) -> Option<Duration> {
        (self.auto_sync_ms > 0).then(|| Duration::from_millis(self.auto_sync_ms))
    }

    /// Returns whether a command that finds none starts one for those after it.
    pub fn starts_for_commands(&self) -> bool {
        self.autostart.unwrap_or(false)
    }

    /// Returns whether a server for agents that finds none starts one.
    pub fn starts_for_agents(&self) -> bool {
        self.autostart.unwrap_or(true)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.auto_sync_ms <= MAX_SECONDS * 1000 {
            return Ok(());
        }
        let problem = format!("must be at most {}", MAX_SECONDS * 1000);
        Err(ConfigError::Invalid { key: "daemon.auto_sync_ms".to_owned(), problem })
    }
}

impl Default for Daemon {
    fn default() -> Self {
        Self { autostart: None, idle: Duration::from_secs(30 * 60), unload: Duration::from_secs(10 * 60), auto_sync_ms: 0 }
    }
}

fn minutes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let minutes = f64::deserialize(deserializer)?;
    if minutes > 0.0 && minutes * 60.0 <= MAX_SECONDS as f64 {
        Ok(Duration::from_secs_f64(minutes * 60.0))
    } else {
        Err(serde::de::Error::custom(format!("must be greater than zero and at most {}", MAX_SECONDS / 60)))
    }
}

fn in_minutes<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64() / 60.0)
}

/// What agents get through the Model Context Protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mcp {
    /// Whether the first question in a worktree without an index builds one, instead of offering to.
    pub auto_index: bool,
}

/// What happens to a question when the worktree differs from the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStale {
    /// Answer with `code_changed`.
    Refuse,
    /// Sync first, then answer.
    Sync,
}

/// How it is found out that a file is what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Every byte is read and hashed.
    #[default]
    Full,
    /// A process that lives on does not read a file again while the seal stands that it got when it was read. Where the system gives no
    /// such seal, every byte is read.
    Sealed,
}

/// A named binding of one worktree and a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub id: String,
    /// Canonical path of the top of a worktree, or of a folder without Git.
    pub root: PathBuf,
    /// Directories that Python imports start from, nearest first; `None` when the scope names none.
    pub source_roots: Option<Vec<String>>,
    pub include_untracked: bool,
    pub exclude: Vec<String>,
    pub deprioritize: Vec<String>,
    pub on_stale: OnStale,
    pub check: Check,
    /// Whether no configuration file names this scope.
    pub implicit: bool,
}

impl Scope {
    /// Returns the opaque identity of the binding: the scope's name and its canonical root. Two worktrees of one repository are two
    /// bindings; what the scope leaves out is not part of it, but of the fingerprint.
    pub fn binding_id(&self) -> String {
        let mut record = Canonical::new("binding");
        record.field(self.id.as_bytes());
        record.field(self.root.as_os_str().as_encoded_bytes());
        ContentHash(record.finish()).hex()
    }
}

/// What the process was started with, taken once so that tests need no global state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    pub current_dir: PathBuf,
    pub home: Option<PathBuf>,
    pub xdg_cache_home: Option<PathBuf>,
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `SEXTANT_CONFIG`.
    pub config: Option<PathBuf>,
    pub parsers: ParserHost,
}

/// Where grammars run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParserHost {
    /// In the process that asks, unguarded: for tests of what is made of facts.
    #[default]
    ThisProcess,
    /// In processes of this program, which must be the one that asks.
    Workers { program: PathBuf },
}

impl ParserHost {
    /// Returns the host of a process: its own running image.
    fn of_process() -> Self {
        // A program that is not known cannot be started, which the first file will say.
        Self::Workers { program: running_program() }
    }
}

/// Returns the running image, which the system still has when the file of it was replaced.
pub fn running_program() -> PathBuf {
    let linux = cfg!(target_os = "linux");
    if linux { "/proc/self/exe".into() } else { std::env::current_exe().unwrap_or_default() }
}

impl Environment {
    /// Reads the environment of this process. A current directory that was removed is named by where it was: nothing but what is asked of
    /// it can fail.
    pub fn of_process() -> Self {
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            current_dir: std::env::current_dir().unwrap_or_else(|_| removed_directory()),
            home: path("HOME"),
            xdg_cache_home: path("XDG_CACHE_HOME").filter(|path| path.is_absolute()),
            xdg_runtime_dir: path("XDG_RUNTIME_DIR").filter(|path| path.is_absolute()),
            config: path("SEXTANT_CONFIG"),
            parsers: ParserHost::of_process(),
        }
    }
}

/// Returns where the current directory was before it was removed; a place where nothing can be, if the system does not tell.
fn removed_directory() -> PathBuf {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let told = std::fs::read_link("/proc/self/cwd").unwrap_or_default();
    match told.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(place) if place.starts_with(b"/") => std::ffi::OsString::from_vec(place.to_vec()).into(),
        _ => PathBuf::from("/dev/null/removed"),
    }
}

/// Which scope a command asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// `--root`.
    pub root: Option<PathBuf>,
    /// `--scope`.
    pub scope: Option<String>,
}

/// Why there is no configuration or no scope.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {name} cannot be read")]
    Read {
        name: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the configuration file {name} is not valid: {problem}")]
    Syntax { name: String, problem: String },
    #[error("`{key}` {problem}")]
    Invalid { key: String, problem: String },
    #[error("there is no cache directory: set `cache_dir` in a configuration file, XDG_CACHE_HOME or HOME")]
    NoCacheDirectory,
    /// `code_repository_unconfigured`.
    #[error("no scope is named `{name}`{known}", known = known_scopes(.known))]
    UnknownScope { name: String, known: Vec<String> },
    /// `code_repository_unconfigured`.
    #[error("the configuration names several scopes; choose one with --scope{known}", known = known_scopes(.known))]
    ScopeNeeded { known: Vec<String> },
    #[error("`--root` is not the root of scope `{name}`; give one of the two")]
    RootAndScope { name: String },
    /// `repository_unavailable`.
    #[error("the root {name} cannot be used")]
    Root {
        name: String,
        #[source]
        source: std::io::Error,
    },
    /// `repository_unavailable`.
    #[error("the root {name} is not a directory")]
    RootNotADirectory { name: String },
    /// `repository_root_required`.
    #[error("the root {name} is below the top of its worktree; name the top instead")]
    RootBelowTop { name: String },
    /// `repository_root_required`.
    #[error("the home directory and what is above it are never indexed unasked; go into a project or name one with --root")]
    RootTooBroad,
    /// `code_cache_inside_repository`.
    #[error("the cache would lie inside the indexed tree; set `cache_dir` to a directory outside it")]
    CacheInsideRepository,
}

impl ConfigError {
    /// Returns the code of the contract (§3).
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Syntax { .. } | Self::Invalid { .. } | Self::RootAndScope { .. } => "invalid_code_request",
            Self::NoCacheDirectory => "code_storage_unavailable",
            Self::UnknownScope { .. } | Self::ScopeNeeded { .. } => "code_repository_unconfigured",
            Self::Root { .. } | Self::RootNotADirectory { .. } => "repository_unavailable",
            Self::RootBelowTop { .. } | Self::RootTooBroad => "repository_root_required",
            Self::CacheInsideRepository => "code_cache_inside_repository",
        }
    }
}

fn known_scopes(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(" (configured: {})", known.join(", ")) }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    cache_dir: Option<PathBuf>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    watch: Watch,
    #[serde(default)]
    daemon: Daemon,
    #[serde(default)]
    http: Http,
    #[serde(default)]
    mcp: Mcp,
    #[serde(default)]
    scopes: BTreeMap<String, ScopeFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeFile {
    root: PathBuf,
    source_roots: Option<Vec<String>>,
    #[serde(default)]
    include_untracked: bool,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    deprioritize: Vec<String>,
    #[serde(default = "refuse")]
    on_stale: OnStale,
    #[serde(default)]
    check: Check,
}

fn yes() -> bool {
    true
}

fn refuse() -> OnStale {
    OnStale::Refuse
}

impl Config {
    /// Reads the configuration: `file` (`--config`), else the one that `SEXTANT_CONFIG` names, else the defaults. No file of a repository
    /// is ever taken for one.
    ///
    /// # Errors
    /// When the file cannot be read, has an unknown key or a value of the wrong type or range, or when no cache directory is known.
    pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, ConfigError> {
        match text_of(file, environment)? {
            None => {
                let cache_dir = default_cache_dir(environment)?;
                Ok(Self {
                    cache_dir,
                    enabled: true,
                    limits: Limits::default(),
                    watch: Watch::default(),
                    daemon: Daemon::default(),
                    http: Http::default(),
                    mcp: Mcp::default(),
                    scopes: BTreeMap::new(),
                })
            }
            Some((name, text)) => Self::parse(&text, &name, environment),
        }
    }

    /// Parses the text of a configuration file; `name` stands for it in messages.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str, name: &str, environment: &Environment) -> Result<Self, ConfigError> {
        let file: ConfigFile = toml::from_str(text)
            .map_err(|error| ConfigError::Syntax { name: name.to_owned(), problem: problem_of(text, &error) })?;
        file.limits.check()?;
        file.watch.check()?;
        file.daemon.check()?;
        file.http.check()?;
        let cache_dir = match file.cache_dir {
            // Without `..`, so that where it will be can be told before it exists.
            Some(path) if path.is_absolute() && !path.components().any(|part| part == Component::ParentDir) => path,
            Some(_) => {
                let problem = "must be an absolute path without `..`".to_owned();
                return Err(ConfigError::Invalid { key: "cache_dir".to_owned(), problem });
            }
            None => default_cache_dir(environment)?,
        };
        for (id, scope) in &file.scopes {
            scope.check(id)?;
        }
        let ConfigFile { enabled, limits, watch, daemon, http, mcp, scopes, .. } = file;
        Ok(Self { cache_dir, enabled, limits, watch, daemon, http, mcp, scopes })
    }

    /// Returns the same without what says who may ask: of no meaning to an answer.
    #[must_use]
    pub fn without_visitors(&self) -> Self {
        Self { http: Http::default(), ..self.clone() }
    }

    /// Returns the names of the configured scopes, sorted.
    pub fn scope_names(&self) -> Vec<String> {
        self.scopes.keys().cloned().collect()
    }

    /// Chooses the scope of a command: the named one; the one whose root `--root` or the current directory is in; the only one; or,
    /// without configured scopes or with a `--root` of none, an implicit one of the worktree there.
    ///
    /// # Errors
    /// When the scope is unknown or has to be chosen, or its root cannot be used.
    pub fn scope(&self, selection: &Selection, environment: &Environment) -> Result<Scope, ConfigError> {
        let asked = selection.root.as_ref().map(|root| canonical_root(&environment.current_dir.join(root))).transpose()?;
        if let Some(name) = &selection.scope {
            let Some(file) = self.scopes.get(name) else {
                return Err(ConfigError::UnknownScope { name: name.clone(), known: self.scope_names() });
            };
            let scope = self.configured(name, file)?;
            if asked.is_some_and(|root| root != scope.root) {
                return Err(ConfigError::RootAndScope { name: name.clone() });
            }
            return Ok(scope);
        }
        let place = match &asked {
            Some(root) => root.clone(),
            None => canonical_root(&environment.current_dir)?,
        };
        if let Some(scope) = self.holding(&place, asked.is_none())? {
            return Ok(scope);
        }
        // In a worktree within the scope's nobody means the scope.
        let is_within = |file: &ScopeFile| canonical_root(&file.root).is_ok_and(|root| place.starts_with(root));
        if asked.is_none() && !self.scopes.is_empty() && !self.scopes.values().any(is_within) {
            let mut scopes = self.scopes.iter();
            return match (scopes.next(), scopes.next()) {
                (Some((name, file)), None) => self.configured(name, file),
                _ => Err(ConfigError::ScopeNeeded { known: self.scope_names() }),
            };
        }
        self.implicit(&place, asked.is_some(), environment)
    }

    /// Chooses the scope of a directory that is named to be asked about: the configured one that it is in, else the implicit one of its
    /// worktree. The home directory and what is above it are none, be they repositories or not.
    ///
    /// # Errors
    /// When the directory cannot be used, or several scopes have one root there.
    pub fn scope_at(&self, directory: &Path, environment: &Environment) -> Result<Scope, ConfigError> {
        let place = canonical_root(directory)?;
        match self.holding(&place, true)? {
            Some(scope) => Ok(scope),
            None => self.implicit(&place, false, environment),
        }
    }

    /// Returns the configured scope whose root is a place or, where that counts, is the nearest above it.
    fn holding(&self, place: &Path, may_be_above: bool) -> Result<Option<Scope>, ConfigError> {
        let mut holding: Vec<(usize, &String, &ScopeFile)> = Vec::new();
        let top = worktree_top(place);
        for (name, file) in &self.scopes {
            // A scope whose root is gone cannot be meant by a place that exists.
            let Ok(root) = canonical_root(&file.root) else { continue };
            // A worktree within the scope's is none of its files.
            let is_apart = || top.as_ref().is_some_and(|top| *top != root && top.starts_with(&root));
            if place == root || (may_be_above && place.starts_with(&root) && !is_apart()) {
                holding.push((root.components().count(), name, file));
            }
        }
        holding.sort_by_key(|(depth, _, _)| std::cmp::Reverse(*depth));
        match holding.as_slice() {
            [(_, name, file)] => self.configured(name, file).map(Some),
            [(first, name, file), (second, ..), ..] if first > second => self.configured(name, file).map(Some),
            [_, ..] => Err(ConfigError::ScopeNeeded { known: holding.iter().map(|(_, name, _)| (*name).clone()).collect() }),
            [] => Ok(None),
        }
    }

    /// Returns the scopes that hold a place, which need not exist: the configured ones by name, and the implicit ones that `place` may have
    /// been indexed under, nearest first. Scopes that cannot be used are passed over.
    pub fn scopes_that_hold(&self, place: &Path, environment: &Environment) -> Vec<Scope> {
        let place = canonical_future(&environment.current_dir.join(place));
        let configured = self.scopes.iter().filter_map(|(name, file)| self.configured(name, file).ok());
        let mut found: Vec<Scope> = configured.filter(|scope| place.starts_with(&scope.root)).collect();
        let tops: Vec<&Path> = match place.ancestors().find(|directory| has_git(directory)) {
            Some(top) => vec![top],
            None => place.ancestors().filter(|directory| directory.is_dir()).collect(),
        };
        found.extend(tops.into_iter().filter_map(|top| self.implicit(top, true, environment).ok()));
        found
    }

    fn configured(&self, name: &str, file: &ScopeFile) -> Result<Scope, ConfigError> {
        let root = canonical_root(&file.root)?;
        require_top(&root)?;
        self.check_cache(&root)?;
        Ok(Scope {
            id: name.to_owned(),
            root,
            source_roots: file.source_roots.clone(),
            include_untracked: file.include_untracked,
            exclude: file.exclude.clone(),
            deprioritize: file.deprioritize.clone(),
            on_stale: file.on_stale,
            check: file.check,
            implicit: false,
        })
    }

    fn implicit(&self, place: &Path, explicit: bool, environment: &Environment) -> Result<Scope, ConfigError> {
        let root = if explicit {
            require_top(place)?;
            place.to_owned()
        } else {
            worktree_top(place).unwrap_or_else(|| place.to_owned())
        };
        let home = environment.home.as_ref().and_then(|home| home.canonicalize().ok());
        // What is above the home directory holds it, and those of others.
        let broad = root.parent().is_none() || home.is_some_and(|home| home.starts_with(&root));
        if broad && !(explicit && has_git(&root)) {
            return Err(ConfigError::RootTooBroad);
        }
        self.check_cache(&root)?;
        let digest = ContentHash::of(root.as_os_str().as_encoded_bytes()).hex();
        Ok(Scope {
            id: format!("wt-{}", &digest[..12]),
            root,
            source_roots: None,
            include_untracked: true,
            exclude: Vec::new(),
            deprioritize: Vec::new(),
            on_stale: OnStale::Sync,
            check: Check::Full,
            implicit: true,
        })
    }

    fn check_cache(&self, root: &Path) -> Result<(), ConfigError> {
        if canonical_future(&self.cache_dir).starts_with(root) { Err(ConfigError::CacheInsideRepository) } else { Ok(()) }
    }
}

impl ScopeFile {
    fn check(&self, id: &str) -> Result<(), ConfigError> {
        let invalid = |key: &str, problem: String| ConfigError::Invalid { key: format!("scopes.{id}.{key}"), problem };
        let name_is_plain = !id.is_empty()
            && id.len() <= 64
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !name_is_plain {
            return Err(ConfigError::Invalid {
                key: format!("scopes.{id}"),
                problem: "is no scope name: use 1 to 64 letters, digits, `-`, `_` and `.`".to_owned(),
            });
        }
        if !self.root.is_absolute() {
            return Err(invalid("root", "must be an absolute path".to_owned()));
        }
        for source_root in self.source_roots.iter().flatten() {
            if source_root != "."
                && let Err(error) = PathPrefix::parse(source_root)
            {
                return Err(invalid("source_roots", format!("holds `{source_root}`, which cannot be used: {error}")));
            }
        }
        for (key, globs) in [("exclude", &self.exclude), ("deprioritize", &self.deprioritize)] {
            for glob in globs {
                if glob.trim_matches('/').is_empty() {
                    return Err(invalid(key, "holds an empty pattern".to_owned()));
                }
                if let Err(error) = globset::Glob::new(glob) {
                    return Err(invalid(key, format!("holds a pattern that cannot be used: {error}")));
                }
            }
        }
        Ok(())
    }
}

/// Says what is wrong with the text of a configuration file and where, and for an unknown key which ones there are.
///
/// Neither the line nor a value of the wrong type is quoted, as both may hold a secret that was put into the wrong place.
fn problem_of(text: &str, error: &toml::de::Error) -> String {
    let said = error.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
    let said = match said.rsplit_once(", expected ") {
        Some((found, expected)) if found.starts_with("invalid type: ") || found.starts_with("invalid value: ") => {
            let kind = found.find(['"', '`']).map_or(found, |at| found[..at].trim_end());
            format!("{kind}, expected {expected}")
        }
        _ => said,
    };
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            format!("line {line}, column {column}: {said}")
        }
        None => said,
    }
}

/// Returns the configuration file's name for messages and its text; `None` where none is named.
fn text_of(file: Option<&Path>, environment: &Environment) -> Result<Option<(String, String)>, ConfigError> {
    let Some(path) = file.or(environment.config.as_deref()) else { return Ok(None) };
    let name = display_name(path);
    match std::fs::read_to_string(environment.current_dir.join(path)) {
        Ok(text) => Ok(Some((name, text))),
        Err(source) => Err(ConfigError::Read { name, source }),
    }
}

/// Returns the nearest directory at or above `place` that is the top of a Git worktree.
pub fn worktree_top(place: &Path) -> Option<PathBuf> {
    place.ancestors().find(|directory| has_git(directory)).map(Path::to_owned)
}

/// Returns whether a directory is the top of a worktree: it holds a `.git` file, or a `.git` directory that is a repository. Git, too,
/// passes over a directory of that name that is none.
fn has_git(directory: &Path) -> bool {
    let git = directory.join(".git");
    match git.metadata() {
        Ok(found) if found.is_dir() => git.join("HEAD").symlink_metadata().is_ok() && git.join("objects").is_dir(),
        Ok(found) => found.is_file(),
        Err(_) => false,
    }
}

fn require_top(root: &Path) -> Result<(), ConfigError> {
    match worktree_top(root) {
        Some(top) if top != root => Err(ConfigError::RootBelowTop { name: display_name(root) }),
        _ => Ok(()),
    }
}

fn canonical_root(root: &Path) -> Result<PathBuf, ConfigError> {
    let canonical = root.canonicalize().map_err(|source| ConfigError::Root { name: display_name(root), source })?;
    if canonical.is_dir() { Ok(canonical) } else { Err(ConfigError::RootNotADirectory { name: display_name(root) }) }
}

/// Returns where `path` will be once it exists: its nearest existing ancestor made canonical, and the rest.
pub fn canonical_future(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(canonical) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).expect("an ancestor is a prefix");
            // Joining nothing would end it with a slash.
            return if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) };
        }
    }
    path.to_owned()
}

fn default_cache_dir(environment: &Environment) -> Result<PathBuf, ConfigError> {
    if let Some(cache) = &environment.xdg_cache_home {
        return Ok(cache.join("sextant"));
    }
    let home = environment.home.as_ref().filter(|home| home.is_absolute()).ok_or(ConfigError::NoCacheDirectory)?;
    let caches = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    Ok(home.join(caches).join("sextant"))
}

/// Returns the last part of a path: messages name no absolute path.
fn display_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        directory: tempfile::TempDir,
        environment: Environment,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let base = directory.path().canonicalize().expect("it exists");
            let fixture = Self {
                directory,
                environment: Environment {
                    current_dir: base.clone(),
                    home: Some(base.join("home")),
                    xdg_cache_home: Some(base.join("cache")),
                    xdg_runtime_dir: None,
                    config: None,
                    parsers: ParserHost::ThisProcess,
                },
            };
            fixture.make("home");
            fixture
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().canonicalize().expect("it exists").join(name)
        }

        fn make(&self, name: &str) -> PathBuf {
            std::fs::create_dir_all(self.path(name)).expect("a directory");
            self.path(name)
        }

        fn make_worktree(&self, name: &str) -> PathBuf {
            self.make(&format!("{name}/.git/objects"));
            std::fs::write(self.path(name).join(".git/HEAD"), "ref: refs/heads/main\n").expect("HEAD");
            self.path(name)
        }

        fn config(&self, text: &str) -> Result<Config, ConfigError> {
            let text = text.replace("$BASE", self.path("").to_str().expect("UTF-8").trim_end_matches('/'));
            Config::parse(&text, "sextant.toml", &self.environment)
        }

        fn scope_in(&self, text: &str, place: &str, selection: &Selection) -> Result<Scope, ConfigError> {
            let environment = Environment { current_dir: self.path(place), ..self.environment.clone() };
            self.config(text)?.scope(selection, &environment)
        }
    }

    fn root(path: impl Into<PathBuf>) -> Selection {
        Selection { root: Some(path.into()), scope: None }
    }

    fn named(scope: &str) -> Selection {
        Selection { root: None, scope: Some(scope.to_owned()) }
    }

    #[test]
    fn defaults() {
        let fixture = Fixture::new();
        let config = Config::load(None, &fixture.environment).expect("no file is needed");
        assert_eq!(config.cache_dir, fixture.path("cache/sextant"));
        assert!(config.enabled);
        assert_eq!(config.limits.max_files, 20_000);
        let bare = Environment { xdg_cache_home: None, home: None, ..fixture.environment.clone() };
        assert!(matches!(Config::load(None, &bare), Err(ConfigError::NoCacheDirectory)));
    }

    #[test]
    fn a_whole_file() {
        let fixture = Fixture::new();
        let top = fixture.make_worktree("demo");
        let text = r#"
            cache_dir = "$BASE/elsewhere"
            enabled = false
            [limits]
            max_files = 7
            [scopes.demo]
            root = "$BASE/demo"
            source_roots = ["src", "."]
            include_untracked = true
            exclude = ["docs/**"]
            deprioritize = ["vendor/**"]
            on_stale = "sync"
            check = "sealed"
        "#;
        let config = fixture.config(text).expect("valid");
        assert_eq!((config.enabled, config.limits.max_files, config.limits.query_seconds), (false, 7, 5));
        let scope = config.scope(&named("demo"), &fixture.environment).expect("configured");
        assert_eq!(scope.root, top);
        assert_eq!(scope.source_roots, Some(vec!["src".to_owned(), ".".to_owned()]));
        assert_eq!((scope.include_untracked, scope.on_stale, scope.implicit), (true, OnStale::Sync, false));
        assert_eq!(scope.check, Check::Sealed);
        let plain = fixture.scope_in("[scopes.a]\nroot = \"$BASE/demo\"", "demo", &Selection::default()).expect("the only one");
        assert_eq!((plain.id.as_str(), plain.include_untracked, plain.on_stale), ("a", false, OnStale::Refuse));
        assert_eq!(plain.check, Check::Full);
        assert_ne!(plain.binding_id(), scope.binding_id());
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        let fixture = Fixture::new();
        for (text, expected) in [
            ("cache_dirs = \"/x\"", "unknown field `cache_dirs`, expected one of `cache_dir`"),
            ("[limits]\nfiles = 1", "unknown field `files`"),
            ("[scopes.a]\nroot = \"/x\"\nroots = 1", "unknown field `roots`"),
            ("[limits]\nmax_files = \"7\"", "line 2, column 13: invalid type: string, expected u64"),
            ("[limits]\nmax_files = 0", "`limits.max_files` must be greater than zero"),
            ("[watch]\npoll_seconds = 0", "`watch.poll_seconds` must be greater than zero"),
            ("[watch]\nquiet = 1", "unknown field `quiet`"),
            ("[daemon]\nidle_minutes = 0", "must be greater than zero"),
            ("[daemon]\nauto_sync_ms = 9223372036854775807", "`daemon.auto_sync_ms` must be at most 1000000000"),
            ("[daemon]\nautostart = 1", "line 2, column 13: invalid type: integer, expected a boolean"),
            ("[limits]\nparse_seconds = 9223372036854775807", "`limits.parse_seconds` must be at most 1000000"),
            ("cache_dir = \"x\"", "`cache_dir` must be an absolute path"),
            ("cache_dir = \"/x/../y\"", "`cache_dir` must be an absolute path without `..`"),
            ("[scopes.a]\nroot = \"x\"", "`scopes.a.root` must be an absolute path"),
            ("[scopes.a]\nroot = \"/x\"\non_stale = \"maybe\"", "unknown variant `maybe`, expected `refuse` or `sync`"),
            ("[scopes.a]\nroot = \"/x\"\ncheck = \"none\"", "unknown variant `none`, expected `full` or `sealed`"),
            ("[scopes.a]\nroot = \"/x\"\nexclude = [\"a[\"]", "`scopes.a.exclude` holds a pattern"),
            ("[scopes.a]\nroot = \"/x\"\nsource_roots = [\"../x\"]", "`scopes.a.source_roots` holds `../x`"),
            ("[scopes.a]\nroot = \"/x\"\nexclude = [\"/\"]", "`scopes.a.exclude` holds an empty pattern"),
            ("[scopes.\"a b\"]\nroot = \"/x\"", "is no scope name"),
            ("[scopes.a]", "missing field `root`"),
        ] {
            let error = fixture.config(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text:?} gave {error:?}");
        }
    }

    #[test]
    fn mistakes_in_a_file_quote_no_secret() {
        let fixture = Fixture::new();
        for text in [
            "[[http.tokens]]\nsha256 = \"hunter2",
            "[[http.tokens]]\nsha256 = hunter2",
            "[[http.tokens]]\nsha256 = \"hunter2\"",
            "[[http.tokens]]\nscopes = \"hunter2, expected x\"",
            "[http]\ntokens = [\"hunter2\"]",
            "[http]\ntokens = \"hunter2\"",
            "[[http.tokens]]\ntoken = \"hunter2\"",
        ] {
            let error = fixture.config(text).expect_err(text).to_string();
            assert!(!error.contains("hunter2") && error.contains("line 2, column "), "{text:?} gave {error:?}");
        }
        let error = fixture.config("[http]\nhosts = 8675309").expect_err("no list").to_string();
        assert!(!error.contains("8675309"), "{error}");
    }

    #[test]
    fn implicit_scopes() {
        let fixture = Fixture::new();
        let top = fixture.make_worktree("project");
        fixture.make("project/src/deep");
        let scope = fixture.scope_in("", "project/src/deep", &Selection::default()).expect("the worktree above");
        assert_eq!(scope.root, top);
        assert!(scope.id.starts_with("wt-") && scope.id.len() == 15, "{}", scope.id);
        assert_eq!((scope.include_untracked, scope.on_stale, scope.implicit), (true, OnStale::Sync, true));
        let same = fixture.scope_in("", "home", &root("../project")).expect("named");
        assert_eq!(same, scope);
        let folder = fixture.make("folder");
        assert_eq!(fixture.scope_in("", "folder", &Selection::default()).expect("a folder").root, folder);
        let below = fixture.scope_in("", "home", &root("../project/src"));
        assert!(matches!(below, Err(ConfigError::RootBelowTop { .. })));
        assert!(matches!(fixture.scope_in("", "home", &root("gone")), Err(ConfigError::Root { .. })));
        std::fs::write(fixture.path("file"), "").expect("a file");
        assert!(matches!(fixture.scope_in("", "home", &root("../file")), Err(ConfigError::RootNotADirectory { .. })));
        assert!(matches!(fixture.scope_in("", "home", &named("x")), Err(ConfigError::UnknownScope { .. })));
    }

    #[test]
    fn broad_roots_only_when_asked_for() {
        let fixture = Fixture::new();
        fixture.make("home/notes");
        assert!(matches!(fixture.scope_in("", "home", &Selection::default()), Err(ConfigError::RootTooBroad)));
        assert!(matches!(fixture.scope_in("", "home", &root(".")), Err(ConfigError::RootTooBroad)));
        assert!(matches!(fixture.scope_in("", "home", &root("/")), Err(ConfigError::RootTooBroad)));
        // The directory that holds the home directory, and those above that one.
        assert!(matches!(fixture.scope_in("", "", &Selection::default()), Err(ConfigError::RootTooBroad)));
        assert!(matches!(fixture.scope_in("", "home", &root("../..")), Err(ConfigError::RootTooBroad)));
        assert!(matches!(
            fixture.config("").expect("valid").scope_at(&fixture.path(""), &fixture.environment),
            Err(ConfigError::RootTooBroad)
        ));
        fixture.make_worktree("home");
        assert!(matches!(fixture.scope_in("", "home/notes", &Selection::default()), Err(ConfigError::RootTooBroad)));
        assert!(fixture.scope_in("", "home", &root(".")).is_ok());
    }

    #[test]
    fn choosing_among_configured_scopes() {
        let fixture = Fixture::new();
        let outer = fixture.make_worktree("outer");
        let inner = fixture.make_worktree("outer/inner");
        let other = fixture.make_worktree("other");
        let text = "[scopes.outer]\nroot = \"$BASE/outer\"\n[scopes.inner]\nroot = \"$BASE/outer/inner\"";
        let chosen =
            |place: &str, selection: &Selection| fixture.scope_in(text, place, selection).map(|scope| (scope.id, scope.root));
        assert_eq!(chosen("outer/inner", &Selection::default()).expect("nearest"), ("inner".to_owned(), inner));
        assert_eq!(chosen("home", &root("../outer")).expect("by root"), ("outer".to_owned(), outer));
        assert!(matches!(chosen("home", &Selection::default()), Err(ConfigError::ScopeNeeded { .. })));
        assert!(chosen("home", &root(&other)).expect("implicit").0.starts_with("wt-"));
        // A worktree within a scope's, of which no scope is, is a place of its own.
        let apart = fixture.make_worktree("outer/apart");
        for text in [text, "[scopes.outer]\nroot = \"$BASE/outer\""] {
            let scope = fixture.scope_in(text, "outer/apart", &Selection::default()).expect("implicit");
            assert!(scope.implicit && scope.root == apart, "{scope:?}");
        }
        let both = Selection { root: Some(other), scope: Some("outer".to_owned()) };
        assert!(matches!(chosen("home", &both), Err(ConfigError::RootAndScope { .. })));
        let twice = "[scopes.a]\nroot = \"$BASE/outer\"\n[scopes.b]\nroot = \"$BASE/outer\"";
        assert!(matches!(fixture.scope_in(twice, "outer", &Selection::default()), Err(ConfigError::ScopeNeeded { .. })));
    }

    #[test]
    fn scopes_of_directories() {
        let fixture = Fixture::new();
        fixture.make_worktree("outer");
        fixture.make("outer/src/deep");
        fixture.make_worktree("outer/apart");
        fixture.make_worktree("other");
        fixture.make("other/src");
        fixture.make_worktree("home");
        fixture.make("home/plain");
        let config = fixture.config("[scopes.outer]\nroot = \"$BASE/outer\"").expect("valid");
        let check = |place: &str, want: Result<(&str, &str), &str>| {
            let found = config.scope_at(&fixture.path(place), &fixture.environment);
            let found = found.map(|scope| (if scope.implicit { "-".to_owned() } else { scope.id }, scope.root));
            match want {
                Ok((id, root)) => assert_eq!(found.expect(place), (id.to_owned(), fixture.path(root)), "{place}"),
                Err(error) => assert!(format!("{found:?}").contains(error), "{place}: {found:?}"),
            }
        };
        check("outer", Ok(("outer", "outer")));
        check("outer/src/deep", Ok(("outer", "outer")));
        check("outer/apart", Ok(("-", "outer/apart")));
        check("other/src", Ok(("-", "other")));
        // The only configured scope is not meant by a place outside it, and home is none even as a repository.
        check("home", Err("RootTooBroad"));
        check("home/plain", Err("RootTooBroad"));
        check("nowhere", Err("Root {"));
        assert!(matches!(config.scope_at(Path::new("/"), &fixture.environment), Err(ConfigError::RootTooBroad)));
    }

    #[test]
    fn scopes_that_hold_a_place() {
        let fixture = Fixture::new();
        let outer = fixture.make_worktree("outer");
        fixture.make_worktree("outer/inner");
        fixture.make("folder/deep");
        let text = "[scopes.a]\nroot = \"$BASE/outer\"\n[scopes.b]\nroot = \"$BASE/outer\"\n[scopes.gone]\nroot = \"$BASE/gone\"";
        let config = fixture.config(text).expect("valid");
        let holding = |place: &str| {
            let found = config.scopes_that_hold(&fixture.path(place), &fixture.environment);
            let below =
                |scope: &Scope| scope.root.strip_prefix(fixture.path("")).map_or("-".into(), |root| root.display().to_string());
            let told = found.iter().map(|scope| if scope.implicit { below(scope) } else { scope.id.clone() });
            told.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(holding("outer/src/new.py"), "a b outer");
        assert_eq!(holding("outer/inner/x.py"), "a b outer/inner");
        assert_eq!(holding("folder/deep/x.py").split(' ').take(2).collect::<Vec<_>>(), ["folder/deep", "folder"]);
        assert!(!holding("gone/x.py").contains("gone"), "the root of a scope is gone");
        assert!(outer.is_dir());
    }

    #[test]
    fn the_cache_stays_outside() {
        let fixture = Fixture::new();
        fixture.make_worktree("project");
        let text = "cache_dir = \"$BASE/project/not/yet\"";
        assert!(matches!(fixture.scope_in(text, "project", &Selection::default()), Err(ConfigError::CacheInsideRepository)));
        std::os::unix::fs::symlink(fixture.path("project"), fixture.path("alias")).expect("a link");
        let text = "cache_dir = \"$BASE/alias/cache\"";
        assert!(matches!(fixture.scope_in(text, "project", &Selection::default()), Err(ConfigError::CacheInsideRepository)));
    }
}
