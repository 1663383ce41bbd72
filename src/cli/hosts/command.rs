//! The command that hosts are given to run: this program, by its name or by its path.
//!
//! Must not know hosts. Invariant: what is written can be told again as this program's, so that nothing of others is ever taken for it.

use std::ffi::OsStr;
use std::path::Path;

use super::HostError;

/// How this program is named in the files of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name where the search path leads to this very program, else its absolute path.
    pub word: String,
    pub is_on_path: bool,
}

const NAME: &str = "sextant";

impl Program {
    /// Finds out how to name the program at `this` on a machine that searches programs in the directories of `search`.
    ///
    /// # Errors
    /// When it has to be named by a path that is not UTF-8, which no host's file can hold.
    pub fn find(this: &Path, search: Option<&OsStr>) -> Result<Self, HostError> {
        let same = |path: &Path| path.canonicalize().ok().zip(this.canonicalize().ok()).is_some_and(|(one, two)| one == two);
        let directories = search.map(|search| std::env::split_paths(search).collect::<Vec<_>>()).unwrap_or_default();
        let name = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
        // Hosts run in other directories than this one.
        let first = directories.iter().filter(|directory| directory.is_absolute()).map(|directory| directory.join(&name));
        if first.into_iter().find(|path| path.is_file()).is_some_and(|path| same(&path)) {
            return Ok(Self { word: NAME.to_owned(), is_on_path: true });
        }
        let word = this.to_str().ok_or(HostError::ProgramPath)?.to_owned();
        Ok(Self { word, is_on_path: false })
    }

    /// Returns a line of a shell that runs the program with these words, which must be plain ones.
    pub fn line(&self, words: &str) -> String {
        let program = shlex::try_quote(&self.word).map_or_else(|_| self.word.clone(), |quoted| quoted.into_owned());
        format!("{program} {words}")
    }
}

/// Returns whether the first word of a command is this program, be it another copy of it.
pub fn is_program(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    // A build may be named after its version; what else begins so is a program of others.
    let is_build = |rest: &str| rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    name == NAME || name.strip_prefix(NAME).is_some_and(is_build)
}

/// Returns whether two lines of a shell begin with the same program.
pub fn is_same_program(one: &str, two: &str) -> bool {
    let first = |line: &str| shlex::split(line).and_then(|words| words.into_iter().next());
    first(one).is_some_and(|program| first(two) == Some(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_told_from_others() {
        for own in
            ["sextant", "/usr/bin/sextant", "/a b/sextant", r"C:\tools\sextant.exe", "sextant-0.2", "/opt/sextant-1.0.0.exe"]
        {
            assert!(is_program(own), "{own}");
        }
        for other in ["", "/", "sextantine", "npx", "/sextant/other", "my-sextant", "sextant-lsp", "sextant-", "sextant-v1"] {
            assert!(!is_program(other), "{other}");
        }
    }

    #[test]
    fn lines_of_one_program_are_told_from_others() {
        assert!(is_same_program("sextant hook git", "'sextant' hook claude --deadline 20"));
        assert!(!is_same_program("sextant hook git", "/opt/sextant hook git"));
        assert!(!is_same_program("", ""));
        assert!(!is_same_program("'sextant", "'sextant"));
    }

    #[test]
    fn a_line_survives_a_shell() {
        let check = |word: &str, want: &str| {
            let program = Program { word: word.to_owned(), is_on_path: false };
            assert_eq!(program.line("hook git"), want);
        };
        check("sextant", "sextant hook git");
        check("/opt/my tools/sextant", "'/opt/my tools/sextant' hook git");
        check("/it's/sextant", "\"/it's/sextant\" hook git");
    }
}
