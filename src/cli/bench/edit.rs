//! The edit of a body that the benchmark syncs: one statement more before a `return`, in a file of any language.
//!
//! Must not touch the tree itself. Invariant: an edit changes no declaration, only what a function does.

use std::fs;
use std::io;
use std::path::Path;

/// Files larger than this are no measure of an edit.
const MAX_BYTES: u64 = 256 << 10;

/// Folders that hold no source of the tree's own.
const FOREIGN: [&str; 6] = ["node_modules", "target", "vendor", "dist", "build", "third_party"];

/// Returns the source with a statement put before the first `return` that stands alone on its line inside a body; `None` when there is none,
/// or the suffix of `path` is of no language that is known here.
pub fn with_body_edit(path: &str, source: &str, run: usize) -> Option<String> {
    let statement = match path.rsplit_once('.')?.1 {
        "py" => format!("edited = {run}"),
        "go" => format!("_ = {run}"),
        "rs" => format!("let _ = {run};"),
        "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => format!("void {run};"),
        _ => return None,
    };
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if indent > 0 && line[indent..].starts_with("return ") {
            return Some(format!("{}{}{statement}\n{}", &source[..at], &line[..indent], &source[at..]));
        }
        at += line.len();
    }
    None
}

/// Returns the largest source file below a folder whose body can be edited, as a path below it; the first of equals by name.
pub fn choose(root: &Path) -> io::Result<Option<String>> {
    let mut largest: Option<(u64, String)> = None;
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let mut entries = fs::read_dir(root.join(&folder))?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let metadata = entry.metadata()?;
            if metadata.is_dir() && !FOREIGN.contains(&name) {
                open.push(path);
            } else if metadata.is_file()
                && metadata.len() <= MAX_BYTES
                && largest.as_ref().is_none_or(|(size, kept)| (metadata.len(), kept) > (*size, &path))
                && fs::read_to_string(entry.path()).is_ok_and(|source| with_body_edit(&path, &source, 0).is_some())
            {
                largest = Some((metadata.len(), path));
            }
        }
    }
    Ok(largest.map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_edit_changes_a_body() {
        for (path, source, expected) in [
            ("a.py", "def f():\n    return 1\n", Some("def f():\n    edited = 7\n    return 1\n")),
            ("a.go", "func f() int {\n\treturn 1\n}\n", Some("func f() int {\n\t_ = 7\n\treturn 1\n}\n")),
            ("a.rs", "fn f() -> u8 {\n    return 1\n}\n", Some("fn f() -> u8 {\n    let _ = 7;\n    return 1\n}\n")),
            ("a.ts", "function f() {\n  return 1;\n}\n", Some("function f() {\n  void 7;\n  return 1;\n}\n")),
            ("a.md", "text\n  return 1\n", None),
            ("a.py", "x = 1\n", None),
        ] {
            assert_eq!(with_body_edit(path, source, 7).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn the_largest_file_with_a_body_is_chosen() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("below the folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        assert_eq!(choose(folder.path()).expect("readable"), None);
        write("large.md", &"return \n".repeat(100));
        write("node_modules/a.js", &format!("function f() {{\n  return 1\n}}{}", " ".repeat(100)));
        write("src/a.js", "function f() {\n  return 1\n}");
        write("src/b.js", "let unbelievably_long_but_without_any_body = 1;");
        assert_eq!(choose(folder.path()).expect("readable").as_deref(), Some("src/a.js"));
    }
}
