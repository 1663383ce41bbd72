//! A marked block in a script of a shell, added and taken out again.
//!
//! Must not know Git or files. Invariant: the block comes first, so that nothing in the script can keep it from being run, and it changes
//! neither the script's input nor how it ends.

use super::{Left, Problem};

/// A block of lines in a script.
#[derive(Clone, Debug)]
pub struct Block {
    /// What it runs, as a line of a shell.
    pub command: String,
    /// The word that begins `command`.
    pub program: String,
}

const OPEN: &str = "# >>> sextant >>>";
const CLOSE: &str = "# <<< sextant <<<\n";
const SHELL: &str = "#!/bin/sh\n";
/// Shells that read the block.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"];

impl Block {
    /// Writes the block; `subject` is what was written with it.
    fn text(&self, subject: &str) -> String {
        let Self { command, program } = self;
        // In the background, for nobody is to wait for it, and apart from the input that Git gives to the script.
        format!(
            "{OPEN} this {subject} was written by `sextant install git`; `sextant uninstall git` removes it\n\
             if command -v {program} >/dev/null 2>&1; then {command} \"$@\" </dev/null >/dev/null 2>&1 & fi\n{CLOSE}"
        )
    }

    /// Returns the text with the block in it; `None` when it is there already. Without a text there is no file yet.
    ///
    /// # Errors
    /// When the script is for another program than a shell.
    pub fn add(&self, text: Option<&str>) -> Result<Option<String>, Problem> {
        let Some(text) = text else { return Ok(Some(format!("{SHELL}{}", self.text("file")))) };
        if let Some((start, end, is_whole)) = find(text) {
            let block = self.text(if is_whole { "file" } else { "block" });
            let added = format!("{}{block}{}", &text[..start], &text[end..]);
            return Ok((added != text).then_some(added));
        }
        let head = match text.split_once('\n') {
            Some((line, _)) if line.starts_with("#!") => line.len() + 1,
            None if text.starts_with("#!") => text.len(),
            _ => 0,
        };
        let line = text[..head].trim_end();
        if text.contains('\0') || (head > 0 && !is_shell(line)) {
            return Err(Problem::NoShell { line: line.chars().take(80).collect(), call: self.command.clone() });
        }
        let gap = if head > 0 && !text[..head].ends_with('\n') { "\n" } else { "" };
        Ok(Some(format!("{}{gap}{}{}", &text[..head], self.text("block"), &text[head..])))
    }

    /// Takes the block out of a text.
    pub fn take(&self, text: &str) -> Left {
        let Some((start, end, is_whole)) = find(text) else { return Left::Same };
        let left = format!("{}{}", &text[..start], &text[end..]);
        if is_whole && left == SHELL { Left::Nothing } else { Left::Text(left) }
    }
}

/// Returns where the block begins and ends, and whether the whole file was written with it.
fn find(text: &str) -> Option<(usize, usize, bool)> {
    let start = text.match_indices(OPEN).map(|(at, _)| at).find(|at| *at == 0 || text[..*at].ends_with('\n'))?;
    let end = start + text[start..].find(CLOSE)? + CLOSE.len();
    Some((start, end, text[start + OPEN.len()..].starts_with(" this file ")))
}

/// Returns whether the first line of a script names a shell that reads the block.
fn is_shell(line: &str) -> bool {
    let words = line.trim_start_matches("#!").split_whitespace();
    let mut names = words.map(|word| word.rsplit('/').next().unwrap_or_default()).filter(|name| !name.starts_with('-'));
    let name = names.next().unwrap_or_default();
    let name = if name == "env" { names.find(|name| !name.contains('=')).unwrap_or_default() } else { name };
    SHELLS.contains(&name)
}
