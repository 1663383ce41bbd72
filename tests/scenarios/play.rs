//! Plays the steps of one scenario: changes the tree, runs the commands in this process, and compares with a clean build.
//!
//! Invariant: one session, and with it one database, lives from one command to the next until a `restart`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use sextant::cli::{Session, World};
use sextant::config::{Environment, ParserHost};

use crate::sandbox::{Sandbox, write_file};
use crate::script::{FileContent, Step, edited, file, tree_files, words};

pub struct Player {
    sandbox: Sandbox,
    session: Session,
    /// Further lines of the scope, as a `scope` step gave them.
    scope: Vec<String>,
    /// Worktree that commands run in, when a step named another than the first.
    root: PathBuf,
    /// What the last command executed.
    ran: Vec<String>,
    clean_builds: u32,
}

/// What one command said, and how it ended.
struct Said {
    out: String,
    err: String,
    status: u8,
    code: Option<&'static str>,
}

impl Player {
    pub fn new() -> Self {
        let sandbox = Sandbox::new();
        let root = sandbox.tree();
        Self { sandbox, session: Session::recording(), scope: Vec::new(), root, ran: Vec::new(), clean_builds: 0 }
    }

    /// Plays one step. Returns what it printed, for steps that print.
    pub fn step(&mut self, step: &Step) -> Result<Option<String>, String> {
        let (verb, rest) = step.head.split_once(' ').unwrap_or((step.head.as_str(), ""));
        match verb {
            "tree" => self.tree(rest, &step.body)?,
            "scope" => self.scope.clone_from(&step.body),
            "edit" => {
                let text = self.read(rest)?;
                self.write(rest, &edited(&text, &step.body)?)?;
            }
            "write" => {
                let mut lines: Vec<&str> = step.body.iter().map(String::as_str).collect();
                while lines.last().is_some_and(|line| line.is_empty()) {
                    lines.pop();
                }
                let (path, bytes) = file(rest, &lines)?;
                write_file(&self.root.join(path), &bytes);
            }
            "delete" => {
                let place = self.root.join(rest);
                let directory = place.symlink_metadata().is_ok_and(|found| found.is_dir());
                let gone = if directory { fs::remove_dir_all(place) } else { fs::remove_file(place) };
                gone.map_err(|error| error.to_string())?;
            }
            "link" => {
                let (path, place) = rest.split_once(" -> ").ok_or("`link` takes a path and a place: `link a.py -> b.py`")?;
                std::os::unix::fs::symlink(place, self.root.join(path)).map_err(|error| error.to_string())?;
            }
            "mode" => {
                let (path, mode) = rest.split_once(' ').ok_or("`mode` takes a path and a mode: `mode a.py 755`")?;
                let mode = u32::from_str_radix(mode, 8).map_err(|error| error.to_string())?;
                let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
                fs::set_permissions(self.root.join(path), mode).map_err(|error| error.to_string())?;
            }
            "pipe" => {
                let status = self.sandbox.command("mkfifo").arg(self.root.join(rest)).status();
                if !status.map_err(|error| error.to_string())?.success() {
                    return Err("the pipe was not made".to_owned());
                }
            }
            // Comment lines up to a size.
            "fill" => {
                let (path, size) = rest.split_once(' ').ok_or("`fill` takes a path and a size: `fill a.py 3000000`")?;
                let size: usize = size.parse().map_err(|_| "the size is a number of bytes")?;
                let mut text = self.read(path)?;
                while text.len() < size {
                    text.push_str("# filler\n");
                }
                self.write(path, &text)?;
            }
            "crash" => {
                let (point, words) =
                    rest.split_once(" $ ").ok_or("`crash` takes a point and a command: `crash pointer-rename $ sync`")?;
                return self.crash(point, words).map(Some);
            }
            "rename" => {
                let (from, to) = rest.split_once(' ').ok_or("`rename` takes two paths")?;
                let to = self.root.join(to);
                if let Some(parent) = to.parent() {
                    fs::create_dir_all(parent).map_err(|error| error.to_string())?;
                }
                fs::rename(self.root.join(from), to).map_err(|error| error.to_string())?;
            }
            "restore" => self.git(&["checkout", "--quiet", "HEAD", "--", rest]),
            "touch" => self.touch(rest, &step.body)?,
            "git" if rest.starts_with("conflict ") => {
                // Git says by its exit that it stopped; that it did stop is what the step is for.
                let mut command = self.sandbox.command("git");
                command.current_dir(&self.root).args(words(rest)?.into_iter().skip(1));
                let output = command.output().map_err(|error| error.to_string())?;
                if output.status.success() {
                    return Err("there was no conflict".to_owned());
                }
            }
            "git" => {
                let words = words(rest)?;
                self.git(&words.iter().map(String::as_str).collect::<Vec<_>>());
            }
            "worktree" => {
                let root = self.sandbox.tree().join(rest);
                self.root = root.canonicalize().map_err(|error| error.to_string())?;
            }
            // Hints come from a watcher, which only a daemon has; without one every kind of hint is a lost one.
            "hints" if matches!(rest, "off" | "lost" | "duplicated" | "overflow") => {}
            "restart" => self.session = Session::recording(),
            "$" => return self.command(rest).map(Some),
            "other" => {
                let rest = rest.strip_prefix("$ ").ok_or("`other` takes a command: `other $ sync`")?;
                let own = std::mem::replace(&mut self.session, Session::recording());
                let output = self.command(rest);
                self.session = own;
                return output.map(Some);
            }
            "ran" => return Ok(Some(in_order(&self.ran))),
            other => return Err(format!("there is no step `{other}`")),
        }
        Ok(None)
    }

    fn tree(&mut self, kind: &str, body: &[String]) -> Result<(), String> {
        for file in tree_files(body)? {
            let path = self.root.join(&file.path);
            match file.content {
                FileContent::Bytes(bytes) => write_file(&path, &bytes),
                FileContent::Link(place) => {
                    if let Some(parent) = path.parent() {
                        fs::create_dir_all(parent).map_err(|error| error.to_string())?;
                    }
                    std::os::unix::fs::symlink(place, path).map_err(|error| error.to_string())?;
                }
            }
        }
        match kind {
            "" => self.sandbox.commit_all(),
            "without git" => {}
            other => return Err(format!("`{other}` is no kind of tree")),
        }
        Ok(())
    }

    fn read(&self, path: &str) -> Result<String, String> {
        fs::read_to_string(self.root.join(path)).map_err(|error| format!("{path}: {error}"))
    }

    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        write_file(&self.root.join(path), text.as_bytes());
        Ok(())
    }

    fn git(&self, arguments: &[&str]) {
        let place = self.root.to_string_lossy().into_owned();
        let mut all = vec!["-C", &place];
        all.extend(arguments);
        self.sandbox.git(&all);
    }

    /// Other bytes, same size and modification time; in place, or in a new file that takes the name of the old one.
    fn touch(&self, rest: &str, body: &[String]) -> Result<(), String> {
        let (rest, replaced) = rest.strip_suffix(" replaced").map_or((rest, false), |rest| (rest, true));
        let path = rest.strip_suffix(" keep-mtime").ok_or("`touch` takes a path and `keep-mtime`")?;
        let file = self.root.join(path);
        let before = fs::metadata(&file).map_err(|error| error.to_string())?;
        let modified = before.modified().map_err(|error| error.to_string())?;
        let text = edited(&self.read(path)?, body)?;
        if text.len() as u64 != before.len() {
            return Err(format!("the new text has {} bytes, the old one {}", text.len(), before.len()));
        }
        let written = if replaced { self.sandbox.path().join("replacement") } else { file.clone() };
        fs::write(&written, text).map_err(|error| error.to_string())?;
        let handle = fs::File::options().write(true).open(&written).map_err(|error| error.to_string())?;
        handle.set_modified(modified).map_err(|error| error.to_string())?;
        if replaced {
            fs::rename(&written, &file).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Runs a command in a process of its own that stops before the named durable step, as a kill or a power failure would stop it.
    fn crash(&mut self, point: &str, line: &str) -> Result<String, String> {
        let config = self.configure(&self.sandbox.path().join("cache"))?;
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_sextant"));
        command.current_dir(&self.root).env("SEXTANT_FAULT", point).arg("--config").arg(config).arg("--quiet").args(words(line)?);
        let output = command.output().map_err(|error| error.to_string())?;
        match output.status.code() {
            None => Ok("stopped".to_owned()),
            Some(code) => Err(format!("it did not stop but ended with {code}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn command(&mut self, line: &str) -> Result<String, String> {
        let words = words(line)?;
        self.session.executed();
        let cache = self.sandbox.path().join("cache");
        let said = match words.first().map(String::as_str) {
            Some(listing @ ("nodes" | "edges" | "diagnostics")) => {
                let exported = self.run(&["export".to_owned()], &cache)?;
                Said { out: list(listing, words.get(1).map(String::as_str), &exported.out)?, ..exported }
            }
            // Builds are told by their counts, which a machine's speed does not change.
            Some("index" | "sync") => {
                let mut words = words.clone();
                words.push("--json".to_owned());
                let built = self.run(&words, &cache)?;
                Said { out: if built.code.is_none() { counts(&built.out)? } else { String::new() }, ..built }
            }
            _ => self.run(&words, &cache)?,
        };
        self.ran = self.session.executed();
        if said.code.is_none() && !matches!(words.first().map(String::as_str), Some("clear" | "status")) {
            self.compare_with_clean_build(&cache)?;
        }
        let mut text = said.out;
        match said.code {
            Some(code) => text.push_str(code),
            None => text.push_str(&said.err),
        }
        if said.status > 1 && said.code.is_none() {
            text.push_str(&format!("\nexit {}", said.status));
        }
        Ok(text)
    }

    /// Builds from nothing beside and compares the exports byte for byte.
    fn compare_with_clean_build(&mut self, cache: &Path) -> Result<(), String> {
        let export = ["export".to_owned()];
        let kept = self.run(&export, cache)?;
        if kept.code.is_some() {
            return Err(format!("the export after the command was refused: {}", kept.err));
        }
        self.clean_builds += 1;
        let beside = self.sandbox.path().join(format!("clean-{}", self.clean_builds));
        let mut kept_session = std::mem::replace(&mut self.session, Session::recording());
        let built = self.run(&["index".to_owned()], &beside);
        let clean = self.run(&export, &beside);
        std::mem::swap(&mut self.session, &mut kept_session);
        fs::remove_dir_all(&beside).map_err(|error| error.to_string())?;
        let (built, clean) = (built?, clean?);
        if built.code.is_some() || clean.code.is_some() {
            return Err(format!("the clean build failed: {}{}", built.err, clean.err));
        }
        if let Some(rule) = rule_without_words(&kept.out) {
            return Err(format!("`why` has no words for the rule `{rule}`"));
        }
        if kept.out != clean.out {
            let differs = kept.out.lines().zip(clean.out.lines()).find(|(kept, clean)| kept != clean);
            let (kept, clean) = differs.unwrap_or(("(fewer or more rows)", "(fewer or more rows)"));
            return Err(format!("incremental differs from clean\n--- incremental\n{kept}\n--- clean\n{clean}"));
        }
        Ok(())
    }

    /// Writes the configuration and returns its place.
    fn configure(&self, cache: &Path) -> Result<PathBuf, String> {
        let config = self.sandbox.path().join("sextant.toml");
        let quoted = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
        let mut text = format!("cache_dir = {}\n[scopes.scenario]\nroot = {}\n", quoted(cache), quoted(&self.root));
        // What a scenario says itself comes instead of what all have.
        for (key, value) in [("include_untracked", "true"), ("on_stale", "\"refuse\"")] {
            if !self.scope.iter().any(|line| line.starts_with(key)) {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        for line in &self.scope {
            text.push_str(line);
            text.push('\n');
        }
        fs::write(&config, text).map_err(|error| error.to_string())?;
        Ok(config)
    }

    fn run(&mut self, words: &[String], cache: &Path) -> Result<Said, String> {
        let config = self.configure(cache)?;
        let mut arguments: Vec<OsString> = ["sextant", "--color", "never", "--quiet", "--config"].map(OsString::from).into();
        arguments.push(config.into());
        arguments.extend(words.iter().map(OsString::from));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut world = World {
            environment: Environment {
                current_dir: self.root.clone(),
                home: Some(self.sandbox.path().join("home")),
                xdg_cache_home: None,
                xdg_runtime_dir: None,
                config: None,
                parsers: ParserHost::Workers { program: env!("CARGO_BIN_EXE_sextant").into() },
            },
            input: &mut std::io::empty(),
            out: &mut out,
            err: &mut err,
            color: false,
        };
        let finish = self.session.run(&arguments, &mut world);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| error.to_string());
        Ok(Said { out: text(out)?, err: text(err)?, status: finish.exit as u8, code: finish.code })
    }
}

/// Returns a rule of an export that no sentence can tell.
fn rule_without_words(export: &str) -> Option<&str> {
    let mut rules =
        export.lines().filter_map(|row| row.split_once(r#""rule_id":""#)).filter_map(|(_, rest)| rest.split('"').next());
    rules.find(|rule| sextant::query::explain::words::of_rule(rule).is_none())
}

/// The queries in the order of the pipeline. Edges are resolved on several threads, so the order of their log is none.
const PIPELINE: &[&str] = &[
    "file_facts",
    "file_surface",
    "file_parse_status",
    "export_sources",
    "solve_exports",
    "export_table",
    "rebindings",
    "rebound",
    "rebound_in",
];

/// Returns the executed queries, a line each, by their place in the pipeline and their subject; `file_edges` is last.
fn in_order(ran: &[String]) -> String {
    let place = |line: &str| {
        let query = line.split(' ').next().unwrap_or_default();
        PIPELINE.iter().position(|known| *known == query).unwrap_or(PIPELINE.len())
    };
    let mut lines = ran.to_vec();
    lines.sort_by(|left, right| (place(left), left).cmp(&(place(right), right)));
    lines.dedup();
    lines.join("\n")
}

/// Returns what a build says it did, without what depends on the machine.
fn counts(report: &str) -> Result<String, String> {
    let report: serde_json::Value = serde_json::from_str(report).map_err(|error| error.to_string())?;
    if report["published"] == false {
        return Ok("unchanged".to_owned());
    }
    let count = |key: &str| report[format!("{key}_files")].to_string();
    let words: Vec<String> =
        ["extracted", "reused", "removed", "resolved"].iter().map(|key| format!("{} {key}", count(key))).collect();
    Ok(words.join(", "))
}

/// Lists rows of an export, one short line each, those of one path when one is given.
fn list(kind: &str, path: Option<&str>, export: &str) -> Result<String, String> {
    let rows: Vec<serde_json::Value> =
        export.lines().map(|line| serde_json::from_str(line).map_err(|error| error.to_string())).collect::<Result<_, _>>()?;
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    // A target is named by its place and its lexical name, so that two definitions of one name are told apart.
    let mut names = std::collections::HashMap::new();
    for row in rows.iter().filter(|row| row["row"] == "node") {
        let name = match row["kind"] == "file" {
            true => text(row, "path"),
            false => format!("{}:{} {}", text(row, "path"), row["name_line"], text(row, "qualified_name")),
        };
        names.insert(text(row, "id"), name);
    }
    let mut out = String::new();
    let wanted = kind.trim_end_matches('s');
    for row in rows.iter().filter(|row| row["row"] == wanted && path.is_none_or(|path| row["path"] == path)) {
        let place = format!("{}:{}:{}", text(row, "path"), row["line"], row["col_byte"]);
        let line = match wanted {
            "node" => {
                format!("{}:{} {} {}", text(row, "path"), row["start_line"], text(row, "kind"), text(row, "qualified_name"))
            }
            "edge" if row["kind"] == "contains" => continue,
            "edge" => {
                let target = names.get(&text(row, "target_id")).cloned().unwrap_or_default();
                let words = ["name", "kind", "resolution", "rule_id"].map(|key| text(row, key));
                let [name, kind, resolution, rule] = words;
                format!("{place} {name} {kind} {target}  {resolution} {rule}")
            }
            _ => format!("{place} {} {}  {}", text(row, "name"), text(row, "kind"), text(row, "reason")),
        };
        out.push_str(&line);
        out.push('\n');
    }
    Ok(out)
}
