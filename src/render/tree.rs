//! A tree of folders as people read it: one line a folder or file, with branches.
//!
//! Must not know terminals. Invariant: with the colours taken away the text is the same, byte for byte.

use anstyle::{AnsiColor, Style};

use crate::query::tree::Tree;

use super::text::{clean, counted};

const FOLDER: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();

/// Draws a tree.
pub fn draw(tree: &Tree, color: bool) -> String {
    let mut page = Page { text: String::new(), color };
    let name = if tree.name.is_empty() { ".".to_owned() } else { clean(&tree.name) };
    page.node("", &name, tree);
    page.children(tree, "");
    page.text
}

struct Page {
    text: String,
    color: bool,
}

impl Page {
    fn children(&mut self, tree: &Tree, indent: &str) {
        let hidden = hidden(tree);
        for (position, child) in tree.children.iter().enumerate() {
            let is_last = position + 1 == tree.children.len() && hidden.is_none();
            let name = if child.files.is_some() { format!("{}/", clean(&child.name)) } else { clean(&child.name) };
            self.node(&format!("{indent}{}", if is_last { "└── " } else { "├── " }), &name, child);
            // A folder that is not opened says so by its counts.
            if !child.children.is_empty() {
                self.children(child, &format!("{indent}{}", if is_last { "    " } else { "│   " }));
            }
        }
        if let Some(hidden) = hidden {
            let line = format!("{indent}└── … {hidden}");
            self.push(FAINT, &line);
            self.text.push('\n');
        }
    }

    fn node(&mut self, branch: &str, name: &str, tree: &Tree) {
        self.push(FAINT, branch);
        if tree.files.is_some() {
            self.push(FOLDER, name)
        } else {
            self.text.push_str(name)
        }
        let mut said = Vec::new();
        said.extend(tree.files.map(|files| counted(files, "file")));
        if tree.definitions > 0 {
            said.push(counted(tree.definitions, "definition"));
        }
        said.extend(tree.language.as_deref().filter(|_| tree.files.is_some()).map(str::to_owned));
        if !said.is_empty() {
            self.push(FAINT, &format!("  {}", said.join(" · ")));
        }
        self.text.push('\n');
    }

    fn push(&mut self, style: Style, text: &str) {
        if self.color && !text.is_empty() {
            self.text.push_str(&format!("{style}{text}{style:#}"));
        } else {
            self.text.push_str(text);
        }
    }
}

/// Returns what of a folder that is opened is not shown; `None` where all is.
fn hidden(tree: &Tree) -> Option<String> {
    let mut said = Vec::new();
    if tree.hidden_folders > 0 {
        said.push(counted(tree.hidden_folders, "more folder"));
    }
    if tree.hidden_files > 0 {
        said.push(counted(tree.hidden_files, "more file"));
    }
    (!said.is_empty()).then(|| said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_and_counts() {
        let file = |name: &str, definitions| Tree { name: name.to_owned(), definitions, ..Tree::default() };
        let folder = |name: &str, children: Vec<Tree>, hidden_files| Tree {
            name: name.to_owned(),
            files: Some(children.len() as u64 + hidden_files),
            definitions: 7,
            language: Some("python".to_owned()),
            children,
            hidden_folders: 0,
            hidden_files,
        };
        let tree =
            folder("", vec![folder("app", vec![file("a.py", 6)], 2), folder("docs", Vec::new(), 1), file("x\u{7}.md", 0)], 0);
        let want = ".  3 files · 7 definitions · python\n\
                    ├── app/  3 files · 7 definitions · python\n\
                    │   ├── a.py  6 definitions\n\
                    │   └── … 2 more files\n\
                    ├── docs/  1 file · 7 definitions · python\n\
                    └── x\u{fffd}.md\n";
        assert_eq!(draw(&tree, false), want);
        let plain = anstream::adapter::strip_str(&draw(&tree, true)).to_string();
        assert_eq!(plain, want);
    }
}
