//! The clap tree: what can be typed, with its help. Knows no engine; values are checked where they are used, unless clap can.
//!
//! Invariant: every command takes the global flags, at any place.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::hosts::Host;

/// How many seconds a hook may take that was not told.
pub const HOOK_SECONDS: u64 = 5;

/// Ask a working tree about its code; every answer is checked against the disk first
#[derive(Debug, Parser)]
#[command(name = "sextant", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Exit codes: 0 answered, 1 nothing found or a choice is needed, 2 bad usage or request, \
3 refused as stale, 4 no index, 5 other failure")]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// Returns whether a command may run in the daemon. Those that talk to it, follow the terminal's user, go by more of the environment than
    /// the daemon is told, measure this process or are one of its parsers may not; nor may one whose traces are to be seen.
    pub fn is_remote(&self) -> bool {
        let is_own = matches!(
            self.command,
            Command::Daemon { .. }
                | Command::Mcp
                | Command::Watch
                | Command::Serve { .. }
                | Command::Install(_)
                | Command::Uninstall(_)
                | Command::Doctor
                | Command::Config { .. }
                | Command::Completions { .. }
                | Command::Man { .. }
                | Command::Bench { .. }
                | Command::ParseWorker { .. }
        );
        !is_own && self.global.verbose == 0
    }
}

/// The flags of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Print JSON: the wire contract for questions, one stable object otherwise
    #[arg(long, global = true)]
    pub json: bool,
    /// Use this worktree instead of the one that holds the current directory
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Use this scope of the configuration file
    #[arg(long, global = true, value_name = "NAME")]
    pub scope: Option<String>,
    /// Read this configuration file [env: SEXTANT_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Work in this process alone
    #[arg(long, global = true, env = "SEXTANT_NO_DAEMON", value_parser = FalseyValueParser::new(), hide_env_values = true)]
    pub no_daemon: bool,
    /// Choose when to colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
    /// Print answers only, no summaries
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Trace to standard error what is done; twice for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnStale {
    /// Refuse to answer
    Refuse,
    /// Sync first, then answer
    Sync,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build the index from nothing
    Index,
    /// Bring the index up to date, or build it when there is none
    Sync {
        /// Check every stored byte first, and repair what is damaged
        #[arg(long)]
        verify: bool,
        /// Return at once and leave the sync to the daemon; without one it is done here and waited for
        #[arg(long, conflicts_with = "verify")]
        no_wait: bool,
    },
    /// Follow the worktree: sync after each change, and say what it did
    #[command(
        after_help = "Ends with Ctrl-C. With --json each line is an object with an `event`: watching, sync, watch, failed."
    )]
    Watch,
    /// Sync what an edit or a checkout touched, called by an agent's or Git's hook; never fails, never creates an index
    #[command(
        after_help = "Hosts: claude, codex, cursor, gemini, vscode, opencode (each reads its JSON on standard input), git.\n\
`sextant install` writes the call. It exits 0 whatever happens; `--verbose` says on standard error what did."
    )]
    Hook(Hook),
    /// Control the background process that keeps indexes warm and answers for other commands
    #[command(
        after_help = "One runs for each user, cache directory and build. Other commands use it when it runs, and give the same \
answers without it. It leaves by itself when nobody asks anything for `idle_minutes`."
    )]
    Daemon {
        #[command(subcommand)]
        action: Daemon,
    },
    /// Answer over HTTP, in the foreground
    #[command(
        after_help = "Serves the scopes of the configuration file and that of --root; without both, that of the current directory.\n\
Other machines are listened to only when the configuration names tokens: [[http.tokens]] with sha256, scopes and rights.\n\
Ends with Ctrl-C."
    )]
    Serve {
        /// Address and port to listen on; port 0 takes a free one
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
        http: String,
    },
    /// Serve a coding agent through the Model Context Protocol, on standard input and output
    #[command(
        after_help = "Agents start it; `sextant help` shows the commands for people. It answers through the daemon, which it starts \
unless `autostart = false` or --no-daemon say otherwise, and ends with its client."
    )]
    Mcp,
    /// Call a tool of `mcp`, its arguments on standard input; the program calls itself so
    #[command(hide = true)]
    Tool {
        #[arg(value_name = "TOOL")]
        name: String,
        /// It is called by a client of a service, which may ask this scope and no other, and is told nothing of the machine
        #[arg(long, value_name = "NAME")]
        served: Option<String>,
        /// That client may have the scope synced
        #[arg(long, requires = "served")]
        may_sync: bool,
    },
    /// Register with agent hosts and Git: the MCP server, and the hook that syncs after each edit
    #[command(
        after_help = "Prints what changes as a diff, then writes it. Comments, order and entries of others stay; it can be run again.\n\
Agent hosts are told for the user unless --project is given, Git's hooks are always those of the project."
    )]
    Install(Install),
    /// Take out what `install` added, and nothing else
    Uninstall(Install),
    /// Say what is indexed and whether it equals the disk
    Status,
    /// Look for what is wrong with root, cache, machine, daemon and index, and say what to do
    #[command(after_help = "Exits 5 where a problem keeps questions from being answered; warnings are no failure.")]
    Doctor,
    /// Show the configuration that is in force
    Config {
        #[command(subcommand)]
        action: Settings,
    },
    /// Write what makes a shell complete command lines
    #[command(after_help = "For example: sextant completions bash > ~/.local/share/bash-completion/completions/sextant")]
    Completions {
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write a manual page, of the program or of one of its commands
    #[command(after_help = "For example: sextant man | man -l -")]
    Man {
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Forget the index of this worktree
    Clear,
    /// Find code for a task or a question, with its callers and callees
    Explore {
        /// Words, names or a whole question
        #[arg(required = true, value_name = "QUERY")]
        query: Vec<String>,
        /// Print whole bodies
        #[arg(long)]
        source: bool,
        #[command(flatten)]
        question: Question,
    },
    /// Find definitions and files by name
    Symbols {
        #[arg(required = true, value_name = "QUERY")]
        query: Vec<String>,
        #[command(flatten)]
        question: Question,
    },
    /// List who calls a definition
    Callers(Relation),
    /// List what a definition calls
    Callees(Relation),
    /// List what a change of a definition, class or file reaches
    Impact(Relation),
    /// Print the test files that a change of source files may break
    Tests {
        /// Changed source files, as seen from here or from the root of the worktree
        #[arg(value_name = "PATH", required_unless_present = "stdin")]
        paths: Vec<String>,
        /// Read more paths from standard input: one a line, as Git prints them, or each ended by a NUL
        #[arg(long)]
        stdin: bool,
        #[command(flatten)]
        question: Question,
    },
    /// Say why the references in a definition, file or folder have an edge, candidates or none
    #[command(
        after_help = "Examples:\n  sextant why Cart.total apply_discount   why is there no edge from one to the other?\n  \
sextant why src/cart.py                 what in this file is not bound for certain?"
    )]
    Why {
        /// A qualified name or its end, `path:line`, `path::name`, an id, or the path of a file or folder
        #[arg(value_name = "CALLER")]
        caller: String,
        /// Name as it is written there, or of what it should lead to; every one that is not bound for certain when it is left out
        #[arg(value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        question: Question,
    },
    /// List files and definitions below a path, or draw its folders as a tree
    Map {
        #[arg(value_name = "PATH")]
        prefix: Option<String>,
        /// Draw a tree of folders and files with what they hold; --depth (3) and --limit (60) bound it
        #[arg(long)]
        tree: bool,
        #[command(flatten)]
        question: Question,
    },
    /// Draw what lies around a definition, class or file, for Graphviz, Mermaid or as an image
    #[command(
        after_help = "Resolved edges are solid, candidates dashed. Examples:\n  sextant graph Cart.total --format svg > cart.svg\n  \
sextant graph src/cart.py --depth 2 | dot -Tpng -o cart.png"
    )]
    Graph(Graph),
    /// Print lines of an indexed file
    Read {
        /// `path`, `path:line` or `path:first-last`
        #[arg(value_name = "PATH[:LINES]")]
        place: String,
        #[command(flatten)]
        question: Question,
    },
    /// List the files that changed since the index before
    Changes(Comparison),
    /// List what the changes of files reach: who uses what is new or changed, and who used what is gone
    ImpactChanges(ImpactChanges),
    /// Answer a request of the wire contract
    Query {
        /// File that holds the request, `-` for standard input
        #[arg(long, value_name = "FILE")]
        request_file: PathBuf,
        /// What to do when the index differs from the disk
        #[arg(long, value_enum, value_name = "POLICY")]
        on_stale: Option<OnStale>,
    },
    /// Write all nodes, edges and diagnostics as sorted JSON lines
    Export {
        /// What to do when the index differs from the disk
        #[arg(long, value_enum, value_name = "POLICY")]
        on_stale: Option<OnStale>,
    },
    /// Parse what the program that started this process sends; it calls itself so
    #[command(hide = true)]
    ParseWorker {
        #[arg(long, value_name = "N")]
        memory_bytes: u64,
        /// Process that this one must not outlive
        #[arg(long, value_name = "PID")]
        parent: u32,
    },
    /// Measure this build on a tree
    #[command(hide = true)]
    Bench {
        #[command(subcommand)]
        subject: Bench,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum Settings {
    /// Print every key with its value, as a configuration file that says the same
    Show {
        /// Say where each value comes from: default, file, environment or flag
        #[arg(long)]
        origin: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum Daemon {
    /// Start it, and wait until it answers
    Start,
    /// End it, and wait until it is gone
    Stop,
    /// Say whether it runs, and how the scopes are that it knows
    Status,
    /// Be the daemon, in the foreground
    Run {
        /// Step of a start in the background; the program calls itself so
        #[arg(long, value_enum, value_name = "STAGE", hide = true)]
        stage: Option<Stage>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Start the daemon apart from whoever asked for it, and end
    Between,
    /// Be the daemon, without a terminal
    Apart,
}

#[derive(Debug, Args)]
pub struct Hook {
    /// Who calls: claude, codex, cursor, gemini, vscode, opencode or git
    // Not an enumeration: a host that this build does not know must not be stopped by it.
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = HOOK_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub deadline: u64,
    /// What the host hands over beside standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub handed: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Install {
    /// Whom to register with; those that are found when none is named
    #[arg(value_name = "HOST", value_enum)]
    pub hosts: Vec<Host>,
    /// Print what would change, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Register for the user, in files of the home directory
    #[arg(long, conflicts_with = "project")]
    pub user: bool,
    /// Register in this project, in files that others who work in it share
    #[arg(long)]
    pub project: bool,
}

/// The flags of questions.
#[derive(Debug, Default, Args)]
pub struct Question {
    /// Look only at this path and below
    #[arg(long, value_name = "PREFIX")]
    pub path: Option<String>,
    /// Give at most so many items
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Go so deep, in `impact` and `map`
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Keep the JSON answer within so many bytes
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u32>,
    /// What to do when the index differs from the disk
    #[arg(long, value_enum, value_name = "POLICY")]
    pub on_stale: Option<OnStale>,
}

#[derive(Debug, Args)]
pub struct Relation {
    /// A qualified name or its end, `path:line`, `path::name` or an id
    #[arg(value_name = "SYMBOL")]
    pub symbol: String,
    /// Print the bodies too
    #[arg(long)]
    pub source: bool,
    #[command(flatten)]
    pub question: Question,
}

#[derive(Debug, Args)]
pub struct Graph {
    /// A qualified name or its end, `path:line`, `path::name`, a path or an id
    #[arg(value_name = "SYMBOL")]
    pub symbol: String,
    /// How the graph is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = GraphFormat::Dot)]
    pub format: GraphFormat,
    /// Go so many steps from it, either way [default: 1]
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Show at most so many definitions and files, up to 200, in an image 80 [default: 40]
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Look only at this path and below
    #[arg(long, value_name = "PREFIX")]
    pub path: Option<String>,
    /// What to do when the index differs from the disk
    #[arg(long, value_enum, value_name = "POLICY")]
    pub on_stale: Option<OnStale>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// The language of Graphviz
    Dot,
    /// The language of Mermaid
    Mermaid,
    /// An image
    Svg,
}

/// The flags of questions that compare with an earlier index.
#[derive(Debug, Default, Args)]
pub struct Comparison {
    /// Keep the JSON answer within so many bytes
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u32>,
    /// What to do when the index differs from the disk
    #[arg(long, value_enum, value_name = "POLICY")]
    pub on_stale: Option<OnStale>,
}

#[derive(Debug, Args)]
pub struct ImpactChanges {
    /// Files that changed, or directories of such; everything that changed when none is given
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// Read more paths from standard input: one a line, as Git prints them, or each ended by a NUL
    #[arg(long)]
    pub stdin: bool,
    /// Compare with this kept index: `previous`, `first` at this branch and HEAD, or the beginning of a fingerprint
    #[arg(long, value_name = "INDEX", default_value = "previous")]
    pub before: String,
    /// Print the bodies too
    #[arg(long)]
    pub source: bool,
    /// Look only at this path and below
    #[arg(long, value_name = "PREFIX")]
    pub path: Option<String>,
    /// Give at most so many items
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    #[command(flatten)]
    pub comparison: Comparison,
}

#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Measure index, sync and query against the floor of reading and parsing alone
    Index {
        /// Runs of each measurement; the median counts
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=25))]
        runs: u32,
        /// Definition whose callers are asked for
        #[arg(long, default_value = "django.db.models.query.prefetch_related_objects")]
        symbol: String,
        /// Question that is explored
        #[arg(long, default_value = "queryset iteration chunked fetch")]
        query: String,
        /// File whose one body edit is synced, in a copy of the tree; the largest source file when it is left out
        #[arg(long, value_name = "PATH")]
        edit: Option<String>,
    },
    /// Measure answers and syncs in a daemon and in fresh processes, against a pass
    Live {
        /// Runs of each measurement; the median counts
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
        runs: u32,
        /// File that is edited, in a copy of the tree; others are chosen. The largest source file when it is left out
        #[arg(long, value_name = "PATH")]
        edit: Option<String>,
        /// Definition whose callers are asked for; one of the edited file when it is left out
        #[arg(long)]
        symbol: Option<String>,
        /// Question that is explored
        #[arg(long, default_value = "queryset iteration chunked fetch")]
        query: String,
        /// Make a tree of so many files instead of copying one
        #[arg(long, value_name = "FILES")]
        generate: Option<usize>,
    },
    /// Edit at random and ask all the while, and compare every answer
    Soak {
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        minutes: u64,
        /// How many ask at once
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
        clients: u32,
        /// The check that the daemon makes: full or sealed
        #[arg(long, default_value = "full", value_parser = ["full", "sealed"])]
        check: String,
        /// Another number edits and asks otherwise
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Edit at random while many clients ask over HTTP, and compare every answer
    Serve {
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(4..=100_000))]
        seconds: u64,
        /// How many ask at once
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=256))]
        clients: u32,
        /// Another number edits and asks otherwise
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run one measurement in this process and print it; the benchmark calls itself so
    #[command(hide = true)]
    Part {
        part: String,
        #[arg(long, default_value = "")]
        query: String,
        #[arg(long, default_value_t = 1)]
        runs: u32,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_tree_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn global_flags_stand_anywhere() {
        for line in ["sextant --json callers a.b --limit 3", "sextant callers --limit 3 a.b --json"] {
            let arguments = Arguments::try_parse_from(line.split(' ')).expect("a valid line");
            assert!(arguments.global.json, "{line}");
            let Command::Callers(relation) = arguments.command else { panic!("{line}") };
            assert_eq!((relation.symbol.as_str(), relation.question.limit), ("a.b", Some(3)));
        }
    }
}
