//! `exports` and `imports` of a package: which target a key has for who asks.
//!
//! Must not know which files there are. Invariant: conditions count in the order of the file, as Node and TypeScript read them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A target with everything it hangs on, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    Path(String),
    /// The first that is possible.
    Any(Vec<Targets>),
    By(Vec<(String, Targets)>),
    /// What is kept from others.
    Nothing,
}

/// The parts of a `package.json` whose order counts.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct Manifest {
    pub exports: Option<Targets>,
    pub imports: Option<Targets>,
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Targets;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a target")
    }

    fn visit_str<E>(self, text: &str) -> Result<Targets, E> {
        Ok(Targets::Path(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Targets, E> {
        Ok(Targets::Nothing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Targets, E> {
        Ok(Targets::Nothing)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Targets, E> {
        Ok(Targets::Nothing)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Targets, E> {
        Ok(Targets::Nothing)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Targets, E> {
        Ok(Targets::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Targets, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Ok(Targets::Any(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Targets, A::Error> {
        let mut entries: Vec<(String, Targets)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            // The last of several of one name counts, at the place of the first.
            match entries.iter().position(|(known, _)| *known == name) {
                Some(at) => entries[at].1 = map.next_value()?,
                None if name.is_empty() => {
                    map.next_value::<IgnoredAny>()?;
                }
                None => entries.push((name, map.next_value()?)),
            }
        }
        Ok(Targets::By(entries))
    }
}

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Who asks for a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<'a> {
    /// Whether declarations come before what runs: TypeScript asks.
    pub typed: bool,
    /// Whether by `require`, not by `import`.
    pub requires: bool,
    /// Whether what asks runs in Node, as far as its configuration says.
    pub node: bool,
    /// The conditions that the configuration adds.
    pub conditions: &'a [String],
}

impl Asker<'_> {
    fn holds(&self, condition: &str) -> bool {
        match condition {
            "default" => true,
            "import" => !self.requires,
            "require" => self.requires,
            "node" => self.node || self.is_custom(condition),
            _ => self.is_custom(condition) || (self.typed && is_typed(condition)),
        }
    }

    fn is_custom(&self, condition: &str) -> bool {
        self.conditions.iter().any(|custom| custom == condition)
    }
}

fn is_typed(condition: &str) -> bool {
    condition == "types" || condition.starts_with("types@")
}

/// What a key leads to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Whether the key is there for who asks, if only to say that nothing is given.
    pub decided: bool,
    /// The targets that count, the first first.
    pub sure: Vec<String>,
    /// Targets of conditions of which nobody said that they hold.
    pub perhaps: Vec<String>,
}

/// Returns the targets of a key of `exports` or `imports`.
pub(super) fn targets_of(map: &Targets, key: &str, asker: &Asker<'_>) -> Found {
    let entries = match map {
        Targets::By(entries) if entries.iter().any(|(name, _)| name.starts_with(['.', '#'])) => entries,
        whole if key == "." => return found(whole, asker, &|text| text.to_owned()),
        _ => return Found::default(),
    };
    if let Some((_, target)) = entries.iter().find(|(name, _)| name == key && !name.contains('*')) {
        return found(target, asker, &|text| text.to_owned());
    }
    // The pattern with the longest text before its star.
    let best = entries
        .iter()
        .filter_map(|(pattern, target)| {
            let (before, after) = match pattern.split_once('*') {
                Some(parts) => parts,
                None => (pattern.strip_suffix('/').map(|_| pattern.as_str())?, ""),
            };
            let middle = key.strip_prefix(before)?.strip_suffix(after)?;
            (!middle.is_empty()).then_some(((before.len(), pattern.len()), pattern.contains('*'), middle, target))
        })
        .max_by_key(|(length, ..)| *length);
    match best {
        Some((_, true, middle, target)) => found(target, asker, &|text| text.replace('*', middle)),
        Some((_, false, middle, target)) => found(target, asker, &|text| format!("{text}{middle}")),
        None => Found::default(),
    }
}

fn found(target: &Targets, asker: &Asker<'_>, write: &dyn Fn(&str) -> String) -> Found {
    let mut held = Vec::new();
    let decided = choose(target, asker, &mut held) || !held.is_empty();
    if held.is_empty() && decided {
        return Found { decided, ..Found::default() };
    }
    let (mut described, mut others) = (Vec::new(), Vec::new());
    rest(target, asker, (true, false), &mut described, &mut others);
    let mut sure: Vec<&str> = held;
    if !asker.typed && sure.len() > 1 {
        // Node takes the first and no other, whether its file is there or not.
        others.splice(0..0, sure.split_off(1));
    }
    // Where what is built is not there, what it is built from and what describes it are.
    sure.extend(described);
    let sure: Vec<String> = distinct(sure.into_iter().map(write));
    let perhaps = distinct(others.into_iter().map(write)).into_iter().filter(|path| !sure.contains(path)).collect();
    Found { decided, sure, perhaps }
}

fn distinct(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for path in paths {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Collects the targets whose conditions hold; returns whether nothing after them counts.
fn choose<'t>(target: &'t Targets, asker: &Asker<'_>, held: &mut Vec<&'t str>) -> bool {
    match target {
        Targets::Path(text) => {
            held.push(text);
            false
        }
        Targets::Nothing => true,
        Targets::Any(list) => {
            list.iter().for_each(|entry| {
                choose(entry, asker, held);
            });
            false
        }
        Targets::By(entries) => {
            entries.iter().filter(|(name, _)| asker.holds(name)).any(|(_, target)| choose(target, asker, held))
        }
    }
}

/// Collects every target: apart from the others those of what describes the package to who asks.
fn rest<'t>(
    target: &'t Targets,
    asker: &Asker<'_>,
    (holds, describes): (bool, bool),
    described: &mut Vec<&'t str>,
    others: &mut Vec<&'t str>,
) {
    match target {
        Targets::Path(text) if holds && describes => described.push(text),
        Targets::Path(text) => others.push(text),
        Targets::Nothing => {}
        Targets::Any(list) => list.iter().for_each(|entry| rest(entry, asker, (holds, describes), described, others)),
        Targets::By(entries) => {
            for (name, target) in entries {
                let tells = name == "source" || is_typed(name);
                rest(target, asker, (holds && (tells || asker.holds(name)), describes || tells), described, others);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(exports: &str, key: &str, (typed, requires): (bool, bool), expected: &[&str]) {
        let asker = Asker { typed, requires, node: true, conditions: &["own".to_owned()] };
        let found = targets_of(&serde_json::from_str(exports).expect("JSON"), key, &asker);
        assert_eq!(found.sure, expected, "{exports} {key}");
    }

    const IMPORT: (bool, bool) = (false, false);
    const REQUIRE: (bool, bool) = (false, true);
    const TYPED: (bool, bool) = (true, false);

    #[test]
    fn conditions_in_the_order_of_the_file() {
        check(r#""./a.js""#, ".", IMPORT, &["./a.js"]);
        check(r#"{"node": "./n.js", "default": "./b.js"}"#, ".", IMPORT, &["./n.js"]);
        check(r#"{"default": "./b.js", "node": "./n.js"}"#, ".", IMPORT, &["./b.js"]);
        check(r#"{"browser": "./b.js", "development": "./d.js", "default": "./n.js"}"#, ".", IMPORT, &["./n.js"]);
        check(r#"{"own": "./s.ts", "import": "./a.mjs", "deno": "./no.ts"}"#, ".", IMPORT, &["./s.ts"]);
        let both = r#"{"require": "./r.cjs", "import": "./i.mjs"}"#;
        check(both, ".", REQUIRE, &["./r.cjs"]);
        check(both, ".", IMPORT, &["./i.mjs"]);
        check(r#"{"node": {"require": "./r.cjs"}, "default": "./d.js"}"#, ".", IMPORT, &["./d.js"]);
        check(r#"{"node": null, "default": "./d.js"}"#, ".", IMPORT, &[]);
        check(r#"[{"browser": "./b.js"}, "./d.js"]"#, ".", IMPORT, &["./d.js"]);
    }

    #[test]
    fn types_come_first_for_typescript_only() {
        let target = r#"{"types": "./t.d.ts", "import": "./i.js", "default": "./d.js"}"#;
        check(target, ".", TYPED, &["./t.d.ts", "./i.js", "./d.js"]);
        check(target, ".", IMPORT, &["./i.js", "./t.d.ts"]);
    }

    #[test]
    fn keys_and_patterns() {
        check(r#"{".": "./a.js", "./*": "./dist/*.js", "./x/*": null}"#, "./x/y", IMPORT, &[]);
        check(r#"{"./*": "./dist/*.js"}"#, "./x/y", IMPORT, &["./dist/x/y.js"]);
        check(r#"{"./x/": "./dist/"}"#, "./x/y.js", IMPORT, &["./dist/y.js"]);
        check(r#"{".": "./a.js"}"#, "./b", IMPORT, &[]);
    }

    #[test]
    fn what_may_hold_is_no_proof() {
        let asker = Asker { typed: false, requires: true, node: true, conditions: &[] };
        let found =
            targets_of(&serde_json::from_str(r#"{"import": "./i.mjs", "browser": "./b.js"}"#).expect("JSON"), ".", &asker);
        assert_eq!(found, Found { decided: false, sure: vec![], perhaps: vec!["./i.mjs".to_owned(), "./b.js".to_owned()] });
    }
}
