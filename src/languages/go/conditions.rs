//! Build constraints: under which conditions a file is part of a build, and whether two files can be part of one.
//!
//! Must not know which build is meant. Invariant: what cannot be decided is taken for possible.

use std::collections::BTreeSet;

/// Operating systems that a file name or a tag may name.
const SYSTEMS: [&str; 19] = [
    "aix",
    "android",
    "darwin",
    "dragonfly",
    "freebsd",
    "hurd",
    "illumos",
    "ios",
    "js",
    "linux",
    "nacl",
    "netbsd",
    "openbsd",
    "plan9",
    "solaris",
    "wasip1",
    "windows",
    "zos",
    "unknown_system",
];
/// Those that the tag `unix` stands for.
const UNIX: [&str; 12] =
    ["aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "linux", "netbsd", "openbsd", "solaris"];
/// Processors that a file name or a tag may name.
const PROCESSORS: [&str; 27] = [
    "386",
    "amd64",
    "amd64p32",
    "arm",
    "arm64",
    "arm64be",
    "armbe",
    "loong64",
    "mips",
    "mips64",
    "mips64le",
    "mips64p32",
    "mips64p32le",
    "mipsle",
    "ppc",
    "ppc64",
    "ppc64le",
    "riscv",
    "riscv64",
    "s390",
    "s390x",
    "sparc",
    "sparc64",
    "wasm",
    "unknown_processor",
    "mips32",
    "ppc32",
];
/// More tags of other kinds than this are not tried out.
const MAX_TAGS: usize = 8;

/// Returns the constraint in the comments at the head of a source, as one expression of `//go:build`.
pub(super) fn of_source(text: &str) -> Option<String> {
    let mut older: Vec<String> = Vec::new();
    let mut block = false;
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        let line = line.trim();
        if block {
            block = !line.contains("*/");
            continue;
        }
        if let Some(constraint) = line.strip_prefix("//go:build ") {
            return Some(constraint.trim().to_owned());
        }
        if let Some(comment) = line.strip_prefix("//") {
            if let Some(list) = comment.trim_start().strip_prefix("+build ") {
                // Spaces are "or", commas "and"; lines are "and" again.
                let any = list.split_whitespace().map(|all| {
                    let all: Vec<_> = all.split(',').collect();
                    format!("({})", all.join(" && "))
                });
                older.push(format!("({})", any.collect::<Vec<_>>().join(" || ")));
            }
        } else if line.starts_with("/*") {
            block = !line.contains("*/");
        } else if !line.is_empty() {
            break;
        }
    }
    (!older.is_empty()).then(|| older.join(" && "))
}

/// A constraint in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Constraint {
    Tag(String),
    Not(Box<Constraint>),
    All(Vec<Constraint>),
    Any(Vec<Constraint>),
}

/// Which builds are thought of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Any,
    /// Those for which nobody sets a tag of the program's own.
    Default,
}

/// The condition under which a file is part of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition(Constraint);

impl Condition {
    /// Returns the condition of a file by its name and the constraint in its source.
    pub(super) fn of_file(file_name: &str, constraint: Option<&str>) -> Self {
        let mut all = Vec::new();
        let stem = file_name.strip_suffix(".go").unwrap_or(file_name);
        let stem = stem.strip_suffix("_test").unwrap_or(stem);
        let parts: Vec<&str> = stem.split('_').collect();
        if let [.., before, last] = parts[..]
            && parts.len() >= 3
            && SYSTEMS.contains(&before)
            && PROCESSORS.contains(&last)
        {
            all.push(Constraint::Tag(before.to_owned()));
            all.push(Constraint::Tag(last.to_owned()));
        } else if let [_, .., last] = parts[..]
            && (SYSTEMS.contains(&last) || PROCESSORS.contains(&last))
        {
            all.push(Constraint::Tag(last.to_owned()));
        }
        all.extend(constraint.and_then(parse));
        Self(Constraint::All(all))
    }

    /// Returns whether some build has both files; of the builds that `tags` allows.
    pub(super) fn meets(&self, other: &Self, setting: Setting) -> bool {
        let mut tags = BTreeSet::new();
        collect(&self.0, &mut tags);
        collect(&other.0, &mut tags);
        let told = |tag: &str| is_machine(tag) || is_always(tag) || setting == Setting::Default && tag != "cgo";
        let free: Vec<&str> = tags.iter().copied().filter(|tag| !told(tag)).collect();
        if free.len() > MAX_TAGS {
            return true;
        }
        let systems = named(&tags, &SYSTEMS, "unknown_system", tags.contains("unix"));
        let processors = named(&tags, &PROCESSORS, "unknown_processor", false);
        systems.iter().any(|system| {
            processors.iter().any(|processor| {
                (0..1_u32 << free.len()).any(|set| {
                    let holds = |tag: &str| match free.iter().position(|known| *known == tag) {
                        Some(position) => set >> position & 1 == 1,
                        None => holds_on(tag, system, processor),
                    };
                    evaluate(&self.0, &holds) && evaluate(&other.0, &holds)
                })
            })
        })
    }

    /// Returns whether the file is kept from every usual build (`//go:build ignore`).
    pub(super) fn is_ignored(&self) -> bool {
        matches!(&self.0, Constraint::All(all) if all.iter().any(|one| matches!(one, Constraint::Tag(tag) if tag == "ignore")))
    }
}

/// Returns whether every build of the usual tool chain sets a tag: a newer one has the older ones' tags.
fn is_always(tag: &str) -> bool {
    tag == "gc" || tag.starts_with("go1.")
}

fn is_machine(tag: &str) -> bool {
    tag == "unix" || SYSTEMS.contains(&tag) || PROCESSORS.contains(&tag)
}

/// Returns the names of a list that matter: those that tags name, and one that none does.
fn named<'a>(tags: &BTreeSet<&'a str>, list: &[&'a str], other: &'a str, all: bool) -> Vec<&'a str> {
    let mut found: Vec<&str> = list.iter().copied().filter(|name| all || tags.contains(name)).collect();
    found.push(other);
    found
}

fn holds_on(tag: &str, system: &str, processor: &str) -> bool {
    is_always(tag)
        || tag == system
        || tag == processor
        || matches!((tag, system), ("linux", "android") | ("solaris", "illumos") | ("darwin", "ios"))
        || tag == "unix" && UNIX.contains(&system)
}

fn collect<'a>(constraint: &'a Constraint, tags: &mut BTreeSet<&'a str>) {
    match constraint {
        Constraint::Tag(tag) => drop(tags.insert(tag)),
        Constraint::Not(inner) => collect(inner, tags),
        Constraint::All(parts) | Constraint::Any(parts) => parts.iter().for_each(|part| collect(part, tags)),
    }
}

fn evaluate(constraint: &Constraint, holds: &impl Fn(&str) -> bool) -> bool {
    match constraint {
        Constraint::Tag(tag) => holds(tag),
        Constraint::Not(inner) => !evaluate(inner, holds),
        Constraint::All(parts) => parts.iter().all(|part| evaluate(part, holds)),
        Constraint::Any(parts) => parts.iter().any(|part| evaluate(part, holds)),
    }
}

/// Reads a constraint; `None` when it is none.
fn parse(text: &str) -> Option<Constraint> {
    let mut reader = Reader { rest: text, depth: 0 };
    let constraint = reader.any()?;
    reader.rest.trim().is_empty().then_some(constraint)
}

struct Reader<'a> {
    rest: &'a str,
    depth: u32,
}

impl Reader<'_> {
    fn takes(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn any(&mut self) -> Option<Constraint> {
        let mut parts = vec![self.all()?];
        while self.takes("||") {
            parts.push(self.all()?);
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Constraint::Any(parts) })
    }

    fn all(&mut self) -> Option<Constraint> {
        let mut parts = vec![self.one()?];
        while self.takes("&&") {
            parts.push(self.one()?);
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Constraint::All(parts) })
    }

    fn one(&mut self) -> Option<Constraint> {
        self.depth += 1;
        if self.depth > 100 {
            return None;
        }
        if self.takes("!") {
            return Some(Constraint::Not(Box::new(self.one()?)));
        }
        if self.takes("(") {
            let inner = self.any()?;
            return self.takes(")").then_some(inner);
        }
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))).unwrap_or(self.rest.len());
        let (tag, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!tag.is_empty()).then(|| Constraint::Tag(tag.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_of_sources() {
        for (source, expected) in [
            ("// Copyright\n\n//go:build linux && !cgo\n\npackage a\n", Some("linux && !cgo")),
            ("// +build linux,!cgo darwin\n// +build amd64\n\npackage a\n", Some("((linux && !cgo) || (darwin)) && ((amd64))")),
            ("/* text\n//go:build no */\npackage a\n//go:build late\n", None),
            ("package a\n", None),
        ] {
            assert_eq!(of_source(source).as_deref(), expected, "{source:?}");
        }
    }

    #[test]
    fn files_that_meet() {
        let meet_in = |setting, left: (&str, &str), right: (&str, &str)| {
            let of = |(name, text): (&str, &str)| Condition::of_file(name, (!text.is_empty()).then_some(text));
            of(left).meets(&of(right), setting)
        };
        let meet = |left, right| meet_in(Setting::Any, left, right);
        assert!(meet(("a.go", ""), ("b_linux.go", "")));
        assert!(!meet(("a_windows.go", ""), ("b_linux.go", "")));
        assert!(!meet(("a_windows.go", ""), ("b.go", "!windows")));
        assert!(meet(("a_linux_test.go", ""), ("b.go", "unix")));
        assert!(!meet(("a_linux_amd64.go", ""), ("b_linux_arm64.go", "")));
        assert!(meet(("a_android.go", ""), ("b_linux.go", "")));
        assert!(!meet(("a.go", "cgo"), ("b.go", "!cgo && linux")));
        assert!(meet(("a.go", "cgo || go1.18"), ("b.go", "!cgo")));
        assert!(meet(("linux.go", ""), ("windows.go", "")));
        assert!(!meet(("a.go", "linux || darwin"), ("b.go", "!(unix)")));
        assert!(!meet(("a.go", ""), ("old.go", "!go1.18")));
        assert!(meet(("a.go", ""), ("b.go", "special")) && !meet_in(Setting::Default, ("a.go", ""), ("b.go", "special")));
        assert!(meet_in(Setting::Default, ("a.go", ""), ("b.go", "!special && linux")));
        assert!(meet(("a.go", "(broken"), ("b.go", "a && b && c && d && e && f && g && h && i && j")));
    }

    #[test]
    fn special_conditions() {
        assert!(Condition::of_file("gen.go", Some("ignore")).is_ignored());
        assert!(!Condition::of_file("gen.go", Some("!ignore")).is_ignored());
    }
}
