//! `sextant install` and `uninstall`: what becomes of the files of agent hosts and of Git's hooks.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::program::{PROGRAM, Run, indexed};
use crate::sandbox::{Sandbox, write_file};

/// All files and directories below a place, each with its mode and text.
type Tree = BTreeMap<PathBuf, (u32, String)>;

fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("readable") {
            let path = entry.expect("readable").path();
            let metadata = path.symlink_metadata().expect("it is there");
            let text = match metadata.is_file() {
                true => fs::read_to_string(&path).unwrap_or_default(),
                false => fs::read_link(&path).map(|to| to.display().to_string()).unwrap_or_default(),
            };
            if metadata.is_dir() {
                open.push(path.clone());
            }
            found.insert(path.strip_prefix(root).expect("below").to_owned(), (metadata.mode(), text));
        }
    }
    found
}

impl Sandbox {
    /// Runs the program as one that is on `PATH` by its name.
    fn named(&self, arguments: &[&str]) -> Run {
        let directory = self.path().join("bin");
        if !directory.exists() {
            fs::create_dir(&directory).expect("new");
            symlink(PROGRAM, directory.join("sextant")).expect("new");
        }
        let mut command = self.program(arguments);
        let search = std::env::join_paths([directory, "/usr/bin".into(), "/bin".into()]).expect("plain paths");
        Run::of(command.env("PATH", search))
    }

    fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    fn at_home(&self, path: &str, text: &str) {
        write_file(&self.home().join(path), text.as_bytes());
    }

    /// All that an installation may change.
    fn state(&self) -> [Tree; 2] {
        [tree(&self.home()), tree(&self.tree())]
    }
}

/// Makes a place where every host has configurations, each with comments and entries of others.
fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.py", "def f(): pass\n");
    sandbox.commit_all();
    let servers = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": { \"command\": \"npx\", \"args\": [] }\n  },\n  \"z\": {}\n}\n";
    let hooks = "{\n    \"hooks\": {\n        \"PostToolUse\": [\n            {\n                \"matcher\": \"Bash\",\n                \
                 \"hooks\": [{ \"type\": \"command\", \"command\": \"true\" }]\n            }\n        ]\n    }\n}\n";
    let commented = "// what the editor runs\n{\n\t\"servers\": {\n\t\t// theirs\n\t\t\"other\": { \"command\": \"npx\" }, // and why\n\t},\n}\n";
    for (path, text) in [
        (".claude.json", servers),
        (".claude/settings.json", hooks),
        (".codex/config.toml", "# mine\nmodel = \"m\" # the model\n\n[mcp_servers.other]\ncommand = \"npx\"\n"),
        (".codex/hooks.json", hooks),
        (".cursor/mcp.json", servers),
        (".cursor/hooks.json", "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{ \"command\": \"true\" }]\n  }\n}\n"),
        (".gemini/settings.json", "{\n  // how it looks\n  \"theme\": \"dark\"\n}\n"),
        (".copilot/mcp-config.json", servers),
        (
            "opencode/opencode.jsonc",
            "{\n  // the schema\n  \"$schema\": \"x\",\n  \"mcp\": { \"other\": { \"type\": \"local\", \"command\": [\"npx\"] } },\n}",
        ),
    ] {
        sandbox.at_home(path, text);
    }
    for (path, text) in [
        (".mcp.json", servers),
        (".claude/settings.json", "{}\n"),
        (".codex/config.toml", "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"true\"\n"),
        (".cursor/mcp.json", "{ \"mcpServers\": {} }\n"),
        (".gemini/settings.json", "{\"mcpServers\":{}}"),
        (".vscode/mcp.json", commented),
        (".github/hooks/other.json", "{}"),
        ("opencode.json", "{\n  \"mcp\": {\n    \"servers\": {}\n  }\n}\n"),
        (".git/hooks/post-commit", "#!/bin/sh\nset -e\nexit 0\n"),
    ] {
        sandbox.write(path, text);
    }
    let hook = sandbox.tree().join(".git/hooks/post-commit");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o750)).expect("ours");
    sandbox
}

const AGENTS: &[&str] = &["claude", "codex", "cursor", "gemini", "vscode", "opencode"];

#[test]
fn what_is_installed_is_taken_out_to_the_byte() {
    let empty = indexed();
    for directory in [".claude", ".codex", ".cursor", ".gemini", ".copilot/hooks", "opencode/plugins"] {
        fs::create_dir_all(empty.home().join(directory)).expect("new");
    }
    for directory in [".claude", ".github", ".opencode"] {
        fs::create_dir_all(empty.tree().join(directory)).expect("new");
    }
    for sandbox in [prepared(), indexed(), empty] {
        let before = sandbox.state();
        let mut both = Vec::new();
        for host in AGENTS {
            both.push(vec!["install", host, "--user"]);
            both.push(vec!["install", host, "--project"]);
        }
        both.push(vec!["install", "git"]);
        for arguments in &both {
            let untouched = sandbox.state();
            let dry = sandbox.named(&[arguments.as_slice(), &["--dry-run"]].concat()).ended(0);
            assert_eq!(sandbox.state(), untouched, "{arguments:?} wrote something");
            let run = sandbox.named(arguments).ended(0);
            assert_eq!(run.out, dry.out);
            assert!(run.out.contains("+++") && run.err.contains("registered in"), "{run:?}");
            let installed = sandbox.state();
            let again = sandbox.named(arguments).ended(0);
            assert_eq!((again.out.as_str(), sandbox.state() == installed), ("", true), "{arguments:?} again: {again:?}");
            assert!(again.err.contains("already"), "{again:?}");
        }
        for arguments in both.iter().rev() {
            let arguments: Vec<&str> = arguments.iter().map(|word| if *word == "install" { "uninstall" } else { word }).collect();
            let installed = sandbox.state();
            sandbox.named(&[arguments.as_slice(), &["--dry-run"]].concat()).ended(0);
            assert!(sandbox.state() == installed, "{arguments:?} wrote something");
            let run = sandbox.named(&arguments).ended(0);
            assert!(run.out.contains("---"), "{run:?}");
            let again = sandbox.named(&arguments).ended(0);
            assert!(again.out.is_empty() && again.err.contains("nothing"), "{again:?}");
        }
        let after = sandbox.state();
        assert_eq!(after, before);
    }
}

#[test]
fn one_host_does_not_touch_another() {
    let sandbox = prepared();
    for (host, files) in [
        ("claude", ["home/.claude/settings.json", "home/.claude.json"].as_slice()),
        ("codex", &["home/.codex/config.toml", "home/.codex/hooks.json"]),
        ("cursor", &["home/.cursor/hooks.json", "home/.cursor/mcp.json"]),
        ("gemini", &["home/.gemini/settings.json"]),
        ("vscode", &["home/.copilot/hooks/sextant.json", "home/.copilot/mcp-config.json"]),
        ("opencode", &["home/opencode/opencode.jsonc", "home/opencode/plugins/sextant.js"]),
    ] {
        let before = tree(&sandbox.path());
        sandbox.named(&["install", host]).ended(0);
        let after = tree(&sandbox.path());
        let changed: Vec<String> = after
            .iter()
            .filter(|(path, (_, text))| !text.is_empty() && before.get(*path).map(|(_, text)| text) != Some(text))
            .map(|(path, _)| path.display().to_string())
            .filter(|path| path != "bin/sextant")
            .collect();
        assert_eq!(changed, files, "{host}");
    }
}

#[test]
fn the_difference_is_printed() {
    let sandbox = prepared();
    let check = |arguments: &[&str], want: &str| {
        let run = sandbox.named(&[&["install", "--dry-run"], arguments].concat()).ended(0);
        assert_eq!(run.out, want, "{}", run.out);
        assert!(run.err.contains("nothing was written"), "{run:?}");
    };
    check(
        &["vscode", "--project"],
        "--- .vscode/mcp.json
+++ .vscode/mcp.json
@@ -3,5 +3,10 @@
 \t\"servers\": {
 \t\t// theirs
 \t\t\"other\": { \"command\": \"npx\" }, // and why
+\t\t\"sextant\": {
+\t\t\t\"type\": \"stdio\",
+\t\t\t\"command\": \"sextant\",
+\t\t\t\"args\": [\"mcp\"]
+\t\t},
 \t},
 }
--- /dev/null
+++ .github/hooks/sextant.json
@@ -0,0 +1,12 @@
+{
+  \"hooks\": {
+    \"PostToolUse\": [
+      {
+        \"type\": \"command\",
+        \"command\": \"sextant hook vscode\",
+        \"timeout\": 15
+      }
+    ]
+  },
+  \"version\": 1
+}
",
    );
    check(
        &["codex"],
        "--- ~/.codex/config.toml
+++ ~/.codex/config.toml
@@ -3,3 +3,7 @@
 
 [mcp_servers.other]
 command = \"npx\"
+
+[mcp_servers.sextant]
+command = \"sextant\"
+args = [\"mcp\"]
--- ~/.codex/hooks.json
+++ ~/.codex/hooks.json
@@ -4,6 +4,16 @@
             {
                 \"matcher\": \"Bash\",
                 \"hooks\": [{ \"type\": \"command\", \"command\": \"true\" }]
+            },
+            {
+                \"matcher\": \"apply_patch|Edit|Write\",
+                \"hooks\": [
+                    {
+                        \"type\": \"command\",
+                        \"command\": \"sextant hook codex\",
+                        \"timeout\": 10
+                    }
+                ]
             }
         ]
     }
",
    );
    // A layer that has hooks in its configuration gets no second place for them.
    check(
        &["codex", "--project"],
        "--- .codex/config.toml
+++ .codex/config.toml
@@ -2,3 +2,15 @@
 [[hooks.Stop.hooks]]
 type = \"command\"
 command = \"true\"
+
+[mcp_servers.sextant]
+command = \"sextant\"
+args = [\"mcp\"]
+
+[[hooks.PostToolUse]]
+matcher = \"apply_patch|Edit|Write\"
+
+[[hooks.PostToolUse.hooks]]
+type = \"command\"
+command = \"sextant hook codex\"
+timeout = 10
",
    );
    // The second version of OpenCode names servers in another place.
    let run = sandbox.named(&["install", "opencode", "--project", "--dry-run"]).ended(0);
    assert!(
        run.out.starts_with("--- opencode.json\n+++ opencode.json\n@@ -1,5 +1,7 @@\n {\n   \"mcp\": {\n-    \"servers\": {}\n"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("+      \"sextant\": { \"type\": \"local\", \"command\": [\"sextant\", \"mcp\"] }\n"),
        "{}",
        run.out
    );
}

#[test]
fn hosts_that_are_found_are_registered_with() {
    let sandbox = prepared();
    let run = sandbox.named(&["install", "--dry-run"]).ended(0);
    assert!(run.err.starts_with("found on this machine: claude, codex, cursor, gemini, vscode, opencode\n"), "{}", run.err);
    assert!(!run.out.contains("git/hooks"), "{}", run.out);
    let run = sandbox.named(&["install", "--dry-run", "--project", "--json"]).ended(0);
    let said = run.json();
    let hosts: Vec<&str> = said["files"].as_array().expect("a list").iter().filter_map(|file| file["host"].as_str()).collect();
    let mut named = hosts.clone();
    named.dedup();
    assert_eq!(named, ["claude", "codex", "cursor", "gemini", "vscode", "opencode", "git"]);
    assert_eq!((said["dry_run"].as_bool(), said["files"][0]["change"].as_str()), (Some(true), Some("changed")));
    let bare = Sandbox::new();
    let run = bare.named(&["install"]).ended(1);
    assert!(run.err.contains("no host was found on this machine; name one: claude, codex"), "{run:?}");
}

#[test]
fn a_program_that_is_not_on_the_path_is_named_by_its_own() {
    let sandbox = Sandbox::new();
    sandbox.at_home(".cursor/mcp.json", "{}");
    let run = sandbox.sextant(&["install", "cursor"]).ended(0);
    let program = Path::new(PROGRAM).canonicalize().expect("built");
    assert!(run.err.contains(&format!("its absolute path is written: {}", program.display())), "{run:?}");
    let text = fs::read_to_string(sandbox.home().join(".cursor/mcp.json")).expect("written");
    assert!(text.contains(&format!("\"command\": \"{}\"", program.display())), "{text}");
    // What was written for another place of the program is brought up to date, and not doubled.
    let run = sandbox.named(&["install", "cursor"]).ended(0);
    assert!(run.out.contains("+    \"mcpServers\"") || run.out.contains("+  \"mcpServers\""), "{}", run.out);
    let text = fs::read_to_string(sandbox.home().join(".cursor/mcp.json")).expect("written");
    assert_eq!(text, "{\n  \"mcpServers\": { \"sextant\": { \"command\": \"sextant\", \"args\": [\"mcp\"] } }\n}");
    sandbox.sextant(&["uninstall", "cursor"]).ended(0);
    assert_eq!(tree(&sandbox.home()).len(), 2);
    assert_eq!(fs::read_to_string(sandbox.home().join(".cursor/mcp.json")).expect("there"), "{}");
}

#[test]
fn nothing_is_written_when_one_file_is_wrong() {
    let check = |path: &str, text: &[u8], arguments: &[&str], said: &str| {
        let sandbox = prepared();
        write_file(&sandbox.path().join(path), text);
        let before = sandbox.state();
        let run = sandbox.named(&[&["install", "claude", "gemini"], arguments].concat()).ended(5);
        assert!(run.err.contains(said) && run.err.contains("host_file_unusable"), "{said}: {}", run.err);
        assert!(!run.err.contains(&*sandbox.path().to_string_lossy()), "a relative path: {}", run.err);
        assert!(sandbox.state() == before, "{path}");
    };
    check("home/.gemini/settings.json", b"{ \"theme\": ", &[], "~/.gemini/settings.json cannot be edited: it is no valid JSON");
    check("home/.gemini/settings.json", b"\xff\xfe", &[], "~/.gemini/settings.json cannot be used: it is not UTF-8");
    check("home/.gemini/settings.json", b"{\"mcpServers\": []}", &[], "`mcpServers` is not an object");
    check("home/.gemini/settings.json", b"{\"hooks\": {\"AfterTool\": {}}}", &[], "`AfterTool` is not a list");
    check(
        "home/.gemini/settings.json",
        b"{\"mcpServers\": {\"sextant\": {\"command\": \"npx\"}}}",
        &[],
        "a server `sextant` of another program",
    );
    check("tree/.gemini/settings.json", b"[]", &["--project"], ".gemini/settings.json cannot be edited: it holds no object");
    check(
        "home/.codex/config.toml",
        b"model = \"secret",
        &["codex"],
        "~/.codex/config.toml cannot be edited: it is no valid TOML",
    );
    check("home/opencode/plugins/sextant.js", b"mine", &["opencode"], "not the plugin that this program writes");
    check("tree/.git/hooks/post-merge", b"#!/usr/bin/env python3\n", &["git"], "post-merge cannot be edited");
    // A mode that even the superuser is asked to heed, a directory, and a link that leads nowhere but to itself.
    for (path, said) in [
        (".gemini/settings.json", "it is read-only"),
        (".gemini/settings.json", "it is not a file"),
        (".gemini/settings.json", "circle"),
    ] {
        let sandbox = prepared();
        let path = sandbox.home().join(path);
        match said {
            "it is read-only" => fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("ours"),
            "it is not a file" => {
                fs::remove_file(&path).and_then(|()| fs::create_dir(&path)).expect("ours");
            }
            _ => {
                fs::remove_file(&path).and_then(|()| symlink("settings.json", &path)).expect("ours");
            }
        }
        let before = sandbox.state();
        let run = sandbox.named(&["install", "claude", "gemini"]).ended(5);
        assert!(run.err.contains(said), "{run:?}");
        assert!(sandbox.state() == before, "{said}");
    }
}

#[test]
fn links_are_followed_and_modes_are_kept() {
    let sandbox = Sandbox::new();
    let dotfiles = sandbox.path().join("dotfiles");
    write_file(&dotfiles.join("claude.json"), b"{\n  \"a\": 1\n}\n");
    fs::set_permissions(dotfiles.join("claude.json"), fs::Permissions::from_mode(0o600)).expect("ours");
    fs::create_dir(dotfiles.join("claude")).expect("new");
    symlink("../dotfiles/claude.json", sandbox.home().join(".claude.json")).expect("new");
    symlink(dotfiles.join("claude"), sandbox.home().join(".claude")).expect("new");
    symlink(dotfiles.join("settings.json"), dotfiles.join("claude/settings.json")).expect("new");
    let before = tree(&sandbox.path());
    sandbox.named(&["install", "claude"]).ended(0);
    let after = tree(&sandbox.path());
    assert_eq!(after[Path::new("home/.claude.json")], before[Path::new("home/.claude.json")], "it is still a link");
    let (mode, text) = &after[Path::new("dotfiles/claude.json")];
    assert!(mode & 0o777 == 0o600 && text.contains("\"sextant\""), "{mode:o} {text}");
    assert!(after[Path::new("dotfiles/settings.json")].1.contains("sextant hook claude"), "a link to what is not there yet");
    sandbox.named(&["uninstall", "claude"]).ended(0);
    let mut left = tree(&sandbox.path());
    left.retain(|path, _| !path.starts_with("bin"));
    assert_eq!(left, before);
}

#[test]
fn hooks_of_git_are_where_it_looks_for_them() {
    let hooks = |directory: &Path| {
        let mut names: Vec<String> = fs::read_dir(directory)
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("post-") && !name.ends_with(".sample"))
            .collect();
        names.sort();
        names.join(" ")
    };
    let all = "post-checkout post-commit post-merge post-rewrite";
    let sandbox = indexed();
    // A linked worktree has those of the repository.
    sandbox.git(&["worktree", "add", "--quiet", "../linked"]);
    let linked = sandbox.path().join("linked");
    let linked = linked.to_string_lossy();
    sandbox.named(&["install", "git", "--root", &linked]).ended(0);
    assert_eq!(hooks(&sandbox.tree().join(".git/hooks")), all);
    sandbox.named(&["uninstall", "git"]).ended(0);
    assert_eq!(hooks(&sandbox.tree().join(".git/hooks")), "");
    for (set, directory) in [(".husky/_", "tree/.husky/_"), ("~/githooks", "home/githooks")] {
        sandbox.git(&["config", "core.hooksPath", set]);
        let run = sandbox.named(&["install", "git"]).ended(0);
        assert_eq!(run.err.contains("other repositories may run these hooks"), set.starts_with('~'), "{run:?}");
        assert_eq!(hooks(&sandbox.path().join(directory)), all);
        sandbox.named(&["uninstall", "git"]).ended(0);
        assert_eq!(hooks(&sandbox.path().join(directory)), "");
    }
    sandbox.git(&["config", "core.hooksPath", "/dev/null"]);
    let run = sandbox.named(&["install", "git"]).ended(5);
    assert!(run.err.contains("runs no hooks") && run.err.contains("/dev/null"), "{run:?}");
    sandbox.git(&["config", "--unset", "core.hooksPath"]);
    // One that Git does not run is not to be woken.
    sandbox.write(".git/hooks/post-merge", "#!/bin/sh\nfalse\n");
    let run = sandbox.named(&["install", "git"]).ended(5);
    assert!(run.err.contains("it is not executable"), "{run:?}");
    for (arguments, said) in
        [(&["install", "git", "--user"][..], "belong to a repository"), (&["install", "--user", "--project"], "cannot be used")]
    {
        assert!(sandbox.named(arguments).ended(2).err.contains(said));
    }
    let bare = Sandbox::new();
    assert!(bare.named(&["install", "git"]).ended(2).err.contains("no Git repository"));
}

#[test]
fn git_runs_what_was_installed_and_waits_for_nothing() {
    let sandbox = indexed();
    sandbox.write(".git/hooks/post-commit", "#!/bin/sh\ncat >/dev/null\necho theirs >theirs.txt\nexit 0\n");
    let hook = sandbox.tree().join(".git/hooks/post-commit");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).expect("ours");
    sandbox.sextant(&["install", "git"]).ended(0);
    sandbox.write("lib.py", "def committed(): pass\n");
    let git = |arguments: &[&str]| {
        let output = sandbox.command("git").args(arguments).output().expect("git is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let end = Instant::now() + Duration::from_secs(60);
        while sandbox.sextant(&["export", "--on-stale", "refuse"]).status != Some(0) {
            assert!(Instant::now() < end, "nothing synced after {arguments:?}");
            std::thread::yield_now();
        }
    };
    git(&["commit", "--quiet", "--all", "--message", "second"]);
    assert_eq!(fs::read_to_string(sandbox.tree().join("theirs.txt")).expect("theirs ran"), "theirs\n");
    git(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    git(&["commit", "--quiet", "--amend", "--message", "other"]);
}

#[test]
fn every_host_hears_what_it_wants_to_read() {
    let sandbox = indexed();
    let file = sandbox.tree().join("lib.py");
    let tree = sandbox.tree();
    let patch = "*** Begin Patch\n*** Update File: lib.py\n@@\n-x\n+y\n*** End Patch";
    for (index, (host, reply, said)) in [
        ("claude", "", serde_json::json!({"cwd": tree, "tool_input": {"file_path": file}})),
        ("codex", "", serde_json::json!({"cwd": tree, "tool_name": "apply_patch", "tool_input": {"command": patch}})),
        ("cursor", "{}\n", serde_json::json!({"workspace_roots": [tree], "file_path": file, "edits": []})),
        ("gemini", "{}\n", serde_json::json!({"cwd": tree, "tool_name": "write_file", "tool_input": {"file_path": file}})),
        ("vscode", "{}\n", serde_json::json!({"cwd": tree, "tool_name": "editFiles", "tool_input": {"files": ["lib.py"]}})),
        ("opencode", "", serde_json::json!({"directory": tree, "files": [], "patches": [patch]})),
    ]
    .into_iter()
    .enumerate()
    {
        sandbox.write("lib.py", format!("def f{index}(): pass\n"));
        let path = sandbox.path().join("said.json");
        fs::write(&path, said.to_string()).expect("written");
        let mut command = sandbox.program(&["hook", host]);
        // From elsewhere, so that only what is said leads to the worktree.
        command.current_dir(sandbox.home()).stdin(fs::File::open(&path).expect("written"));
        let run = Run::of(&mut command).ended(0);
        assert_eq!((run.out.as_str(), run.err.as_str()), (reply, ""), "{host}");
        sandbox.sextant(&["export", "--on-stale", "refuse"]).ended(0);
    }
}
