//! The worktree and its index, as the doctor sees them.
//!
//! Must not know the machine. Invariant: an index that is missing or stale is a warning, as one command makes it anew.

use crate::cli::arguments::Global;
use crate::cli::failure::Failure;
use crate::config::{Config, Environment};
use crate::engine::{Desk, LastBuild, StatusWord, Survey};
use crate::render::text::{counted, duration, grouped};

use super::Finding;

/// Reasons to leave out what people may want to have indexed, and what to do about each.
const REGRETTED: &[(&str, &str)] = &[
    ("unreadable", "give yourself the right to read them, or `exclude` them"),
    ("oversize", "raise `max_file_bytes` under [limits] if they are sources"),
    ("not_utf8", "store them as UTF-8 if they are sources"),
    ("unrepresentable_path", "rename them: a path with `:` or `\\`, or that is not UTF-8, cannot be named in an answer"),
];

pub fn said_of_configuration(config: &Config, global: &Global, environment: &Environment) -> String {
    let from = match (&global.config, &environment.config) {
        (Some(path), _) => format!("{} (--config)", path.display()),
        (None, Some(path)) => format!("{} (SEXTANT_CONFIG)", path.display()),
        (None, None) => return "defaults; no file is named".to_owned(),
    };
    match config.scope_names().as_slice() {
        [] => format!("{from}, without scopes"),
        names => format!("{from}, with {}: {}", if names.len() == 1 { "the scope" } else { "the scopes" }, names.join(", ")),
    }
}

pub fn root(desk: &Desk) -> Finding {
    let scope = desk.scope();
    let said = format!("{} (scope {})", scope.root().display(), scope.id());
    if scope.enabled() {
        Finding::ok("root", said)
    } else {
        Finding::problem("root", format!("{said} is disabled"), "set `enabled = true` in the configuration file")
    }
}

pub fn git(survey: &Survey) -> Finding {
    let git = &survey.git;
    if !git.present {
        return Finding::ok("git", "no repository: files are found by walking, with the rules of `.gitignore` and the scope");
    }
    let short = |id: &String| id.chars().take(12).collect::<String>();
    let branch = git.branch.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    let said = match (branch, git.head.as_ref().map(short)) {
        (Some(branch), Some(commit)) => format!("branch {branch} at {commit}"),
        (Some(branch), None) => format!("branch {branch}, without a commit yet"),
        (None, commit) => format!("on no branch, at {}", commit.unwrap_or_default()),
    };
    Finding::ok("git", format!("{said} ({})", git.object_format))
}

pub fn files(survey: &Survey) -> Finding {
    let said = format!(
        "{}, {} KiB in {}, listed and read in {}",
        counted(survey.files, "file"),
        grouped(survey.bytes.div_ceil(1 << 10)),
        if survey.directories == 1 { "1 directory".to_owned() } else { format!("{} directories", grouped(survey.directories)) },
        duration(survey.elapsed)
    );
    if survey.files == 0 {
        return Finding::warning("files", "nothing is there to be indexed", "see what is left out and why, below");
    }
    let regretted = survey.omitted.iter().filter_map(|omitted| {
        let (_, remedy) = REGRETTED.iter().find(|(reason, _)| *reason == omitted.reason)?;
        Some((omitted, *remedy))
    });
    let (mut left_out, mut remedies) = (Vec::new(), Vec::new());
    for (omitted, remedy) in regretted {
        left_out.push(format!("{} {}", grouped(omitted.count), omitted.reason));
        remedies.push(format!("{}: {remedy}", omitted.reason));
    }
    if left_out.is_empty() {
        return Finding::ok("files", said);
    }
    Finding::warning("files", format!("{said}; left out: {}", left_out.join(", ")), remedies.join("; "))
}

/// Says how the index is, and which files in it could not be parsed.
pub fn index(desk: &Desk) -> Vec<Finding> {
    let status = desk.status();
    let reason = status.reason.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
    let mut found = vec![match status.status {
        StatusWord::Ready => {
            let fingerprint: String = status.fingerprint.iter().flat_map(|text| text.chars().take(12)).collect();
            Finding::ok("index", format!("equals the worktree: {fingerprint}…"))
        }
        StatusWord::Missing => Finding::warning("index", "nothing was indexed yet", "run `sextant index`"),
        StatusWord::Building => Finding::ok("index", "the first one is being built"),
        StatusWord::Stale => Finding::warning(
            "index",
            format!("differs from the worktree, or could not be compared with it{reason}"),
            "run `sextant sync`; questions about a worktree that no configuration names do so by themselves",
        ),
        StatusWord::Disabled => Finding::problem("index", format!("is not asked{reason}"), "set `enabled = true`"),
        StatusWord::Failed => {
            let failure = Failure::new(status.reason.as_deref().unwrap_or_default(), "cannot be used");
            Finding::of_failure("index", &failure)
        }
    }];
    let Some(last) = status.last_build else { return found };
    if let LastBuild::Failed { reason, finished_at } = &last.build
        && status.status != StatusWord::Failed
    {
        let failure = Failure::new(reason, "");
        found.push(Finding::warning("last build", format!("failed at {finished_at} ({reason})"), failure.remedy()));
    }
    if last.failed_files > 0 {
        let named: Vec<&str> = last.failures.iter().take(3).map(|failed| failed.path.as_str()).collect();
        let more = if last.failed_files > named.len() as u64 { ", …" } else { "" };
        found.push(Finding::warning(
            "parsed files",
            format!("{} could not be parsed: {}{more}", counted(last.failed_files, "file"), named.join(", ")),
            "raise `parse_seconds` or `worker_memory_bytes` under [limits], or `exclude` them; `sextant index` tries again",
        ));
    }
    found
}
