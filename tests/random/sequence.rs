//! A story that a seed decides: the files there are at first, and the edits that follow.
//!
//! Must not touch the disk. Invariant: every action stands by itself, so that a story with some of them left out can be played, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::dice::Dice;
use super::python;

/// One step that changes the world. An action whose object is not there does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Write(String, Vec<u8>),
    Delete(String),
    Move(String, String),
    /// Git with these arguments; what it says is of no interest.
    Git(&'static [&'static str]),
    /// The next sync comes from a process that remembers nothing.
    Restart,
}

/// What happens between one sync and the next.
#[derive(Clone, Debug)]
pub struct Edit {
    pub label: &'static str,
    pub actions: Vec<Action>,
}

#[derive(Clone, Debug)]
pub struct Sequence {
    pub seed: u64,
    /// Whether the tree is a Git repository, with everything there is at first committed.
    pub git: bool,
    pub files: BTreeMap<String, Vec<u8>>,
    pub edits: Vec<Edit>,
}

/// One file as the generator thinks of it.
#[derive(Clone, Debug, Default)]
struct Source {
    blocks: Vec<String>,
    crlf: bool,
    bom: bool,
    open_end: bool,
}

impl Source {
    fn bytes(&self) -> Vec<u8> {
        let mut text = self.blocks.concat();
        if self.open_end {
            text.truncate(text.trim_end_matches('\n').len());
        }
        if self.crlf {
            text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        if self.bom {
            text.insert(0, '\u{feff}');
        }
        text.into_bytes()
    }
}

type Tree = BTreeMap<String, Source>;

const PATHS: &[&str] = &[
    "a.py",
    "b.py",
    "c.py",
    "pkg/__init__.py",
    "pkg/a.py",
    "pkg/b.py",
    "pkg/sub/__init__.py",
    "pkg/sub/c.py",
    "ns/a.py",
    "lib/d.py",
    "lib/pkg/a.py",
    "src/a.py",
    "src/pkg/b.py",
    "a.pyi",
    "pkg/a.pyi",
    "a/__init__.py",
    "b/__init__.py",
    "b/a.py",
    "pkg/A.py",
    "tests/test_a.py",
    "tests/conftest.py",
    "test_b.py",
    "conftest.py",
];
/// Files that say something by being there.
const MARKERS: &[(&str, &str)] = &[
    ("pyproject.toml", "[project]\nname = \"a\"\n"),
    ("lib/pyproject.toml", "[project]\nname = \"d\"\n"),
    ("src/setup.py", "f()\n"),
    ("pkg/setup.cfg", "[metadata]\n"),
    ("notes.md", "# f\n\nSee `a.f`.\n"),
];

/// Makes the story of a seed, with this many edits.
pub fn make(seed: u64, edits: usize) -> Sequence {
    let mut dice = Dice::new(seed);
    let git = dice.chance(30);
    let mut world =
        World { tree: Tree::new(), dice, history: Vec::new(), actions: Vec::new(), branches: BTreeMap::new(), stash: None };
    for _ in 0..4 + world.dice.below(6) {
        let path = world.dice.pick(PATHS);
        let source = world.source();
        world.tree.insert(path.to_owned(), source);
    }
    if world.dice.chance(30) {
        world.mark();
    }
    world.actions.clear();
    let files = world.tree.iter().map(|(path, source)| (path.clone(), source.bytes())).collect();
    world.branches.insert("main", world.tree.clone());
    let edits = (0..edits).map(|_| world.edit(git)).collect();
    Sequence { seed, git, files, edits }
}

/// What the generator knows while it makes a story.
struct World {
    tree: Tree,
    dice: Dice,
    /// What files were before they were changed.
    history: Vec<(String, Source)>,
    actions: Vec<Action>,
    /// The trees of the commits at the tips; the branch that is checked out is `main` or `side`.
    branches: BTreeMap<&'static str, Tree>,
    stash: Option<Tree>,
}

impl World {
    fn source(&mut self) -> Source {
        let blocks = (0..1 + self.dice.below(6)).map(|_| python::block(&mut self.dice)).collect();
        Source { blocks, crlf: self.dice.chance(5), bom: self.dice.chance(5), open_end: self.dice.chance(5) }
    }

    /// Returns the path of some file, of Python mostly.
    fn some(&mut self) -> Option<String> {
        let at = self.dice.below(self.tree.len());
        self.tree.keys().nth(at).cloned()
    }

    fn write(&mut self, path: &str, source: Source) {
        self.actions.push(Action::Write(path.to_owned(), source.bytes()));
        if let Some(before) = self.tree.insert(path.to_owned(), source) {
            self.history.push((path.to_owned(), before));
        }
    }

    fn delete(&mut self, path: &str) {
        if let Some(before) = self.tree.remove(path) {
            self.history.push((path.to_owned(), before));
        }
        self.actions.push(Action::Delete(path.to_owned()));
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(source) = self.tree.remove(from) {
            if let Some(before) = self.tree.insert(to.to_owned(), source) {
                self.history.push((to.to_owned(), before));
            }
            self.actions.push(Action::Move(from.to_owned(), to.to_owned()));
        }
    }

    fn mark(&mut self) {
        let (path, text) = self.dice.pick(MARKERS);
        if self.tree.contains_key(path) {
            self.delete(path);
        } else {
            self.write(path, Source { blocks: vec![text.to_owned()], ..Source::default() });
        }
    }

    /// Changes one file, or makes one when there is none.
    fn change(&mut self, how: impl FnOnce(&mut Dice, &mut Source)) {
        let path = self.some().unwrap_or_else(|| "a.py".to_owned());
        let mut source = self.tree.get(&path).cloned().unwrap_or_default();
        how(&mut self.dice, &mut source);
        self.write(&path, source);
    }

    fn edit(&mut self, git: bool) -> Edit {
        let mut label = self.act(git);
        while self.dice.chance(15) {
            self.act(git);
            label = "several at once";
        }
        if self.dice.chance(12) {
            self.actions.push(Action::Restart);
        }
        Edit { label, actions: std::mem::take(&mut self.actions) }
    }

    fn act(&mut self, git: bool) -> &'static str {
        if let Some(stashed) = self.stash.take() {
            // Nothing comes in between, so that it always fits.
            self.tree = stashed;
            self.actions.push(Action::Git(&["stash", "pop", "--quiet"]));
            return "stash pop";
        }
        if git && self.dice.chance(20) {
            return self.git();
        }
        match self.dice.below(100) {
            0..=13 => {
                self.change(|dice, source| {
                    if source.blocks.is_empty() {
                        source.blocks.push(python::function(dice));
                    }
                    let at = dice.below(source.blocks.len());
                    source.blocks[at] = python::with_other_body(dice, &source.blocks[at]);
                });
                "another body"
            }
            14..=25 => {
                self.change(|dice, source| {
                    if !source.blocks.is_empty() {
                        let at = dice.below(source.blocks.len());
                        source.blocks[at] = python::renamed(dice, &source.blocks[at]);
                    }
                });
                "a rename in one block"
            }
            26..=35 => {
                self.change(|dice, source| {
                    let at = dice.below(source.blocks.len() + 1);
                    source.blocks.insert(at, python::block(dice));
                });
                "a new block"
            }
            36..=43 => {
                self.change(|dice, source| {
                    if !source.blocks.is_empty() {
                        source.blocks.remove(dice.below(source.blocks.len()));
                    }
                });
                "a block less"
            }
            44..=49 => {
                self.change(|dice, source| {
                    let at = dice.below(source.blocks.len() + 1);
                    source.blocks.insert(at, python::import_block(dice));
                });
                "a new import"
            }
            50..=53 => {
                self.change(|dice, source| {
                    let made = python::all(dice);
                    match source.blocks.iter().position(|block| block.starts_with("__all__")) {
                        Some(at) => source.blocks[at] = made,
                        None => source.blocks.push(made),
                    }
                });
                "another __all__"
            }
            54..=57 => {
                self.change(|dice, source| source.blocks.push(python::rebinding(dice)));
                "a rebinding"
            }
            58..=61 => {
                self.change(|dice, source| source.blocks.push(python::conditional(dice)));
                "a condition"
            }
            62..=65 => {
                self.change(|dice, source| match source.blocks.iter().position(|block| block.starts_with("class ")) {
                    Some(at) => source.blocks[at] = python::class(dice),
                    None => source.blocks.push(python::class(dice)),
                });
                "another class"
            }
            66..=69 => {
                self.change(|dice, source| {
                    let at = dice.below(source.blocks.len() + 1);
                    source.blocks.insert(at, python::broken(dice));
                });
                "a syntax error"
            }
            70..=76 => {
                if let Some(at) = (!self.history.is_empty()).then(|| self.dice.below(self.history.len())) {
                    let (path, source) = self.history[at].clone();
                    self.write(&path, source);
                }
                "an older version"
            }
            77..=82 => {
                let path = self.dice.pick(PATHS);
                let source = self.source();
                self.write(path, source);
                "a new file"
            }
            83..=87 => {
                if let Some(path) = self.some() {
                    self.delete(&path);
                }
                "a file less"
            }
            88..=91 => {
                if let Some(path) = self.some() {
                    let to = self.dice.pick(PATHS);
                    if to != path {
                        self.rename(&path, to);
                    }
                }
                "a file moved"
            }
            92 | 93 => {
                if let Some(path) = self.some() {
                    match (path.strip_suffix("/__init__.py"), path.strip_suffix(".py")) {
                        (Some(package), _) => self.rename(&path, &format!("{package}.py")),
                        (None, Some(module)) => self.rename(&path, &format!("{module}/__init__.py")),
                        (None, None) => {}
                    }
                }
                "a module as a package"
            }
            94 => {
                let (from, to) = self.dice.pick(&[("pkg/", "out/"), ("out/", "pkg/"), ("lib/", "ns/"), ("pkg/sub/", "pkg/")]);
                let paths: Vec<String> = self.tree.keys().filter(|path| path.starts_with(from)).cloned().collect();
                for path in paths {
                    self.rename(&path, &format!("{to}{}", &path[from.len()..]));
                }
                "a folder moved"
            }
            95 | 96 => {
                self.mark();
                "a marker"
            }
            97 => {
                self.change(|_, source| source.crlf = !source.crlf);
                "other line ends"
            }
            98 => {
                self.change(|dice, source| {
                    source.bom ^= dice.chance(50);
                    source.open_end ^= dice.chance(50);
                });
                "another start or end"
            }
            _ => {
                if let Some(path) = self.some() {
                    let other = path.strip_prefix("pkg/a").map_or_else(|| "pkg/a.py".to_owned(), |rest| format!("pkg/A{rest}"));
                    self.rename(&path, &other);
                }
                "another case"
            }
        }
    }

    /// Does something that only a repository can. The branch checked out takes part in every one of them.
    fn git(&mut self) -> &'static str {
        match self.dice.below(6) {
            0 | 1 => {
                self.actions.push(Action::Git(&["add", "--all"]));
                self.actions.push(Action::Git(&["commit", "--quiet", "--allow-empty", "--message", "more"]));
                self.branches.insert("main", self.tree.clone());
                "a commit"
            }
            2 => {
                // Everything is committed on a branch of its own, and the tree goes back to what `main` has.
                self.actions.push(Action::Git(&["checkout", "--quiet", "-B", "side"]));
                self.actions.push(Action::Git(&["add", "--all"]));
                self.actions.push(Action::Git(&["commit", "--quiet", "--allow-empty", "--message", "side"]));
                self.actions.push(Action::Git(&["checkout", "--quiet", "main"]));
                self.branches.insert("side", self.tree.clone());
                self.tree = self.branches["main"].clone();
                "a branch left"
            }
            3 => {
                self.actions.push(Action::Git(&["add", "--all"]));
                self.actions.push(Action::Git(&["commit", "--quiet", "--amend", "--allow-empty", "--message", "amended"]));
                self.branches.insert("main", self.tree.clone());
                "an amended commit"
            }
            4 => {
                self.actions.push(Action::Git(&["stash", "--include-untracked", "--quiet"]));
                let before = std::mem::replace(&mut self.tree, self.branches["main"].clone());
                self.stash = Some(before);
                "stash"
            }
            _ => {
                self.actions.push(Action::Git(&["add", "--all"]));
                "staged"
            }
        }
    }
}

impl Sequence {
    /// Tells the story to people.
    pub fn tell(&self) -> String {
        let mut text = format!("seed {}{}\n", self.seed, if self.git { ", a Git repository" } else { "" });
        let file = |text: &mut String, path: &str, bytes: &[u8]| {
            let _ = writeln!(text, "//- {path}");
            for line in String::from_utf8_lossy(bytes).split_inclusive('\n') {
                let _ =
                    writeln!(text, "    {}", line.strip_suffix('\n').map_or_else(|| escaped(line) + " (no newline)", escaped));
            }
        };
        for (path, bytes) in &self.files {
            file(&mut text, path, bytes);
        }
        for (index, edit) in self.edits.iter().enumerate() {
            let _ = writeln!(text, "=== {}: {}", index + 1, edit.label);
            for action in &edit.actions {
                match action {
                    Action::Write(path, bytes) => file(&mut text, path, bytes),
                    Action::Delete(path) => drop(writeln!(text, "delete {path}")),
                    Action::Move(from, to) => drop(writeln!(text, "move {from} {to}")),
                    Action::Git(arguments) => drop(writeln!(text, "git {}", arguments.join(" "))),
                    Action::Restart => text.push_str("restart\n"),
                }
            }
        }
        text
    }
}

/// Shows what cannot be seen in a line.
fn escaped(line: &str) -> String {
    let odd = |character: char| character.is_control() || matches!(character, '\u{feff}' | '\u{2028}' | '\u{2029}');
    line.chars()
        .map(|character| if odd(character) { character.escape_default().to_string() } else { character.to_string() })
        .collect()
}
