//! Folders as languages name them: relative to the top of the repository, which is the empty one.
//!
//! Must not know the disk. Invariant: what leads out of the repository is nothing.

/// Returns the folder and all around it, nearest first, the top (`""`) last.
pub(super) fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |inner| {
        if inner.is_empty() { None } else { Some(inner.rsplit_once('/').map_or("", |(outer, _)| outer)) }
    })
}

/// Returns the path of what is named below a folder; the folder itself where nothing is named.
pub(super) fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        (folder, "") => folder.to_owned(),
        ("", name) => name.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// Returns where a relative path leads to from a folder; `None` outside of the repository.
pub(super) fn follow(folder: &str, relative: &str) -> Option<String> {
    if relative.starts_with('/') || relative.contains(':') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
