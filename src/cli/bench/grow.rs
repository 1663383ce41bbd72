//! A tree of any size that looks like a program: packages of modules that import from each other, with classes, functions and tests.
//!
//! Must not be random. Invariant: the same number of files is always the same tree.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// Modules in a package.
const PACKAGE: usize = 40;

/// Makes a tree of so many Python files.
pub fn grow(root: &Path, files: usize) -> io::Result<()> {
    for file in 0..files {
        let (package, module) = (file / PACKAGE, file % PACKAGE);
        let folder = root.join(format!("area_{:03}/package_{package:05}", package / 50));
        if module == 0 {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("__init__.py"), "")?;
            let area = folder.parent().expect("a package stands in an area").join("__init__.py");
            fs::write(area, "")?;
        } else {
            fs::write(folder.join(format!("module_{module:02}.py")), module_text(package, module))?;
        }
    }
    Ok(())
}

fn module_text(package: usize, module: usize) -> String {
    let mut text = format!("\"\"\"Part {module} of package {package}.\"\"\"\n\n");
    // Mostly from the own package, sometimes from the one before, and all from the first.
    let near = |distance: usize| module.saturating_sub(distance).max(1);
    let mut imports = vec![(package, near(1)), (package, near(7))];
    if module.is_multiple_of(5) && package > 0 {
        imports.push((package - 1, near(3)));
    }
    if module.is_multiple_of(8) {
        imports.push((0, 1));
    }
    imports.retain(|place| *place != (package, module));
    imports.dedup();
    for (number, (package, module)) in imports.iter().enumerate() {
        let area = package / 50;
        let _ = writeln!(text, "from area_{area:03}.package_{package:05}.module_{module:02} import compute as compute_{number}");
    }
    let _ = write!(text, "\n\nclass Worker{module}:\n    \"\"\"Keeps a value and works on it.\"\"\"\n\n    limit = {module}\n\n");
    for method in 0..6 {
        let _ = write!(
            text,
            "    def step_{method}(self, value, *, scale=1):\n        result = value * scale + self.limit\n        if result > {method}:\n            \
             result = self.step_{}(result - 1)\n        return result\n\n",
            (method + 1) % 6
        );
    }
    let _ = write!(text, "\ndef compute(value):\n    worker = Worker{module}()\n    total = worker.step_0(value)\n");
    for number in 0..imports.len() {
        let _ = writeln!(text, "    total += compute_{number}(total)");
    }
    text.push_str("    return total\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_files_it_should() {
        let folder = tempfile::tempdir().expect("a folder");
        grow(folder.path(), 90).expect("made");
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).expect(path);
        assert!(read("area_000/package_00002/module_08.py").contains("from area_000.package_00000.module_01 import compute as"));
        assert_eq!(read("area_000/package_00002/__init__.py"), "");
        assert!(!folder.path().join("area_000/package_00002/module_10.py").exists());
    }
}
