//! A story that a seed decides: the files there are at first, and the edits that follow.
//!
//! Must not touch the disk. Invariant: every action stands by itself, so that a story with some of them left out can be played, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::dice::Dice;
use super::speech::{self, Speech};

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
    /// The languages it is told in ([`speech::cast`]).
    pub cast: &'static str,
    pub seed: u64,
    /// Whether each edit meets a process that remembers nothing.
    pub fresh: bool,
    /// Whether the tree is a Git repository, with everything there is at first committed.
    pub git: bool,
    pub files: BTreeMap<String, Vec<u8>>,
    pub edits: Vec<Edit>,
}

/// One file as the generator thinks of it.
#[derive(Clone, Debug, Default)]
struct Source {
    /// None for what configures.
    speech: Option<&'static Speech>,
    blocks: Vec<String>,
    crlf: bool,
    bom: bool,
    open_end: bool,
}

impl Source {
    fn bytes(&self) -> Vec<u8> {
        let mut blocks: Vec<&str> = self.blocks.iter().map(String::as_str).collect();
        blocks.sort_by_key(|block| self.speech.map_or(0, |speech| (speech.rank)(block)));
        let mut text = blocks.concat();
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

/// Makes the story of a seed in the languages of a cast, with this many edits.
pub fn make(cast: &'static str, seed: u64, edits: usize) -> Sequence {
    let mut dice = Dice::new(seed);
    let git = dice.chance(30);
    let speeches = speech::cast(cast).expect("a cast that the table of languages has");
    let mut world = World {
        speeches,
        tree: Tree::new(),
        dice,
        history: Vec::new(),
        actions: Vec::new(),
        branches: BTreeMap::new(),
        stash: None,
    };
    for _ in 0..4 + world.dice.below(6) {
        let (path, source) = world.new_file();
        world.tree.insert(path.to_owned(), source);
    }
    for speech in speeches {
        if speech.relies_on_configuration {
            (0..world.dice.below(4)).for_each(|_| world.configure(speech));
        } else if world.dice.chance(30) {
            world.configure(speech);
        }
    }
    world.actions.clear();
    world.history.clear();
    let files = world.tree.iter().map(|(path, source)| (path.clone(), source.bytes())).collect();
    world.branches.insert("main", world.tree.clone());
    let edits = (0..edits).map(|_| world.edit(git)).collect();
    Sequence { cast, seed, fresh: false, git, files, edits }
}

/// What the generator knows while it makes a story.
struct World {
    speeches: &'static [&'static Speech],
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
    fn speech(&mut self) -> &'static Speech {
        self.dice.pick(self.speeches)
    }

    fn new_file(&mut self) -> (&'static str, Source) {
        let speech = self.speech();
        let path = self.dice.pick(speech.paths);
        let head: Vec<String> = speech.head.map(|head| head(&mut self.dice, path)).into_iter().collect();
        let blocks = (0..1 + self.dice.below(6)).map(|_| (speech.block)(&mut self.dice, path));
        let blocks = head.into_iter().chain(blocks.collect::<Vec<_>>()).collect();
        let (crlf, bom, open_end) = (self.dice.chance(5), self.dice.chance(5), self.dice.chance(5));
        (path, Source { speech: Some(speech), blocks, crlf, bom, open_end })
    }

    /// Returns the path of some file, of a language mostly.
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

    /// Writes, rewrites or removes a file that configures.
    fn configure(&mut self, speech: &'static Speech) {
        let (path, texts) = self.dice.pick(speech.configuration);
        if self.tree.contains_key(path) && (texts.len() == 1 || self.dice.chance(25)) {
            self.delete(path);
        } else {
            let text = self.dice.pick(texts);
            self.write(path, Source { blocks: vec![text.to_owned()], ..Source::default() });
        }
    }

    /// Changes one file of a language, or makes one when there is none.
    fn change(&mut self, how: impl FnOnce(&mut Dice, &'static Speech, &str, &mut Vec<String>)) {
        let of_languages: Vec<&String> =
            self.tree.iter().filter(|(_, source)| source.speech.is_some()).map(|file| file.0).collect();
        let (path, mut source) = match of_languages.is_empty() {
            true => {
                let (path, source) = self.new_file();
                (path.to_owned(), source)
            }
            false => {
                let path = of_languages[self.dice.below(of_languages.len())].clone();
                let source = self.tree[&path].clone();
                (path, source)
            }
        };
        let speech = source.speech.expect("only files of a language were asked for");
        how(&mut self.dice, speech, &path, &mut source.blocks);
        self.write(&path, source);
    }

    /// Changes how the bytes of one file stand for its text.
    fn change_form(&mut self, how: impl FnOnce(&mut Dice, &mut Source)) {
        if let Some(path) = self.some() {
            let mut source = self.tree[&path].clone();
            how(&mut self.dice, &mut source);
            self.write(&path, source);
        }
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
                self.change(|dice, speech, path, blocks| {
                    if blocks.is_empty() {
                        blocks.push((speech.class)(dice, path));
                    }
                    let at = dice.below(blocks.len());
                    blocks[at] = speech.with_other_body(dice, &blocks[at]);
                });
                "another body"
            }
            14..=25 => {
                self.change(|dice, speech, _, blocks| {
                    if !blocks.is_empty() {
                        let at = dice.below(blocks.len());
                        blocks[at] = speech.renamed(dice, &blocks[at]);
                    }
                });
                "a rename in one block"
            }
            26..=34 => {
                self.change(|dice, speech, path, blocks| {
                    let at = dice.below(blocks.len() + 1);
                    blocks.insert(at, (speech.block)(dice, path));
                });
                "a new block"
            }
            35..=41 => {
                self.change(|dice, _, _, blocks| {
                    if !blocks.is_empty() {
                        blocks.remove(dice.below(blocks.len()));
                    }
                });
                "a block less"
            }
            42..=47 => {
                self.change(|dice, speech, path, blocks| {
                    let at = dice.below(blocks.len() + 1);
                    blocks.insert(at, (speech.import)(dice, path));
                });
                "a new import"
            }
            48..=51 => {
                self.change(|dice, speech, path, blocks| {
                    let made = (speech.exports)(dice, path);
                    put(blocks, speech.exports_begin, made);
                });
                "other exports"
            }
            52..=55 => {
                self.change(|dice, speech, path, blocks| blocks.push((speech.rebinding)(dice, path)));
                "a rebinding"
            }
            56..=58 => {
                self.change(|dice, speech, path, blocks| blocks.push((speech.conditional)(dice, path)));
                "a condition"
            }
            59..=62 => {
                self.change(|dice, speech, path, blocks| {
                    let made = (speech.class)(dice, path);
                    put(blocks, speech.class_begin, made);
                });
                "another class"
            }
            63..=65 => {
                self.change(|dice, speech, path, blocks| {
                    let at = dice.below(blocks.len() + 1);
                    blocks.insert(at, (speech.broken)(dice, path));
                });
                "a syntax error"
            }
            66..=72 => {
                if let Some(at) = (!self.history.is_empty()).then(|| self.dice.below(self.history.len())) {
                    let (path, source) = self.history[at].clone();
                    self.write(&path, source);
                }
                "an older version"
            }
            73..=78 => {
                let (path, source) = self.new_file();
                self.write(path, source);
                "a new file"
            }
            79..=82 => {
                if let Some(path) = self.some() {
                    self.delete(&path);
                }
                "a file less"
            }
            83..=86 => {
                if let Some(path) = self.some() {
                    let to = self.speech();
                    let to = self.dice.pick(to.paths);
                    if to != path {
                        self.rename(&path, to);
                    }
                }
                "a file moved"
            }
            87 | 88 => {
                if let Some(path) = self.some() {
                    let twin = self.speeches.iter().find(|speech| speech.speaks(&path)).and_then(|speech| (speech.twin)(&path));
                    if let Some(twin) = twin {
                        self.rename(&path, &twin);
                    }
                }
                "a module in another form"
            }
            89 => {
                let speech = self.speech();
                let (from, to) = self.dice.pick(speech.folders);
                let paths: Vec<String> = self.tree.keys().filter(|path| path.starts_with(from)).cloned().collect();
                for path in paths {
                    self.rename(&path, &format!("{to}{}", &path[from.len()..]));
                }
                "a folder moved"
            }
            90..=96 => {
                let speech = self.speech();
                self.configure(speech);
                "another configuration"
            }
            97 => {
                self.change_form(|_, source| source.crlf = !source.crlf);
                "other line ends"
            }
            98 => {
                self.change_form(|dice, source| {
                    source.bom ^= dice.chance(50);
                    source.open_end ^= dice.chance(50);
                });
                "another start or end"
            }
            _ => {
                if let Some(path) = self.some() {
                    let speech = self.speech();
                    let suffix = speech.suffixes[0];
                    let other =
                        path.strip_prefix("pkg/a").map_or_else(|| format!("pkg/a{suffix}"), |rest| format!("pkg/A{rest}"));
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

/// Puts the block in the place of the first that begins alike, or at the end.
fn put(blocks: &mut Vec<String>, begin: &str, made: String) {
    match blocks.iter().position(|block| block.starts_with(begin)) {
        Some(at) => blocks[at] = made,
        None => blocks.push(made),
    }
}

impl Sequence {
    /// Tells the story to people.
    pub fn tell(&self) -> String {
        let mut text = format!("seed {} in {}{}\n", self.seed, self.cast, if self.git { ", a Git repository" } else { "" });
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
