//! The tables of hosts: which files each one reads, at which level, and what is written there.
//!
//! Must not know how text is edited. Invariant: everything that is particular to a host stands here.

use std::path::{Path, PathBuf};

use super::json::{self, Slot};
use super::script::Block;
use super::toml;
use super::written::Written;
use super::{Action, Host, HostError, Left, Level, Problem, Program, Site, git_hooks};
use crate::workspace::GitHooks;

/// What is written into one file.
#[derive(Debug)]
pub struct Registration {
    pub path: PathBuf,
    /// The directory above the file that stays when all below it is gone.
    pub base: PathBuf,
    pub entry: Entry,
}

#[derive(Debug)]
pub enum Entry {
    Json(json::Entry),
    Toml(toml::Entry),
    Script(Block),
    /// A file of our own.
    Whole(String),
}

impl Entry {
    pub fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    /// Returns the text with the entry in it; `None` when it is there already.
    ///
    /// # Errors
    /// When the text is not what the host reads.
    pub fn add(&self, text: Option<&str>) -> Result<Option<String>, Problem> {
        match (self, text) {
            (Self::Json(entry), text) => entry.add(text),
            (Self::Toml(entry), text) => entry.add(text),
            (Self::Script(block), text) => block.add(text),
            (Self::Whole(_), Some(text)) if !is_plugin(text) => Err(Problem::NotOurs),
            (Self::Whole(whole), text) => Ok((text != Some(whole)).then(|| whole.clone())),
        }
    }

    /// Takes the entry out of a text.
    ///
    /// # Errors
    /// When the text is not what the host reads.
    pub fn take(&self, text: &str) -> Result<Left, Problem> {
        match self {
            Self::Json(entry) => entry.take(text),
            Self::Toml(entry) => entry.take(text),
            Self::Script(block) => Ok(block.take(text)),
            Self::Whole(_) => Ok(if is_plugin(text) { Left::Nothing } else { Left::Same }),
        }
    }
}

/// The name that servers are registered under.
const SERVER: &str = "sextant";
/// The hooks of Git after which the worktree may be another.
const GIT_HOOKS: &[&str] = &["post-checkout", "post-commit", "post-merge", "post-rewrite"];
const PLUGIN: &str = include_str!("plugin.js");

fn is_plugin(text: &str) -> bool {
    text.lines().next() == PLUGIN.lines().next()
}

/// The directory of a host that a level keeps files in, and the one above it that is not the host's.
struct Directory {
    own: PathBuf,
    base: PathBuf,
}

impl Directory {
    /// Returns `name` in the home directory or the project, or what a variable sets it to.
    fn of(site: &Site<'_>, name: &str, set: Option<&PathBuf>) -> Result<Self, HostError> {
        match (site.level, set) {
            (Level::User, Some(set)) => Ok(Self { own: set.clone(), base: set.clone() }),
            _ => {
                let base = base(site)?;
                Ok(Self { own: base.join(name), base: base.to_owned() })
            }
        }
    }

    fn file(&self, name: &str, entry: Entry) -> Registration {
        Registration { path: self.own.join(name), base: self.base.clone(), entry }
    }
}

/// Returns the home directory or the top of the project.
fn base<'a>(site: &'a Site<'_>) -> Result<&'a Path, HostError> {
    match site.level {
        Level::User => site.machine.home.as_deref().ok_or(HostError::NoHome),
        Level::Project => site.root.ok_or(HostError::NoProject),
    }
}

/// Returns the directory of OpenCode's files for the user.
fn opencode_home(site: &Site<'_>) -> Result<Directory, HostError> {
    match &site.machine.config_home {
        Some(config) => Ok(Directory { own: config.join("opencode"), base: config.clone() }),
        None => Directory::of(site, ".config/opencode", None),
    }
}

/// Returns the server as most hosts name it.
fn server(
    within: &'static [&'static str],
    program: &Program,
    first: &[(&'static str, Written)],
    last: &[(&'static str, Written)],
) -> Entry {
    let command = [("command", Written::text(&program.word)), ("args", Written::List(vec![Written::text("mcp")]))];
    let members = first.iter().cloned().chain(command).chain(last.iter().cloned()).collect();
    let command = program.word.clone();
    Entry::Json(json::Entry { within, slot: Slot::Member(SERVER), value: Written::Object(members), beside: &[], command })
}

/// Returns a hook: with a matcher as an element of a list of groups, without one by itself.
fn hook(host: Host, within: &'static [&'static str], program: &Program, form: &Form) -> Entry {
    let command = program.line(&format!("hook {}", host.name()));
    let mut members = Vec::new();
    if form.has_type {
        members.push(("type", Written::text("command")));
    }
    members.push(("command", Written::text(&command)));
    if let Some(timeout) = form.timeout {
        members.push(("timeout", Written::Number(timeout)));
    }
    let own = Written::Object(members);
    let value = match form.matcher {
        Some(matcher) => Written::Object(vec![("matcher", Written::text(matcher)), ("hooks", Written::List(vec![own]))]),
        None => own,
    };
    Entry::Json(json::Entry { within, slot: Slot::Hook(host.name()), value, beside: form.beside, command })
}

/// How a host writes hooks.
struct Form {
    matcher: Option<&'static str>,
    has_type: bool,
    /// In the host's unit.
    timeout: Option<u32>,
    beside: &'static [(&'static str, u32)],
}

const AFTER_TOOL: &[&str] = &["hooks", "PostToolUse"];
const VERSION: &[(&str, u32)] = &[("version", 1)];

/// Returns what is written for a host, in the order in which it is added.
pub fn registrations(
    host: Host,
    action: Action,
    site: &Site<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Registration>, HostError> {
    let program = site.program;
    let user = site.level == Level::User;
    Ok(match host {
        Host::Claude => {
            let directory = Directory::of(site, ".claude", site.machine.claude.as_ref())?;
            let form =
                Form { matcher: Some("Edit|Write|MultiEdit|NotebookEdit"), has_type: true, timeout: Some(10), beside: &[] };
            let servers = match (user, &site.machine.claude) {
                (true, Some(set)) => Directory { own: set.clone(), base: set.clone() },
                _ => Directory::of(site, "", None)?,
            };
            vec![
                servers.file(if user { ".claude.json" } else { ".mcp.json" }, server(&["mcpServers"], program, &[], &[])),
                directory.file("settings.json", hook(host, AFTER_TOOL, program, &form)),
            ]
        }
        Host::Codex => codex(action, site, notes)?,
        Host::Cursor => {
            let directory = Directory::of(site, ".cursor", None)?;
            let form = Form { matcher: None, has_type: false, timeout: None, beside: VERSION };
            vec![
                directory.file("mcp.json", server(&["mcpServers"], program, &[], &[])),
                directory.file("hooks.json", hook(host, &["hooks", "afterFileEdit"], program, &form)),
            ]
        }
        Host::Gemini => {
            let directory = Directory::of(site, ".gemini", None)?;
            // In thousandths of a second.
            let form = Form { matcher: Some("write_file|replace"), has_type: true, timeout: Some(10_000), beside: &[] };
            vec![
                directory.file("settings.json", server(&["mcpServers"], program, &[], &[])),
                directory.file("settings.json", hook(host, &["hooks", "AfterTool"], program, &form)),
            ]
        }
        Host::Vscode => {
            let stdio = [("type", Written::text("stdio"))];
            let form = Form { matcher: None, has_type: true, timeout: Some(15), beside: VERSION };
            let hook = hook(host, AFTER_TOOL, program, &form);
            if user {
                let directory = Directory::of(site, ".copilot", site.machine.copilot.as_ref())?;
                let tools = [("tools", Written::List(vec![Written::text("*")]))];
                vec![
                    directory.file("mcp-config.json", server(&["mcpServers"], program, &stdio, &tools)),
                    directory.file("hooks/sextant.json", hook),
                ]
            } else {
                vec![
                    Directory::of(site, ".vscode", None)?.file("mcp.json", server(&["servers"], program, &stdio, &[])),
                    Directory::of(site, ".github", None)?.file("hooks/sextant.json", hook),
                ]
            }
        }
        Host::Opencode => opencode(action, site)?,
        Host::Git => {
            if user {
                return Err(HostError::GitForUser);
            }
            let root = base(site)?;
            let GitHooks { directory, is_configured } = git_hooks(root)?;
            if directory.symlink_metadata().is_ok() && !directory.is_dir() {
                return Err(HostError::NoHooks { name: site.name_of(&directory) });
            }
            if action == Action::Add && is_configured && !directory.starts_with(root) {
                notes.push(format!(
                    "`core.hooksPath` leads to {}: other repositories may run these hooks, too, and where nothing is indexed they do nothing",
                    site.name_of(&directory)
                ));
            }
            let quoted = program.line("");
            let block = Block { command: program.line("hook git"), program: quoted.trim_end().to_owned() };
            let file = |name: &&str| Registration {
                path: directory.join(name),
                base: directory.clone(),
                entry: Entry::Script(block.clone()),
            };
            GIT_HOOKS.iter().map(file).collect()
        }
    })
}

/// Codex reads hooks from a file of their own or from its configuration, and complains of both.
fn codex(action: Action, site: &Site<'_>, notes: &mut Vec<String>) -> Result<Vec<Registration>, HostError> {
    const MATCHER: &str = "apply_patch|Edit|Write";
    let program = site.program;
    let directory = Directory::of(site, ".codex", site.machine.codex.as_ref())?;
    let config = "config.toml";
    let command = program.line("hook codex");
    let form = Form { matcher: Some(MATCHER), has_type: true, timeout: Some(10), beside: &[] };
    let in_file = || directory.file("hooks.json", hook(Host::Codex, AFTER_TOOL, program, &form));
    let in_config = || {
        let hook = toml::Entry::Hook { event: "PostToolUse", matcher: MATCHER, host: "codex", command: command.clone() };
        directory.file(config, Entry::Toml(hook))
    };
    let server = toml::Entry::Server { name: SERVER, command: program.word.clone() };
    let mut registrations = vec![directory.file(config, Entry::Toml(server))];
    match action {
        Action::Take => registrations.extend([in_config(), in_file()]),
        Action::Add => {
            let text = read(site, &directory.own.join(config))?.unwrap_or_default();
            let name = site.name_of(&directory.own.join(config));
            let has_hooks = toml::has_hooks(&text).map_err(|source| HostError::Entry { name, source })?;
            let has_file = directory.own.join("hooks.json").exists();
            registrations.push(if has_hooks && !has_file { in_config() } else { in_file() });
            notes.push("codex runs a hook only after you have looked at it: type `/hooks` there once".to_owned());
            if site.level == Level::Project {
                notes.push("codex reads `.codex` only in projects that it trusts".to_owned());
            }
        }
    }
    Ok(registrations)
}

/// OpenCode takes its configuration from either of two names, and its second version names servers in another way.
fn opencode(action: Action, site: &Site<'_>) -> Result<Vec<Registration>, HostError> {
    let program = site.program;
    let (configs, plugins) = match site.level {
        Level::User => {
            let home = opencode_home(site)?;
            (vec![home], opencode_home(site)?)
        }
        Level::Project => {
            let own = Directory::of(site, ".opencode", None)?;
            (vec![Directory::of(site, "", None)?, own], Directory::of(site, ".opencode", None)?)
        }
    };
    let places: Vec<(&Directory, &str)> =
        configs.iter().flat_map(|directory| ["opencode.jsonc", "opencode.json"].map(|name| (directory, name))).collect();
    let there: Vec<&(&Directory, &str)> = places.iter().filter(|(directory, name)| directory.own.join(name).exists()).collect();
    let member = |within: &'static [&'static str], first: bool| {
        let mut members = vec![
            ("type", Written::text("local")),
            ("command", Written::List(vec![Written::text(&program.word), Written::text("mcp")])),
        ];
        if first {
            members.push(("enabled", Written::Truth(true)));
        }
        let command = program.word.clone();
        Entry::Json(json::Entry { within, slot: Slot::Member(SERVER), value: Written::Object(members), beside: &[], command })
    };
    let mut registrations = Vec::new();
    match action {
        Action::Take => {
            for (directory, name) in there {
                registrations.push(directory.file(name, member(&["mcp"], true)));
                if is_second(site, &directory.own.join(name))? {
                    registrations.push(directory.file(name, member(&["mcp", "servers"], false)));
                }
            }
        }
        Action::Add => {
            let (directory, name) = there.first().map_or((&configs[0], "opencode.json"), |(directory, name)| (*directory, *name));
            let is_second = is_second(site, &directory.own.join(name))?;
            let within: &[&str] = if is_second { &["mcp", "servers"] } else { &["mcp"] };
            registrations.push(directory.file(name, member(within, !is_second)));
        }
    }
    let literal = super::written::quoted(&program.word);
    registrations.push(plugins.file("plugins/sextant.js", Entry::Whole(PLUGIN.replace("PROGRAM", &literal))));
    Ok(registrations)
}

/// Returns whether a configuration of OpenCode is of the second version, which keeps servers below `mcp.servers`. The first form is read
/// by both.
fn is_second(site: &Site<'_>, path: &Path) -> Result<bool, HostError> {
    let text = read(site, path)?.unwrap_or_default();
    json::has_object(&text, &["mcp", "servers"], "type")
        .and_then(|has| Ok(has || json::has_object(&text, &["plugins"], "")?))
        .map_err(|source| HostError::Entry { name: site.name_of(path), source })
}

fn read(site: &Site<'_>, path: &Path) -> Result<Option<String>, HostError> {
    let file = super::Snapshot::read(path).map_err(|source| HostError::File { name: site.name_of(path), source })?;
    Ok(file.text)
}

/// Returns whether a host has files where a level keeps them.
pub fn is_found(host: Host, site: &Site<'_>) -> bool {
    let any = |base: Option<&Path>, names: &[&str]| base.is_some_and(|base| names.iter().any(|name| base.join(name).exists()));
    let set = |set: &Option<PathBuf>| set.as_ref().is_some_and(|set| set.is_dir());
    match site.level {
        Level::User => {
            let machine = site.machine;
            let home = machine.home.as_deref();
            let config = home.map(|home| machine.config_home.clone().unwrap_or_else(|| home.join(".config")));
            match host {
                Host::Claude => set(&machine.claude) || any(home, &[".claude", ".claude.json"]),
                Host::Codex => set(&machine.codex) || any(home, &[".codex"]),
                Host::Cursor => any(home, &[".cursor"]),
                Host::Gemini => any(home, &[".gemini"]),
                Host::Vscode => {
                    set(&machine.copilot)
                        || any(home, &[".copilot", ".vscode", ".vscode-server", "Library/Application Support/Code"])
                        || any(config.as_deref(), &["Code"])
                }
                Host::Opencode => any(config.as_deref(), &["opencode"]),
                Host::Git => false,
            }
        }
        Level::Project => match host {
            Host::Claude => any(site.root, &[".claude", ".mcp.json", "CLAUDE.md"]),
            Host::Codex => any(site.root, &[".codex"]),
            Host::Cursor => any(site.root, &[".cursor"]),
            Host::Gemini => any(site.root, &[".gemini", "GEMINI.md"]),
            Host::Vscode => any(site.root, &[".vscode", ".github/hooks", ".github/copilot-instructions.md"]),
            Host::Opencode => any(site.root, &[".opencode", "opencode.json", "opencode.jsonc"]),
            Host::Git => any(site.root, &[".git"]),
        },
    }
}
