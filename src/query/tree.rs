//! The files of a generation as a tree of folders, as much of it as there is room for.
//!
//! Must not know how a tree is drawn. Invariant: counts are of all that lies below, shown or not; the same generation and bounds give the
//! same tree.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::Serialize;

use crate::model::PathPrefix;
use crate::store::{Generation, OutlinedFile, StoreError};

/// A folder or a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tree {
    /// The last part of its path; empty for the whole worktree.
    pub name: String,
    /// Files in and below it; null for a file.
    pub files: Option<u64>,
    pub definitions: u64,
    /// The language of a file, or of most files below a folder; null for text.
    pub language: Option<String>,
    /// Folders, then files, each by name.
    pub children: Vec<Tree>,
    /// Folders and files in it that are not shown.
    pub hidden_folders: u64,
    pub hidden_files: u64,
}

/// A folder while its contents are gathered.
#[derive(Default)]
struct Folder<'f> {
    folders: BTreeMap<&'f str, usize>,
    files: Vec<(&'f str, &'f OutlinedFile)>,
    count: u64,
    definitions: u64,
    languages: BTreeMap<&'f str, u64>,
}

/// Returns the tree below the prefix: folders up to `depth` levels, and at most `limit` folders and files, those nearer to the top and with
/// more in them first.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn tree(generation: &Generation, prefix: &PathPrefix, depth: u32, limit: usize) -> Result<Tree, StoreError> {
    Ok(grow(&generation.outline(prefix)?, prefix.as_str(), depth, limit))
}

fn grow(files: &[OutlinedFile], prefix: &str, depth: u32, limit: usize) -> Tree {
    let mut folders = vec![Folder::default()];
    for file in files {
        // A prefix may be the file itself.
        let below = file.path.strip_prefix(prefix).map_or(&*file.path, |rest| rest.trim_start_matches('/'));
        let below = if below.is_empty() { file.path.rsplit('/').next().unwrap_or_default() } else { below };
        let (above, name) = below.rsplit_once('/').map_or(("", below), |(above, name)| (above, name));
        let mut at = 0;
        count(&mut folders[at], file);
        for part in above.split('/').filter(|part| !part.is_empty()) {
            let next = folders.len();
            let found = *folders[at].folders.entry(part).or_insert(next);
            if found == next {
                folders.push(Folder::default());
            }
            at = found;
            count(&mut folders[at], file);
        }
        folders[at].files.push((name, file));
    }
    let shown = choose(&folders, depth, limit);
    let mut tree = build(&folders, &shown, 0);
    prefix.clone_into(&mut tree.name);
    tree
}

fn count<'f>(folder: &mut Folder<'f>, file: &'f OutlinedFile) {
    folder.count += 1;
    folder.definitions += file.definitions;
    if let Some(language) = &file.language {
        *folder.languages.entry(language).or_default() += 1;
    }
}

/// What of a folder is shown: places of folders, and positions of files.
#[derive(Default)]
struct Shown {
    folders: Vec<usize>,
    files: Vec<usize>,
}

/// Opens folders from the top, those with most files first, while there is room.
fn choose(folders: &[Folder<'_>], depth: u32, limit: usize) -> BTreeMap<usize, Shown> {
    let mut shown: BTreeMap<usize, Shown> = BTreeMap::new();
    let mut left = limit;
    let mut open = BinaryHeap::from([(Reverse(0), folders[0].count, Reverse(0))]);
    while let Some((Reverse(level), _, Reverse(at))) = open.pop() {
        if level >= depth || left == 0 {
            continue;
        }
        let folder = &folders[at];
        // What is below a level shares what is left of the room; each folder shows some of what it holds.
        let waiting = open.iter().filter(|(Reverse(other), ..)| *other == level).count();
        let mut room = if level == 0 { left } else { (left / (waiting + 1)).max(4).min(left) };
        let mut inner: Vec<(Reverse<u64>, &str, usize)> =
            folder.folders.iter().map(|(name, place)| (Reverse(folders[*place].count), *name, *place)).collect();
        inner.sort_unstable();
        let mut files: Vec<(Reverse<u64>, &str, usize)> =
            folder.files.iter().enumerate().map(|(place, (name, file))| (Reverse(file.definitions), *name, place)).collect();
        files.sort_unstable();
        let of_folder = shown.entry(at).or_default();
        for (_, _, place) in inner {
            if room == 0 {
                break;
            }
            (room, left) = (room - 1, left - 1);
            of_folder.folders.push(place);
            open.push((Reverse(level + 1), folders[place].count, Reverse(place)));
        }
        let few = room.min(files.len());
        of_folder.files.extend(files[..few].iter().map(|(_, _, place)| *place));
        left -= few;
    }
    shown
}

fn build(folders: &[Folder<'_>], shown: &BTreeMap<usize, Shown>, at: usize) -> Tree {
    let folder = &folders[at];
    let most = folder.languages.iter().max_by_key(|(name, count)| (**count, Reverse(**name)));
    let mut tree = Tree {
        name: String::new(),
        files: Some(folder.count),
        definitions: folder.definitions,
        language: most.map(|(name, _)| (*name).to_owned()),
        children: Vec::new(),
        hidden_folders: folder.folders.len() as u64,
        hidden_files: folder.files.len() as u64,
    };
    let Some(of_folder) = shown.get(&at) else { return tree };
    for (name, place) in &folder.folders {
        if of_folder.folders.contains(place) {
            tree.hidden_folders -= 1;
            tree.children.push(Tree { name: (*name).to_owned(), ..build(folders, shown, *place) });
        }
    }
    for (place, (name, file)) in folder.files.iter().enumerate() {
        if of_folder.files.contains(&place) {
            tree.hidden_files -= 1;
            tree.children.push(Tree {
                name: (*name).to_owned(),
                definitions: file.definitions,
                language: file.language.as_deref().map(str::to_owned),
                ..Tree::default()
            });
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, definitions: u64) -> OutlinedFile {
        let language = path.ends_with(".py").then(|| "python".into());
        OutlinedFile { path: path.into(), language, definitions }
    }

    fn show(tree: &Tree, indent: usize, text: &mut String) {
        let files = tree.files.map_or(String::new(), |files| format!("/ {files} files"));
        text.push_str(&format!("{:indent$}{}{files} {}", "", tree.name, tree.definitions));
        if tree.hidden_folders + tree.hidden_files > 0 {
            text.push_str(&format!(" hidden {}+{}", tree.hidden_folders, tree.hidden_files));
        }
        text.push('\n');
        tree.children.iter().for_each(|child| show(child, indent + 1, text));
    }

    #[track_caller]
    fn check(prefix: &str, depth: u32, limit: usize, want: &str) {
        let files = [
            file("README.md", 0),
            file("app/a.py", 5),
            file("app/b.py", 1),
            file("app/deep/er/x.py", 2),
            file("setup.py", 3),
            file("tests/t.py", 4),
        ];
        let below: Vec<_> = files.into_iter().filter(|file| prefix.is_empty() || file.path.starts_with(prefix)).collect();
        let mut text = String::new();
        show(&grow(&below, prefix, depth, limit), 0, &mut text);
        assert_eq!(text, want, "{prefix} {depth} {limit}");
    }

    #[test]
    fn as_deep_and_as_much_as_there_is_room() {
        let whole = "/ 6 files 15\n app/ 3 files 8\n  deep/ 1 files 2\n   er/ 1 files 2\n    x.py 2\n  a.py 5\n  b.py 1\n \
                     tests/ 1 files 4\n  t.py 4\n README.md 0\n setup.py 3\n";
        check("", 9, 99, whole);
        check("", 1, 99, "/ 6 files 15\n app/ 3 files 8 hidden 1+2\n tests/ 1 files 4 hidden 0+1\n README.md 0\n setup.py 3\n");
        check("", 9, 3, "/ 6 files 15 hidden 0+1\n app/ 3 files 8 hidden 1+2\n tests/ 1 files 4 hidden 0+1\n setup.py 3\n");
        check("app", 1, 9, "app/ 3 files 8\n deep/ 1 files 2 hidden 1+0\n a.py 5\n b.py 1\n");
        check("app/a.py", 1, 9, "app/a.py/ 1 files 5\n a.py 5\n");
    }
}
