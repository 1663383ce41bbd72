//! What a scope includes, and why not the rest, as far as a path alone can tell.
//!
//! Must not read a file. Invariant: the answer depends on the path, on whether Git tracks it and on the scope, and [`Policy::digest`]
//! changes whenever the answer for some path may.

use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::config::Scope;
use crate::languages;
use crate::model::{Canonical, ContentHash, RepoPath};

use super::Omission;

/// Changes with the rules of this file.
const RULES: &str = "policy-1";

/// The compiled rules of a scope.
#[derive(Clone, Debug)]
pub struct Policy {
    include_untracked: bool,
    exclude: GlobSet,
    deprioritize: GlobSet,
    digest: ContentHash,
}

/// A pattern of the scope that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the pattern `{pattern}` of `{key}` cannot be used")]
pub struct PolicyError {
    key: &'static str,
    pattern: String,
    #[source]
    source: globset::Error,
}

impl Policy {
    /// Compiles the rules of a scope. In a pattern `*` and `?` do not match `/`; one without `/` matches a name in any directory, and one
    /// that matches a directory holds for all below it.
    ///
    /// # Errors
    /// When a pattern is not a glob.
    pub fn new(scope: &Scope) -> Result<Self, PolicyError> {
        let mut record = Canonical::new("policy");
        record.field(RULES.as_bytes());
        record.number(u64::from(scope.include_untracked));
        for patterns in [&scope.exclude, &scope.deprioritize] {
            record.number(patterns.len() as u64);
            for pattern in patterns {
                record.field(pattern.as_bytes());
            }
        }
        Ok(Self {
            include_untracked: scope.include_untracked,
            exclude: compile("exclude", &scope.exclude)?,
            deprioritize: compile("deprioritize", &scope.deprioritize)?,
            digest: ContentHash(record.finish()),
        })
    }

    /// Returns the digest of all that decides what is included and what ranks last.
    pub fn digest(&self) -> ContentHash {
        self.digest
    }

    /// Returns whether files that Git does not track, and does not ignore, belong to the scope.
    pub fn include_untracked(&self) -> bool {
        self.include_untracked
    }

    /// Returns whether the scope wants this path ranked last.
    pub fn deprioritized(&self, path: &RepoPath) -> bool {
        !self.deprioritize.is_empty() && self.deprioritize.is_match(path.as_str())
    }

    /// Returns why a regular file is left out, `None` when its content is to decide.
    pub(super) fn omits(&self, path: &RepoPath) -> Option<Omission> {
        if is_credential(path) {
            Some(Omission::Credentials)
        } else if !self.exclude.is_empty() && self.exclude.is_match(path.as_str()) {
            Some(Omission::Excluded)
        } else if !is_source(path) && !is_text(path) {
            Some(Omission::UnsupportedContent)
        } else if languages::is_vendored(path) {
            Some(Omission::Vendored)
        } else {
            None
        }
    }

    /// Returns whether an untracked directory of this name holds what tools made, and is left out whole.
    pub(super) fn is_cache_directory(name: &str) -> bool {
        CACHE_DIRECTORIES.binary_search(&name).is_ok()
    }
}

fn compile(key: &'static str, patterns: &[String]) -> Result<GlobSet, PolicyError> {
    let mut set = GlobSetBuilder::new();
    let error = |pattern: &String| {
        let pattern = pattern.clone();
        move |source| PolicyError { key, pattern, source }
    };
    for pattern in patterns {
        let anchored = pattern.trim_start_matches('/').trim_end_matches('/');
        let place = if pattern.trim_end_matches('/').contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
        for glob in [place.clone(), format!("{place}/**")] {
            set.add(GlobBuilder::new(&glob).literal_separator(true).build().map_err(error(pattern))?);
        }
    }
    set.build().map_err(|source| PolicyError { key, pattern: patterns.join(" "), source })
}

/// Returns whether the name is one under which people keep secrets.
fn is_credential(path: &RepoPath) -> bool {
    let name = path.file_name().as_bytes();
    let starts = |start: &[u8]| name.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start));
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    let kept_secret = match name.first() {
        Some(b'.') => starts(b".env") || is(b".netrc") || is(b".npmrc"),
        Some(b'i' | b'I') => starts(b"id_rsa") || starts(b"id_ed25519"),
        Some(b'c' | b'C') => is(b"credentials") && (path.directory() == ".aws" || path.directory().ends_with("/.aws")),
        Some(b's' | b'S') => (is(b"secrets") || starts(b"secrets.")) && !is_source(path),
        _ => false,
    };
    kept_secret || has_suffix(path, &CREDENTIAL)
}

/// Returns whether the file is source: of a registered language, or of another one.
fn is_source(path: &RepoPath) -> bool {
    has_suffix(path, &SOURCE) || languages::language_of(path).is_some()
}

fn is_text(path: &RepoPath) -> bool {
    if has_suffix(path, &TEXT) {
        return true;
    }
    let name = path.file_name();
    TEXT_NAMES
        .iter()
        .any(|known| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_'])))
}

/// Suffixes as integers, in order: found without comparing texts.
type Suffixes = LazyLock<Vec<u128>>;

static CREDENTIAL: Suffixes = LazyLock::new(|| packed(&["key", "p12", "pem", "pfx"]));
static SOURCE: Suffixes = LazyLock::new(|| packed(SOURCE_SUFFIXES));
static TEXT: Suffixes = LazyLock::new(|| packed(TEXT_SUFFIXES));

fn packed(suffixes: &[&str]) -> Vec<u128> {
    let mut packed: Vec<u128> = suffixes.iter().filter_map(|suffix| pack(suffix.as_bytes())).collect();
    packed.sort_unstable();
    packed
}

/// Packs a suffix, ASCII case folded; `None` for one longer than any that is known.
fn pack(suffix: &[u8]) -> Option<u128> {
    (suffix.len() <= 16).then(|| suffix.iter().fold(0, |packed, byte| packed << 8 | u128::from(byte.to_ascii_lowercase())))
}

fn has_suffix(path: &RepoPath, known: &[u128]) -> bool {
    let bytes = path.as_str().as_bytes();
    let tail = &bytes[bytes.len().saturating_sub(17)..];
    // A dot that begins the name begins no suffix.
    let dot = tail.iter().rposition(|&byte| byte == b'.').filter(|&dot| {
        let before = bytes.len() - tail.len() + dot;
        before > 0 && bytes[before - 1] != b'/' && !tail[dot..].contains(&b'/')
    });
    dot.and_then(|dot| pack(&tail[dot + 1..])).is_some_and(|suffix| known.binary_search(&suffix).is_ok())
}

/// Folders of build tools and caches. Sorted.
const CACHE_DIRECTORIES: &[&str] = &[
    ".cache",
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".hg",
    ".hypothesis",
    ".idea",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".sass-cache",
    ".svelte-kit",
    ".svn",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".yarn",
    "__pycache__",
    "bower_components",
    "build",
    "dist",
    "htmlcov",
    "node_modules",
    "site-packages",
    "target",
    "venv",
];

/// Suffixes of programming languages, markup and queries that no grammar here reads. Sorted.
const SOURCE_SUFFIXES: &[&str] = &[
    "asm",
    "astro",
    "awk",
    "bash",
    "bat",
    "bzl",
    "c",
    "c++",
    "cc",
    "cfm",
    "cjs",
    "cl",
    "clj",
    "cljc",
    "cljs",
    "cls",
    "cmake",
    "cmd",
    "coffee",
    "cpp",
    "cs",
    "csh",
    "csproj",
    "css",
    "cts",
    "cu",
    "cuh",
    "cxx",
    "d",
    "dart",
    "ejs",
    "el",
    "elm",
    "erb",
    "erl",
    "ex",
    "exs",
    "f",
    "f03",
    "f90",
    "f95",
    "fish",
    "for",
    "frag",
    "fs",
    "fsi",
    "fsx",
    "gd",
    "glsl",
    "go",
    "gql",
    "gradle",
    "graphql",
    "groovy",
    "h",
    "h++",
    "haml",
    "handlebars",
    "hbs",
    "hh",
    "hlsl",
    "hpp",
    "hrl",
    "hs",
    "htm",
    "html",
    "hxx",
    "idl",
    "inl",
    "ino",
    "ipp",
    "j2",
    "jade",
    "java",
    "jinja",
    "jinja2",
    "jl",
    "js",
    "jsp",
    "jsx",
    "ksh",
    "kt",
    "kts",
    "less",
    "lhs",
    "liquid",
    "lisp",
    "lua",
    "m",
    "m4",
    "mak",
    "metal",
    "mjs",
    "mk",
    "ml",
    "mli",
    "mm",
    "mojo",
    "mts",
    "mustache",
    "nim",
    "nix",
    "nu",
    "pas",
    "php",
    "phtml",
    "pl",
    "pm",
    "pp",
    "prisma",
    "proto",
    "ps1",
    "psm1",
    "pug",
    "pxd",
    "pxi",
    "py",
    "pyi",
    "pyw",
    "pyx",
    "qml",
    "r",
    "rake",
    "rb",
    "re",
    "rego",
    "res",
    "rkt",
    "rs",
    "s",
    "sass",
    "sbt",
    "scala",
    "scm",
    "scss",
    "sh",
    "sol",
    "sql",
    "ss",
    "starlark",
    "styl",
    "sv",
    "svelte",
    "svh",
    "swift",
    "t",
    "tcl",
    "tf",
    "tfvars",
    "thrift",
    "tmpl",
    "toit",
    "ts",
    "tsx",
    "twig",
    "v",
    "vb",
    "vbs",
    "vert",
    "vhd",
    "vhdl",
    "vim",
    "vue",
    "wgsl",
    "xhtml",
    "xsl",
    "xslt",
    "yy",
    "zig",
    "zsh",
];

/// Suffixes of prose and of the data that people read to find their way. Sorted.
const TEXT_SUFFIXES: &[&str] = &[
    "adoc",
    "asciidoc",
    "cfg",
    "conf",
    "config",
    "hcl",
    "ini",
    "json",
    "json5",
    "jsonc",
    "markdown",
    "md",
    "mdown",
    "mdx",
    "mod",
    "org",
    "plist",
    "properties",
    "props",
    "rst",
    "sln",
    "targets",
    "template",
    "tex",
    "textile",
    "toml",
    "tpl",
    "txt",
    "work",
    "xml",
    "xsd",
    "yaml",
    "yml",
];

/// Names without a telling suffix, alone or followed by one (`Dockerfile.dev`, `LICENSE-MIT`).
const TEXT_NAMES: &[&str] = &[
    "AUTHORS",
    "BUILD",
    "CHANGELOG",
    "CHANGES",
    "CODEOWNERS",
    "CONTRIBUTING",
    "COPYING",
    "Containerfile",
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "HISTORY",
    "INSTALL",
    "Jenkinsfile",
    "Justfile",
    "LICENCE",
    "LICENSE",
    "MAINTAINERS",
    "Makefile",
    "NEWS",
    "NOTICE",
    "Pipfile",
    "Procfile",
    "README",
    "Rakefile",
    "SECURITY",
    "TODO",
    "Vagrantfile",
    "WORKSPACE",
    "justfile",
    "makefile",
];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{Check, OnStale};

    fn policy(exclude: &[&str], deprioritize: &[&str]) -> Policy {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Policy::new(&Scope {
            id: "test".to_owned(),
            root: PathBuf::from("/"),
            source_roots: None,
            include_untracked: true,
            exclude: owned(exclude),
            deprioritize: owned(deprioritize),
            on_stale: OnStale::Refuse,
            check: Check::Full,
            implicit: false,
        })
        .expect("valid patterns")
    }

    fn path(text: &str) -> RepoPath {
        RepoPath::parse(text).expect("a valid path")
    }

    #[test]
    fn lists_are_sorted() {
        for list in [CACHE_DIRECTORIES, TEXT_SUFFIXES, TEXT_NAMES] {
            assert!(list.is_sorted(), "{list:?}");
        }
        let unsorted = SOURCE_SUFFIXES.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(unsorted, None);
    }

    #[test]
    fn reasons() {
        let policy = policy(&["docs/**", "*.gen.ts", "vendor/"], &[]);
        for (text, expected) in [
            ("a.py", None),
            ("A.PY", None),
            ("secrets.py", None),
            ("lib/secrets.go", None),
            ("secrets.yaml", Some(Omission::Credentials)),
            ("config/secrets", Some(Omission::Credentials)),
            (".env", Some(Omission::Credentials)),
            ("a/.env.local", Some(Omission::Credentials)),
            ("tls/server.PEM", Some(Omission::Credentials)),
            ("id_rsa", Some(Omission::Credentials)),
            ("home/.aws/credentials", Some(Omission::Credentials)),
            ("credentials", Some(Omission::UnsupportedContent)),
            ("docs/a.md", Some(Omission::Excluded)),
            ("docs/.env", Some(Omission::Credentials)),
            ("a/docs/a.md", None),
            ("a/b.gen.ts", Some(Omission::Excluded)),
            ("a/vendor/b.go", Some(Omission::Excluded)),
            ("logo.png", Some(Omission::UnsupportedContent)),
            ("noext", Some(Omission::UnsupportedContent)),
            ("Makefile", None),
            ("Dockerfile.dev", None),
            ("LICENSE-MIT", None),
            ("LICENSES", Some(Omission::UnsupportedContent)),
            ("go.mod", None),
            (".py", Some(Omission::UnsupportedContent)),
        ] {
            assert_eq!(policy.omits(&path(text)), expected, "{text}");
        }
    }

    #[test]
    fn deprioritizing_excludes_nothing() {
        let policy = policy(&[], &["vendor/**"]);
        assert!(policy.deprioritized(&path("vendor/a.py")));
        assert!(!policy.deprioritized(&path("a.py")));
        assert_eq!(policy.omits(&path("vendor/a.py")), None);
    }

    #[test]
    fn the_digest_tells_policies_apart() {
        assert_ne!(policy(&["a"], &[]).digest(), policy(&[], &["a"]).digest());
        assert_eq!(policy(&["a"], &[]).digest(), policy(&["a"], &[]).digest());
    }
}
