//! What hosts say of an edit on the standard input of a hook, and what they want to read of it.
//!
//! Must not know what becomes of the paths. Invariant: whatever is said, be it garbage, names at least the directory that the host stands
//! in, and never more than it says.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// How a host speaks.
#[derive(Debug)]
pub struct Speech {
    name: &'static str,
    /// Whether it says on standard input, in JSON, what happened.
    pub speaks: bool,
    /// Where in what it says the edited path is, or a list of such; all that are there count. A `*` stands for each element.
    paths: &'static [&'static str],
    /// Where the text of a patch may be, whose heads name files.
    patches: &'static [&'static str],
    /// Where the directory is that relative paths start from, the first one that is there; of a list, the first.
    directories: &'static [&'static str],
    /// What it wants to read.
    pub reply: &'static str,
}

/// Of a call of a tool, by Claude Code and whoever follows its form.
const TOOL_PATHS: &[&str] = &[
    "/tool_input/file_path",
    "/tool_input/notebook_path",
    "/tool_input/filePath",
    "/tool_input/path",
    "/tool_input/files",
    "/tool_input/files/*/path",
    "/tool_input/files/*/filePath",
    "/tool_input/replacements/*/filePath",
];
const TOOL_PATCHES: &[&str] = &["/tool_input/command", "/tool_input/input", "/tool_input/patch", "/tool_input"];

static SPEECHES: &[Speech] = &[
    Speech { name: "claude", speaks: true, paths: TOOL_PATHS, patches: &[], directories: &["/cwd"], reply: "" },
    Speech { name: "codex", speaks: true, paths: TOOL_PATHS, patches: TOOL_PATCHES, directories: &["/cwd"], reply: "" },
    Speech {
        name: "cursor",
        speaks: true,
        paths: &["/file_path", "/tool_input/file_path", "/tool_input/path"],
        patches: &[],
        directories: &["/cwd", "/workspace_roots"],
        reply: "{}\n",
    },
    Speech { name: "gemini", speaks: true, paths: TOOL_PATHS, patches: &[], directories: &["/cwd"], reply: "{}\n" },
    // The last two pointers are of hooks that are registered under a name in camel case.
    Speech {
        name: "vscode",
        speaks: true,
        paths: &[
            "/tool_input/file_path",
            "/tool_input/filePath",
            "/tool_input/path",
            "/tool_input/files",
            "/tool_input/files/*/path",
            "/tool_input/files/*/filePath",
            "/tool_input/replacements/*/filePath",
            "/toolArgs/path",
            "/toolArgs/filePath",
        ],
        patches: TOOL_PATCHES,
        directories: &["/cwd"],
        reply: "{}\n",
    },
    Speech {
        name: "opencode",
        speaks: true,
        paths: &["/files"],
        patches: &["/patches"],
        directories: &["/directory"],
        reply: "",
    },
    // Runs its hooks in the top of the worktree.
    Speech { name: "git", speaks: false, paths: &[], patches: &[], directories: &[], reply: "" },
];

impl Speech {
    /// Returns how a host of that name speaks.
    pub fn of(name: &str) -> Option<&'static Self> {
        SPEECHES.iter().find(|host| host.name == name)
    }

    /// Returns the names of the hosts that are known.
    pub fn hosts() -> impl Iterator<Item = &'static str> {
        SPEECHES.iter().map(|host| host.name)
    }

    /// Returns the places that were edited; where the host names none, the directories it stands in.
    pub fn places(&self, said: &Value, here: &Path) -> Vec<PathBuf> {
        let said_directories: Vec<&str> = self.directories.iter().flat_map(|pointer| texts(said, pointer)).collect();
        let mut directories: Vec<PathBuf> =
            said_directories.into_iter().filter(|path| !path.is_empty()).map(|path| here.join(path)).collect();
        if directories.is_empty() {
            directories.push(here.to_owned());
        }
        let named = self.paths.iter().flat_map(|pointer| texts(said, pointer));
        let patched = self.patches.iter().flat_map(|pointer| texts(said, pointer)).flat_map(patched);
        let mut places: Vec<PathBuf> =
            named.chain(patched).filter(|path| !path.is_empty()).map(|path| directories[0].join(path)).collect();
        places.dedup();
        if places.is_empty() { directories } else { places }
    }
}

/// Returns the texts at a place: one, or those of a list.
fn texts<'a>(said: &'a Value, pointer: &str) -> Vec<&'a str> {
    let Some((before, after)) = pointer.split_once("/*") else {
        return match said.pointer(pointer) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
    };
    let Some(Value::Array(values)) = said.pointer(before) else { return Vec::new() };
    values.iter().flat_map(|value| texts(value, after)).collect()
}

/// Returns the paths that the heads of a patch name, in the form of `apply_patch`.
fn patched(text: &str) -> impl Iterator<Item = &str> {
    const HEADS: &[&str] = &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    text.lines().filter_map(|line| HEADS.iter().find_map(|head| line.strip_prefix(head))).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, said: &str, want: &str) {
        let host = Speech::of(host).expect("known");
        let value = serde_json::from_str(said).unwrap_or(Value::Null);
        let found: Vec<String> = host.places(&value, Path::new("/here")).iter().map(|path| path.display().to_string()).collect();
        assert_eq!(found.join(" "), want, "{said}");
    }

    #[test]
    fn edited_paths_as_hosts_say_them() {
        check("claude", r#"{"cwd":"/r","tool_name":"Edit","tool_input":{"file_path":"/r/a.py","old_string":"x"}}"#, "/r/a.py");
        check("claude", r#"{"cwd":"/r","tool_input":{"file_path":"src/a.py"}}"#, "/r/src/a.py");
        check("claude", r#"{"cwd":"/r","tool_input":{"notebook_path":"/r/n.ipynb"}}"#, "/r/n.ipynb");
        check("claude", r#"{"cwd":"/r","tool_name":"Bash","tool_input":{"command":"sed -i s/a/b/ x.py"}}"#, "/r");
        check("claude", r#"{"tool_input":{"file_path":["a.py","b.py",3]}}"#, "/here/a.py /here/b.py");
        check(
            "cursor",
            r#"{"conversation_id":"c","workspace_roots":["/r"],"hook_event_name":"afterFileEdit","file_path":"/r/a.py","edits":[]}"#,
            "/r/a.py",
        );
        check("cursor", r#"{"workspace_roots":["/r","/s"],"tool_input":{"file_path":"a.py"}}"#, "/r/a.py");
        check("cursor", r#"{"workspace_roots":["/r","/s"],"hook_event_name":"stop"}"#, "/r /s");
        check(
            "gemini",
            r#"{"cwd":"/r","hook_event_name":"AfterTool","tool_name":"write_file","tool_input":{"file_path":"/r/a.py"}}"#,
            "/r/a.py",
        );
        check("vscode", r#"{"cwd":"/r","tool_name":"editFiles","tool_input":{"files":["a.py","b.py"]}}"#, "/r/a.py /r/b.py");
        check("vscode", r#"{"cwd":"/r","tool_name":"Edit","tool_input":{"path":"/r/a.py","old_str":"x"}}"#, "/r/a.py");
        check(
            "vscode",
            r#"{"cwd":"/r","tool_input":{"replacements":[{"filePath":"/r/a.py"},{"filePath":"/r/b.py"},7]}}"#,
            "/r/a.py /r/b.py",
        );
        check("vscode", r#"{"cwd":"/r","toolName":"edit","toolArgs":{"path":"/r/a.py"}}"#, "/r/a.py");
        check("opencode", r#"{"directory":"/r","files":["/r/a.py","b.py"],"patches":[]}"#, "/r/a.py /r/b.py");
        check("git", r#"{"cwd":"/r"}"#, "/here");
    }

    #[test]
    fn patches_name_the_files_they_change() {
        let patch = "*** Begin Patch\\n*** Update File: src/a.py\\n*** Move to: src/b.py\\n@@\\n-*** Add File: no.py\\n+x\\n\
                     *** Add File: new dir/c.py\\n+y\\n*** Delete File: /r/d.py\\r\\n*** End Patch";
        let want = "/r/src/a.py /r/src/b.py /r/new dir/c.py /r/d.py";
        check("codex", &format!(r#"{{"cwd":"/r","tool_name":"apply_patch","tool_input":{{"command":"{patch}"}}}}"#), want);
        check("codex", &format!(r#"{{"cwd":"/r","tool_input":{{"command":["apply_patch","{patch}"]}}}}"#), want);
        check("codex", &format!(r#"{{"cwd":"/r","tool_input":"{patch}"}}"#), want);
        check("codex", r#"{"cwd":"/r","tool_name":"Bash","tool_input":{"command":"ls"}}"#, "/r");
        check("vscode", &format!(r#"{{"cwd":"/r","tool_name":"apply_patch","tool_input":{{"input":"{patch}"}}}}"#), want);
        check("opencode", &format!(r#"{{"directory":"/r","files":[],"patches":["{patch}"]}}"#), want);
    }

    #[test]
    fn garbage_names_the_directory_alone() {
        for host in Speech::hosts() {
            for garbage in
                ["", "{", "null", "[1]", "\"x\"", r#"{"cwd":7,"tool_input":[],"workspace_roots":{},"files":{}}"#, "\u{0}"]
            {
                check(host, garbage, "/here");
            }
        }
    }
}
