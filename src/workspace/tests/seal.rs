//! Seals against every way of writing that leaves size and time of modification as they were, or that tells nobody. These tests break when
//! the kernel does not do what a seal relies on.
//!
//! Invariant: where the file system of the temporary directory is none that seals are made on, a test says so and ends.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime};

use super::*;
use crate::model::Headway;
use crate::workspace::seal::{Lease, Seals};

/// Size of all files here: two pages.
const SIZE: usize = 8192;

/// A mapping of a whole file for writing.
struct Mapping(*mut u8);

impl Mapping {
    fn new(path: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(path).expect("it opens");
        // SAFETY: a new mapping of an open file, at a place of the system's choice. The file is closed at the end; the mapping lives on.
        let start = unsafe {
            let (access, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
            libc::mmap(none, SIZE, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        Self(start.cast())
    }

    fn store(&self, at: usize, byte: u8) {
        assert!(at < SIZE);
        // SAFETY: within the mapping, whose file has that size.
        unsafe { self.0.add(at).write_volatile(byte) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made, which nothing uses any more.
        unsafe { libc::munmap(self.0.cast(), SIZE) };
    }
}

/// Scans for the sake of what is seen alone.
fn look(worktree: &Worktree, policy: &Policy, limits: ScanLimits) -> Result<Capture, WorkspaceError> {
    scan_sparing(worktree, policy, limits, &Headway::default(), &|_, _| true, &|_, _, _| {})
}

fn sealed_worktree(fixture: &Fixture) -> Option<Worktree> {
    let worktree = fixture.worktree().sealed();
    if worktree.seals.is_none() {
        eprintln!("skipped: no seals on the file system of the temporary directory");
        return None;
    }
    Some(worktree)
}

/// Looks until so many files were spared, and returns what was seen.
#[track_caller]
fn look_until_sealed(worktree: &Worktree, policy: &Policy, sealed: u64) -> Capture {
    let begun = std::time::Instant::now();
    loop {
        let capture = look(worktree, policy, LIMITS).expect("a capture");
        if capture.sealed == sealed {
            return capture;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{} files are sealed, not {sealed}", capture.sealed);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A way of writing, told the path of its file.
type Way = (&'static str, fn(&Path));

/// Writes one byte and puts the time of modification back.
fn overwrite(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).expect("it opens");
    let modified = file.metadata().and_then(|found| found.modified()).expect("times");
    file.write_all_at(b"!", 17).expect("written");
    file.set_modified(modified).expect("set back");
}

const WAYS: [Way; 10] = [
    ("a write of equal size with the time of modification put back", overwrite),
    ("a store through a mapping of a page that was clean", |path| Mapping::new(path).store(5000, b'!')),
    ("a write through another name of it, outside", |path| {
        overwrite(&path.parent().and_then(Path::parent).expect("above").join("outside").join(path.file_name().expect("named")));
    }),
    ("another file of the same size and time of modification, renamed to it", |path| {
        let modified = path.metadata().and_then(|found| found.modified()).expect("times");
        let other = path.with_extension("new");
        fs::write(&other, vec![b'!'; SIZE]).expect("written");
        File::options().write(true).open(&other).and_then(|file| file.set_modified(modified)).expect("set back");
        fs::rename(other, path).expect("renamed");
    }),
    ("a file that was cut and filled up again", |path| {
        let modified = path.metadata().and_then(|found| found.modified()).expect("times");
        let file = OpenOptions::new().write(true).open(path).expect("it opens");
        file.set_len(100).and_then(|()| file.set_len(SIZE as u64)).expect("cut");
        file.write_all_at(&[b'!'; SIZE - 100], 100).and_then(|()| file.set_modified(modified)).expect("filled");
    }),
    ("a hole that was filled with other text", |path| {
        let file = OpenOptions::new().write(true).open(path).expect("it opens");
        // SAFETY: the call takes plain numbers.
        let punched = unsafe {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            libc::fallocate(file.as_raw_fd(), mode, 0, 4096)
        };
        assert_eq!(punched, 0, "the file systems that seals are made on punch holes");
    }),
    ("bytes copied within the kernel", |path| {
        let from = path.with_extension("from");
        fs::write(&from, vec![b'!'; SIZE]).expect("written");
        let (from, to) = (File::open(from).expect("open"), OpenOptions::new().write(true).open(path).expect("open"));
        rustix::fs::copy_file_range(from, None, to, None, SIZE).expect("copied");
    }),
    ("a file removed and made anew", |path| {
        fs::remove_file(path).and_then(|()| fs::write(path, vec![b'!'; SIZE])).expect("made anew");
    }),
    ("bytes added at its end", |path| {
        OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(b"!")).expect("added");
    }),
    ("another mode", |path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set")),
];

#[test]
fn every_way_of_writing_breaks_the_seal() {
    let fixture = Fixture::folder();
    fixture.write("outside/x", "");
    let text = vec![b'a'; SIZE];
    for number in 0..WAYS.len() {
        fixture.write(&format!("tree/w{number}.py"), &text);
        fs::hard_link(fixture.path(&format!("tree/w{number}.py")), fixture.path(&format!("outside/w{number}.py")))
            .expect("linked");
    }
    for still in ["tree/open.py", "tree/mapped.py", "tree/still.py"] {
        fixture.write(still, &text);
    }
    let root = fixture.path("tree");
    let worktree = Worktree::open(&root).expect("a folder").sealed();
    if worktree.seals.is_none() {
        return eprintln!("skipped: no seals on the file system of the temporary directory");
    }
    let policy = policy(true, &[]);
    let whole = || scan(&Worktree::open(&root).expect("a folder"), &policy, LIMITS, &|_, _, _| {}).expect("a capture");

    // Whoever may write without opening the file keeps it from being sealed.
    let open = OpenOptions::new().write(true).open(root.join("open.py")).expect("it opens");
    let mapped = Mapping::new(&root.join("mapped.py"));
    mapped.store(0, b'b');
    let sealed = WAYS.len() as u64 + 1;
    assert_eq!(look_until_sealed(&worktree, &policy, sealed).entries, whole().entries);
    for round in 0..5 {
        // The page is dirty by now: no time of change moves any more.
        mapped.store(0, b'c' + round);
        open.write_all_at(&[b'c' + round], 0).expect("written");
        let seen = look(&worktree, &policy, LIMITS).expect("a capture");
        assert_eq!((seen.sealed, &seen.entries), (sealed, &whole().entries), "round {round}");
    }

    for (number, (way, write)) in WAYS.iter().enumerate() {
        let before = whole();
        write(&root.join(format!("w{number}.py")));
        let (seen, expected) = (look(&worktree, &policy, LIMITS).expect("a capture"), whole());
        assert_eq!(seen.entries, expected.entries, "{way}");
        assert_ne!(seen.entries, before.entries, "{way}");
        assert!(seen.sealed < sealed - number as u64, "{way}");
    }
    assert_eq!(look(&worktree, &policy, LIMITS).expect("a capture").entries, whole().entries);
}

#[test]
fn a_page_mapped_again_is_seen_when_it_is_written() {
    let fixture = Fixture::folder();
    fixture.write("a.py", vec![b'a'; SIZE]);
    let Some(worktree) = sealed_worktree(&fixture) else { return };
    let policy = policy(true, &[]);
    // Dirty pages and all, as long as nobody can write to them.
    Mapping::new(&fixture.path("a.py")).store(0, b'b');
    for round in 0..2 {
        let before = look_until_sealed(&worktree, &policy, 1);
        let mapping = Mapping::new(&fixture.path("a.py"));
        assert_eq!(look(&worktree, &policy, LIMITS).expect("a capture").sealed, 1, "nobody wrote yet");
        mapping.store(0, b'c' + round);
        let seen = look(&worktree, &policy, LIMITS).expect("a capture");
        assert_ne!(seen.entries, before.entries);
        assert_eq!(seen.sealed, 0);
    }
}

#[test]
fn a_writer_breaks_the_lease_and_waits_for_its_end() {
    let fixture = Fixture::folder();
    fixture.write("a.py", "a");
    if sealed_worktree(&fixture).is_none() {
        return;
    }
    let path = fixture.path("a.py");
    let reader = OwnedFd::from(File::open(&path).expect("it opens"));
    let lease = Lease::take(&reader).expect("nobody writes");
    assert!(lease.is_whole());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| fs::write(&path, "b").expect("written"));
        let begun = std::time::Instant::now();
        while lease.is_whole() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the writer came through");
            std::thread::yield_now();
        }
        assert_eq!(fs::read(&path).expect("readable"), b"a");
        drop(lease);
        writer.join().expect("no panic");
    });
    assert_eq!(fs::read(&path).expect("readable"), b"b");
}

#[test]
fn a_clock_that_was_set_voids_all_seals() {
    let fixture = Fixture::folder();
    fixture.write("a.py", "a");
    let Some(worktree) = sealed_worktree(&fixture) else { return };
    let policy = policy(true, &[]);
    look_until_sealed(&worktree, &policy, 1);
    worktree.seals.as_ref().expect("sealed").void();
    assert_eq!(look(&worktree, &policy, LIMITS).expect("a capture").sealed, 0);
    assert_eq!(look(&worktree, &policy, LIMITS).expect("a capture").sealed, 1);
}

#[test]
fn bytes_that_are_wanted_are_read() {
    let fixture = Fixture::folder();
    fixture.write("a.py", "a").write("b.py", "b");
    let Some(worktree) = sealed_worktree(&fixture) else { return };
    let policy = policy(true, &[]);
    look_until_sealed(&worktree, &policy, 2);
    let given = Mutex::new(Vec::new());
    let visit =
        |path: &RepoPath, _: &ContentHash, bytes: &[u8]| given.lock().expect("no panic").push((path.to_string(), bytes.to_vec()));
    let capture = scan_sparing(&worktree, &policy, LIMITS, &Headway::default(), &|path, _| path.as_str() == "a.py", &visit)
        .expect("a capture");
    assert_eq!((capture.sealed, given.into_inner().expect("no panic")), (1, vec![("b.py".to_owned(), b"b".to_vec())]));
    let limits = ScanLimits { max_files: 1, ..LIMITS };
    assert!(matches!(look(&worktree, &policy, limits), Err(WorkspaceError::Limit { .. })), "limits hold for what is not read");
}

/// Returns whether any two changes of a file differ in their times.
fn tells_changes_apart(fixture: &Fixture) -> bool {
    let path = fixture.path("probe");
    let mut last = None;
    let apart = (0..200_u8).all(|byte| {
        fs::write(&path, [byte]).expect("written");
        let found = path.metadata().expect("it is there");
        last.replace((found.ctime(), found.ctime_nsec())) != Some((found.ctime(), found.ctime_nsec()))
    });
    fs::remove_file(path).expect("it is there");
    apart
}

#[test]
fn a_look_is_the_same_with_seals() {
    let mut next = dice(0x2545_f491_4f6c_dd1d);
    let names = ["a", "b", "x.py", "y.py", "lib", "dist"];
    let mut spared = 0;
    for with_git in [true, false] {
        let fixture = if with_git { Fixture::repository() } else { Fixture::folder() };
        let outside = tempfile::tempdir().expect("a folder");
        if !tells_changes_apart(&fixture) {
            return eprintln!("skipped: changes in quick succession may have one time");
        }
        let Some(seals) = Seals::open(fixture.directory.path()) else {
            return eprintln!("skipped: no seals on the file system of the temporary directory");
        };
        let worktree = Worktree { seals: Some(Arc::new(seals.at_once())), ..fixture.worktree() };
        let policies = [policy(true, &[]), policy(false, &[])];
        for step in 0..150 {
            let (path, to) = (fixture.some_path(&names, &mut next), fixture.some_path(&names, &mut next));
            // Whatever cannot be done is another way of changing nothing.
            let _ = path.parent().map(fs::create_dir_all);
            let action = next(10);
            let _ = match action {
                0..=2 => fs::write(&path, [b'a' + next(3) as u8]),
                3 => fs::remove_file(&path),
                4 => fs::rename(&path, &to),
                5 => fs::write(path.with_file_name(".gitignore"), format!("{}\n", names[next(names.len())])),
                // A folder that goes outside, and a link to it in its place.
                6 => {
                    let moved = outside.path().join(step.to_string());
                    fs::rename(&path, &moved).and_then(|()| symlink(&moved, &path))
                }
                7 => fs::remove_dir_all(&path),
                8 if with_git => fixture.command(fixture.directory.path()).args(["add", "-A"]).output().map(|_| ()),
                _ => File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH)),
            };
            let policy = &policies[usize::from(next(4) == 0)];
            let whole = scan(&fixture.worktree(), policy, LIMITS, &|_, _, _| {}).map_err(|error| error.to_string());
            for again in 0..2 {
                let seen = look(&worktree, policy, LIMITS).map_err(|error| error.to_string());
                let said = |capture: &Result<Capture, String>| capture.as_ref().map(Capture::state_digest).map_err(Clone::clone);
                assert_eq!(said(&seen), said(&whole), "step {step}.{again}: {action} at {path:?} or {to:?}, git: {with_git}");
                spared += seen.map_or(0, |capture| capture.sealed);
            }
        }
    }
    assert!(spared > 100, "seals were used {spared} times");
}
