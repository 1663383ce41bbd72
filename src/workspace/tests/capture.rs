//! What a scan makes of a tree that changes under it, each race told as a story by the moments of the scan.
//!
//! Invariant: nothing outside the root is ever read, nothing is waited for, and a file that is captured had those bytes at one moment.

use std::cell::Cell;
use std::os::unix::net::UnixListener;
use std::rc::Rc;

use super::*;
use crate::workspace::moments::{Moment, during};

/// What became of a scan.
struct Seen {
    capture: Result<Capture, WorkspaceError>,
    /// The text that each path was given with last.
    contents: BTreeMap<String, String>,
    /// How often a file was opened.
    opened: usize,
}

/// Scans while `hook` changes the tree. It is told how often a file was opened until then.
fn scan_while(fixture: &Fixture, include_untracked: bool, mut hook: impl FnMut(Moment, &str, usize) + 'static) -> Seen {
    let contents = Mutex::new(BTreeMap::new());
    let opened = Rc::new(Cell::new(0));
    let counter = Rc::clone(&opened);
    let count = move |moment: Moment, path: &str| {
        counter.set(counter.get() + usize::from(moment == Moment::Opened));
        hook(moment, path, counter.get());
    };
    let worktree = fixture.worktree();
    let capture = during(count, || {
        scan(&worktree, &policy(include_untracked, &[]), LIMITS, &|path, hash, bytes| {
            assert_eq!(*hash, ContentHash::of(bytes));
            let text = String::from_utf8(bytes.to_vec()).expect("tests write text");
            assert!(!text.contains("outside"), "{path} shows what is not its own");
            contents.lock().expect("no panic").insert(path.to_string(), text);
        })
    });
    Seen { capture, contents: contents.into_inner().expect("no panic"), opened: opened.get() }
}

/// Scans a tree of `a.py`, `d/x.py` and `z.py` that `change` alters right after it was listed, with and without untracked files.
#[track_caller]
fn check_after_listing(change: impl Fn(&Path) + Copy + 'static, expected: &[&str]) {
    for include_untracked in [true, false] {
        let fixture = Fixture::repository();
        fixture.write("a.py", "a").write("d/x.py", "x").write("z.py", "z").commit();
        let root = fixture.directory.path().to_owned();
        let hook = move |moment, _: &str, _| {
            if moment == Moment::Listed {
                change(&root);
            }
        };
        check(&scan_while(&fixture, include_untracked, hook).capture.expect("a capture"), expected);
    }
}

fn remove(path: PathBuf) {
    fs::remove_file(path).expect("it is there");
}

#[test]
fn a_file_becomes_a_link_before_it_is_opened() {
    for place in ["a.py", "..", "/etc/hostname", "/dev/zero", "/dev/stdin", "nowhere"] {
        check_after_listing(
            move |root| {
                remove(root.join("z.py"));
                symlink(place, root.join("z.py")).expect("a link");
            },
            &["a.py", "d/x.py", "z.py (symlink)"],
        );
    }
}

#[test]
fn a_folder_becomes_a_link_before_its_files_are_opened() {
    let outside = Fixture::folder();
    outside.write("x.py", "outside");
    let secret = outside.path("x.py").canonicalize().expect("it exists");
    let below_root = secret.strip_prefix("/").expect("absolute").to_owned();
    // Through the link `d` to `/` the listed path would lead to the file outside.
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").write(Path::new("d").join(&below_root).to_str().expect("text"), "inside").commit();
    for target in [PathBuf::from("/"), outside.directory.path().to_owned()] {
        for include_untracked in [true, false] {
            let root = fixture.directory.path().to_owned();
            let target = target.clone();
            let seen = scan_while(&fixture, include_untracked, move |moment, _, _| {
                if moment == Moment::Listed {
                    fs::rename(root.join("d"), root.join("moved")).expect("a rename");
                    symlink(&target, root.join("d")).expect("a link");
                }
            });
            check(&seen.capture.expect("a capture"), &["a.py"]);
            remove(fixture.path("d"));
            fs::rename(fixture.path("moved"), fixture.path("d")).expect("a rename");
        }
    }
}

#[test]
fn a_folder_becomes_a_link_before_it_is_listed() {
    let outside = Fixture::folder();
    outside.write("x.py", "outside");
    for include_untracked in [true, false] {
        let fixture = Fixture::repository();
        fixture.write("a.py", "a").write("d/x.py", "x").commit();
        let (root, target) = (fixture.directory.path().to_owned(), outside.directory.path().to_owned());
        let seen = scan_while(&fixture, include_untracked, move |moment, _, _| {
            if moment == Moment::GitRead {
                fs::rename(root.join("d"), root.join(".git/d")).expect("a rename");
                symlink(&target, root.join("d")).expect("a link");
            }
        });
        let expected: &[&str] = if include_untracked { &["a.py", "d (symlink)"] } else { &["a.py"] };
        check(&seen.capture.expect("a capture"), expected);
    }
}

#[test]
fn a_file_becomes_what_no_file_is_before_it_is_opened() {
    let expected = &["a.py", "d/x.py", "z.py (not_a_regular_file)"];
    // Nobody writes into the pipe and nobody listens for long: opened like a file, either would wait for ever.
    check_after_listing(
        |root| {
            remove(root.join("z.py"));
            make_pipe(&root.join("z.py"));
        },
        expected,
    );
    check_after_listing(
        |root| {
            remove(root.join("z.py"));
            drop(UnixListener::bind(root.join("z.py")).expect("a socket"));
        },
        expected,
    );
    check_after_listing(
        |root| {
            remove(root.join("z.py"));
            fs::create_dir_all(root.join("z.py/inner.py")).expect("a folder");
        },
        &["a.py", "d/x.py"],
    );
}

#[test]
fn a_device_is_not_read() {
    // Only a privileged user makes devices; one that every machine has stands for them.
    let root = directory::Root::open(Path::new("/dev")).expect("every machine has devices");
    let device = root.open_file(b"zero").expect("everyone may open it");
    assert_eq!(directory::read_small(&device, 1000).expect("it is looked at"), None);
}

#[test]
fn what_is_gone_before_it_is_opened_was_not_there() {
    check_after_listing(|root| remove(root.join("z.py")), &["a.py", "d/x.py"]);
    check_after_listing(|root| fs::remove_dir_all(root.join("d")).expect("it is there"), &["a.py", "z.py"]);
    check_after_listing(
        |root| {
            fs::remove_dir_all(root.join("d")).expect("it is there");
            fs::write(root.join("d"), "a file").expect("written");
        },
        &["a.py", "z.py"],
    );
}

#[test]
fn a_file_that_changes_under_the_read_is_read_again() {
    for (moment, change) in [
        (Moment::Opened, "other"),
        (Moment::Opened, ""),
        (Moment::Opened, "longer than before"),
        (Moment::Read, "z+1"),
        (Moment::Read, ""),
        (Moment::Read, "longer than before"),
    ] {
        let fixture = Fixture::folder();
        fixture.write("a.py", "a").write("z.py", "z-1");
        let file = fixture.path("z.py");
        let mut done = false;
        let seen = scan_while(&fixture, true, move |now, path, _| {
            if now == moment && path == "z.py" && !done {
                done = true;
                fs::write(&file, change).expect("written");
            }
        });
        check(&seen.capture.expect("a capture"), &["a.py", "z.py"]);
        assert_eq!(seen.contents["z.py"], change, "{moment:?}");
        assert_eq!(seen.opened, 3, "{moment:?} {change:?}: once a.py, twice z.py");
    }
}

#[test]
fn a_file_replaced_under_the_read_is_the_one_that_was_opened() {
    let fixture = Fixture::folder();
    fixture.write("z.py", "old").write(".git-not/new", "new");
    let (from, to) = (fixture.path(".git-not/new"), fixture.path("z.py"));
    let seen = scan_while(&fixture, true, move |moment, path, opened| {
        if moment == Moment::Opened && path == "z.py" && opened == 1 {
            fs::rename(&from, &to).expect("a rename");
        }
    });
    // The rename takes the last name of the open file, which is a change of it; the one that has the name now is read.
    assert!(seen.capture.is_ok());
    assert_eq!(seen.contents["z.py"], "new");
}

#[test]
fn a_file_that_keeps_growing_is_unstable_after_one_retry_of_the_whole() {
    let fixture = Fixture::folder();
    fixture.write("a.py", "a").write("z.py", "z");
    let file = fixture.path("z.py");
    let grow = move |moment: Moment, path: &str, opened: usize| {
        if moment == Moment::Opened && path == "z.py" {
            fs::write(&file, "z".repeat(opened + 1)).expect("written");
        }
    };
    let seen = scan_while(&fixture, true, grow);
    assert!(matches!(&seen.capture, Err(WorkspaceError::Unstable { path }) if path == "z.py"), "{:?}", seen.capture);
    assert_eq!(seen.opened, 2 * (1 + 3), "twice the whole, each time a.py once and z.py three times");
    assert!(!seen.contents.contains_key("z.py"));

    // One that comes to rest during the retry is captured.
    let file = fixture.path("z.py");
    let seen = scan_while(&fixture, true, move |moment, path, opened| {
        if moment == Moment::Opened && path == "z.py" && opened < 7 {
            fs::write(&file, "y".repeat(opened + 1)).expect("written");
        }
    });
    check(&seen.capture.expect("a capture"), &["a.py", "z.py"]);
    assert_eq!((seen.opened, seen.contents["z.py"].as_str()), (7, "yyyyyyy"));
}

#[test]
fn git_that_moves_under_the_scan_is_another_state_at_the_next() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").commit().write("a.py", "b");
    let before = fixture.scan().state_digest();
    let root = fixture.directory.path().to_owned();
    let seen = scan_while(&fixture, true, move |moment, _, _| {
        if moment == Moment::GitRead {
            let other = Fixture { directory: tempfile::tempdir().expect("a temporary directory") };
            for arguments in [&["add", "a.py"][..], &["commit", "-q", "-m", "y"]] {
                assert!(other.command(&root).args(arguments).status().expect("git runs").success());
            }
        }
    });
    // HEAD and the index are those that were read first: the very state from before, and not a mixture that never was.
    assert_eq!(seen.capture.expect("a capture").state_digest(), before);
    assert_ne!(fixture.scan().state_digest(), before);
}
