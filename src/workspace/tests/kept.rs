//! Scans by one worktree that lives on, against scans by one opened anew, over random stories of changes.
//!
//! Invariant: what is kept shows in nothing but the work that it spares.

use super::*;
use crate::workspace::inventory::Inventory;
use crate::workspace::kept::Grounds;

fn kept_inventory(worktree: &Worktree, policy: &Policy) -> Option<Arc<Inventory>> {
    let root = directory::Root::open(worktree.root()).expect("a root");
    let git = scan::look_at_git(worktree, &root, None).expect("readable");
    worktree.kept.listing(&Grounds::of(&git, policy)).map(|listing| listing.inventory.clone())
}

/// Entries, unrepresentable paths and the digest of all; or what went wrong.
type Seen = Result<(Arc<[Entry]>, Vec<String>, ContentHash), String>;

fn seen(worktree: &Worktree, policy: &Policy) -> Seen {
    let capture = scan(worktree, policy, LIMITS, &|_, _, _| {}).map_err(|error| error.to_string())?;
    let digest = capture.state_digest();
    Ok((capture.entries, capture.unrepresentable, digest))
}

#[test]
fn a_scan_is_the_same_with_what_was_kept() {
    let mut next = dice(0x9e37_79b9_7f4a_7c15);
    let names = ["a", "b", "x.py", "lib", "build", "dist", "a:b", "y.env"];
    let rules = ["a", "b/", "*.py", "!x.py", "lib/", "!build/", "/a/b", "dist"];
    for with_git in [true, true, false] {
        let fixture = if with_git { Fixture::repository() } else { Fixture::folder() };
        let kept = fixture.worktree();
        let policies = [policy(true, &[]), policy(false, &[]), policy(true, &["lib"])];
        for step in 0..60 {
            let (path, to) = (fixture.some_path(&names, &mut next), fixture.some_path(&names, &mut next));
            // Whatever cannot be done is another way of changing nothing.
            let _ = path.parent().map(fs::create_dir_all);
            let action = next(11);
            let _ = match action {
                0..=2 => fs::write(&path, "x"),
                3 => fs::remove_file(&path),
                4 => fs::remove_dir_all(&path),
                5 => fs::rename(&path, &to),
                6 => fs::write(path.with_file_name(".gitignore"), format!("{}\n", rules[next(rules.len())])),
                7 => fs::remove_file(path.with_file_name(".gitignore")),
                8 => fs::create_dir_all(path.join(".git/objects"))
                    .and_then(|()| fs::create_dir_all(path.join(".git/refs")))
                    .and_then(|()| fs::write(path.join(".git/HEAD"), "ref: refs/heads/main\n")),
                9 => fs::remove_dir_all(path.join(".git")),
                _ if with_git => {
                    let add: &[&str] =
                        if next(2) == 0 { &["add", "-A"] } else { &["rm", "-rq", "--cached", "--ignore-unmatch", "."] };
                    fixture.command(fixture.directory.path()).args(add).output().map(|_| ())
                }
                _ => symlink("a", &path),
            };
            let policy = &policies[if next(4) == 0 { next(3) } else { 0 }];
            let what = format!("step {step}: {action} at {path:?} or {to:?}, git: {with_git}");
            assert_eq!(seen(&kept, policy), seen(&fixture.worktree(), policy), "{what}");
            assert_eq!(seen(&kept, policy), seen(&fixture.worktree(), policy), "{what}, once more");
        }
    }
}

#[test]
fn an_unchanged_tree_is_listed_from_what_was_kept() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "1").write("d/b.py", "2").write("d/.gitignore", "c\n").commit().write("new/c.py", "3");
    let (worktree, policy) = (fixture.worktree(), policy(true, &[]));
    let inventory = || {
        seen(&worktree, &policy).expect("a capture");
        kept_inventory(&worktree, &policy).expect("kept")
    };
    let first = inventory();
    fixture.write("a.py", "changed").write("d/b.py", "changed");
    assert!(Arc::ptr_eq(&first, &inventory()), "bytes of files make no listing");
    fixture.write("d/.gitignore", "b.py\n");
    let ruled = inventory();
    assert!(!Arc::ptr_eq(&first, &ruled), "rules do");
    fixture.write("d/e.py", "4");
    assert!(!Arc::ptr_eq(&ruled, &inventory()), "names do");
}
