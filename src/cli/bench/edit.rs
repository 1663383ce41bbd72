//! The edits that the benchmarks sync, in a file of any language: one statement more before a `return`, and one function more that others
//! may use.
//!
//! Must not touch the tree itself. Invariant: an edit of a body changes no declaration, only what a function does.

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

/// Returns the source with so many statements put into bodies, so that what stands below moves from run to run.
pub fn with_moved_body(path: &str, source: &str, run: usize) -> Option<String> {
    (0..=run % 3).try_fold(source.to_owned(), |text, _| with_body_edit(path, &text, run))
}

/// Returns the source with a function added at its end that other files may use; `None` for a language that is not known here.
pub fn with_export(path: &str, source: &str, run: usize) -> Option<String> {
    let function = match path.rsplit_once('.')?.1 {
        "py" => format!("\n\ndef exported_{run}():\n    return {run}\n"),
        "go" => format!("\nfunc Exported{run}() int {{\n\treturn {run}\n}}\n"),
        "rs" => format!("\npub fn exported_{run}() -> usize {{\n    {run}\n}}\n"),
        "ts" | "tsx" | "mts" => format!("\nexport function exported{run}() {{\n  return {run};\n}}\n"),
        "js" | "jsx" | "mjs" if source.lines().any(|line| line.starts_with("export ")) => {
            format!("\nexport function exported{run}() {{\n  return {run};\n}}\n")
        }
        "js" | "jsx" | "mjs" | "cjs" | "cts" => {
            format!("\nmodule.exports.exported{run} = function () {{\n  return {run};\n}};\n")
        }
        _ => return None,
    };
    Some(format!("{source}{function}"))
}

/// Returns the paths of up to `most` source files below a folder, evenly spread over all there are, with their text; `with_bodies` takes only
/// those whose bodies can be edited.
pub fn spread(root: &Path, suffix: &str, most: usize, with_bodies: bool) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    each_source(root, &mut |path, _| {
        if path.rsplit_once('.').is_some_and(|(_, own)| own == suffix)
            && let Ok(source) = fs::read_to_string(root.join(path))
            && (!with_bodies || with_body_edit(path, &source, 0).is_some())
        {
            found.push((path.to_owned(), source));
        }
    })?;
    found.sort();
    let (count, most) = (found.len(), most.min(found.len()));
    let mut chosen = (0..most).map(|at| at * count / most).peekable();
    Ok(found.into_iter().enumerate().filter(|(at, _)| chosen.next_if_eq(at).is_some()).map(|(_, file)| file).collect())
}

/// Returns the largest source file below a folder whose body can be edited, as a path below it; the first of equals by name.
pub fn choose(root: &Path) -> io::Result<Option<String>> {
    let mut largest: Option<(u64, String)> = None;
    each_source(root, &mut |path, size| {
        if largest.as_ref().is_none_or(|(most, kept)| (size, kept.as_str()) > (*most, path))
            && fs::read_to_string(root.join(path)).is_ok_and(|source| with_body_edit(path, &source, 0).is_some())
        {
            largest = Some((size, path.to_owned()));
        }
    })?;
    Ok(largest.map(|(_, path)| path))
}

/// Calls `found` with the path below the folder and the size of each file of the tree's own that is not too large.
fn each_source(root: &Path, found: &mut impl FnMut(&str, u64)) -> io::Result<()> {
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
            } else if metadata.is_file() && metadata.len() <= MAX_BYTES {
                found(&path, metadata.len());
            }
        }
    }
    Ok(())
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
    fn an_export_adds_a_function() {
        for (path, source, expected) in [
            ("a.py", "x = 1\n", "x = 1\n\n\ndef exported_7():\n    return 7\n"),
            ("a.go", "", "\nfunc Exported7() int {\n\treturn 7\n}\n"),
            ("a.rs", "", "\npub fn exported_7() -> usize {\n    7\n}\n"),
            ("a.ts", "", "\nexport function exported7() {\n  return 7;\n}\n"),
            ("a.js", "export const a = 1;\n", "export const a = 1;\n\nexport function exported7() {\n  return 7;\n}\n"),
            ("a.js", "", "\nmodule.exports.exported7 = function () {\n  return 7;\n};\n"),
        ] {
            assert_eq!(with_export(path, source, 7).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(with_export("a.md", "", 7), None);
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
