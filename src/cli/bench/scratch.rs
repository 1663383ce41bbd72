//! The folder of a benchmark: copies of trees, caches and configurations, all gone at its end.
//!
//! Must not know what is measured. Invariant: nothing outside the folder is changed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of this benchmark that goes with it.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().canonicalize()?.join(format!("sextant-bench-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One scope with a cache and a configuration of its own, large enough for any tree.
#[derive(Clone, Debug)]
pub struct Bench {
    pub root: PathBuf,
    pub cache: PathBuf,
    pub config: PathBuf,
}

impl Bench {
    /// Makes a scope of a tree, to be checked as `check` says.
    pub fn new(scratch: &Scratch, name: &str, root: &Path, check: &str) -> io::Result<Self> {
        let (cache, config) = (scratch.path(name), scratch.path(&format!("{name}.toml")));
        let text = format!(
            "cache_dir = {cache:?}\n[limits]\nmax_files = 1000000\nmax_source_bytes = 68719476736\nmax_cache_bytes = 68719476736\n\
             build_seconds = 3600\nquery_seconds = 600\n[scopes.bench]\nroot = {root:?}\ninclude_untracked = true\n\
             on_stale = \"sync\"\ncheck = \"{check}\"\n"
        );
        fs::write(&config, text)?;
        Ok(Self { root: root.to_owned(), cache, config })
    }

    /// Returns this program, to run in the scope as a process of its own.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env_remove("SEXTANT_CONFIG").env_remove("XDG_RUNTIME_DIR").env("SEXTANT_NO_DAEMON", "1");
        command.current_dir(&self.root).arg("--config").arg(&self.config).args(arguments);
        Ok(command)
    }

    /// Returns the size of the database that serves, without what lies over it.
    pub fn database_bytes(&self) -> io::Result<u64> {
        fn largest(directory: &Path) -> io::Result<u64> {
            let mut found = 0;
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                let is_database = entry.path().extension().is_some_and(|suffix| suffix == "sqlite");
                let size = if metadata.is_dir() { largest(&entry.path())? } else { u64::from(is_database) * metadata.len() };
                found = found.max(size);
            }
            Ok(found)
        }
        largest(&self.cache)
    }
}

pub fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub fn size_of(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
