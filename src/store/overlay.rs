//! What a delta lays over the database of its parent: the pages that changed, in the form of SQLite's write-ahead log.
//!
//! A delta shares the file of its parent's database and never writes to it. SQLite reads both together: the log is never copied back, which
//! would change what others read. Appending delta after delta the log comes to hold pages several times, of which only the last counts;
//! [`carry`] leaves the others out when they are more than half.
//!
//! Any other SQLite that opens such a pair would copy the log back into the file that many share, and remove it. A directory stands where it
//! keeps its index of a log, which this program needs none on disk for: so it finds that it cannot write, reads both rightly, and leaves them.
//!
//! Must not know what a page holds. Invariant: an overlay is carried only as its seal says that it was.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::durable::{self, Part};
use super::error::{Result, damaged, io, sqlite};
use super::files;
use super::reader::uri_path;
use super::seal::Sealed;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Begins a log whose checksums are of little-endian words; one more means big-endian ones.
const MAGIC: u32 = 0x377f_0682;

/// Returns where the overlay of a database stands.
pub(super) fn beside(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    PathBuf::from(path)
}

/// Returns where a directory keeps every other SQLite from writing to a database and to its overlay.
pub(super) fn guard(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-shm");
    PathBuf::from(path)
}

/// Puts a copy of the overlay of `parent` at `to`, without what does not count any more where that is more than half or it would be larger
/// than `room`; an empty one where it has none. Returns false when there is no room for it.
pub(super) fn carry(parent: &Path, sealed: Option<&Sealed>, to: &Path, room: u64) -> Result<bool> {
    let mut file = durable::create(Part::Overlay, to).map_err(io("create an overlay"))?;
    let Some(sealed) = sealed else { return Ok(true) };
    let limit = sealed.size();
    let bytes = files::read_small(parent, limit, "database")?.ok_or_else(|| damaged("database"))?;
    // It was checked when its generation was opened; what is sealed anew is checked again as it is copied.
    sealed.check_bytes(&bytes)?;
    let most_waste = if limit > room { 1 } else { 2 };
    let thinned = thin(&bytes, most_waste);
    let bytes = thinned.as_deref().unwrap_or(&bytes);
    if bytes.len() as u64 > room {
        return Ok(false);
    }
    file.write_all(bytes).map_err(io("write an overlay"))?;
    Ok(true)
}

/// Opens a database with an overlay, to append to the latter. Nothing is written to the database itself.
pub(super) fn open_for_writing(database: &Path) -> Result<Connection> {
    let connection = prepared(durable::open_overlaid(&uri(database)))?;
    connection
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = -1; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -131072;",
        )
        .map_err(sqlite("open for a delta"))?;
    Ok(connection)
}

/// Opens a database with its overlay for reading.
pub(super) fn open_for_reading(database: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    prepared(Connection::open_with_flags(uri(database), flags))
}

/// A way to open a database with its overlay without any lock and without an index on disk: no file beside these two is made or looked at.
/// Others may hold both open, since nobody changes either while it has its name.
fn uri(database: &Path) -> String {
    format!("file:{}?vfs=unix-none", uri_path(database))
}

/// Sees to it that a connection keeps the index of the overlay to itself, and does not copy the overlay back when it closes.
fn prepared(opened: rusqlite::Result<Connection>) -> Result<Connection> {
    let connection = opened.map_err(sqlite("open"))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(sqlite("open"))?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE;").map_err(sqlite("open"))?;
    Ok(connection)
}

/// Returns a log of the last version of each page, where the log has more than `times` as many frames. `None` where it has not, or where it
/// is not of the form that one transaction after the other leaves.
fn thin(log: &[u8], times: usize) -> Option<Vec<u8>> {
    let header = log.get(..HEADER)?;
    let page_size = number(header, 8) as usize;
    let big_endian = number(header, 0) == MAGIC + 1;
    if !(512..=65_536).contains(&page_size) || number(header, 0) & !1 != MAGIC {
        return None;
    }
    let frames = log[HEADER..].chunks_exact(FRAME_HEADER + page_size);
    let count = frames.len();
    if !frames.remainder().is_empty() {
        return None;
    }
    let pages = frames.clone().last().map(|last| number(last, 4)).filter(|pages| *pages > 0)?;
    let latest: BTreeMap<u32, &[u8]> =
        frames.map(|frame| (number(frame, 0), frame)).filter(|(page, _)| (1..=pages).contains(page)).collect();
    if latest.len() * times >= count {
        return None;
    }
    let mut thinned = Vec::with_capacity(HEADER + latest.len() * (FRAME_HEADER + page_size));
    thinned.extend_from_slice(header);
    let mut sum = (number(header, 24), number(header, 28));
    let last = latest.len() - 1;
    for (position, (page, frame)) in latest.into_iter().enumerate() {
        let start = thinned.len();
        thinned.extend_from_slice(&page.to_be_bytes());
        // The size says that the transaction ends here.
        thinned.extend_from_slice(&if position == last { pages } else { 0 }.to_be_bytes());
        thinned.extend_from_slice(&header[16..24]);
        sum = checksum(sum, &thinned[start..start + 8], big_endian);
        sum = checksum(sum, &frame[FRAME_HEADER..], big_endian);
        thinned.extend_from_slice(&sum.0.to_be_bytes());
        thinned.extend_from_slice(&sum.1.to_be_bytes());
        thinned.extend_from_slice(&frame[FRAME_HEADER..]);
    }
    Some(thinned)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

/// Goes on with the checksum that SQLite defines for its log.
fn checksum(before: (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word.copy_from_slice(bytes);
        if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    bytes.chunks_exact(8).fold(before, |(one, other), pair| {
        let one = one.wrapping_add(word(&pair[..4])).wrapping_add(other);
        (one, other.wrapping_add(word(&pair[4..])).wrapping_add(one))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns a database of one table with an overlay of several transactions.
    fn overlaid(folder: &Path, transactions: u32) -> PathBuf {
        let database = folder.join("graph.sqlite");
        let connection = Connection::open(&database).expect("made");
        connection
            .execute_batch(
                "PRAGMA page_size = 8192; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;
                 CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
                 WITH RECURSIVE n (value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n WHERE value < 5000)
                 INSERT INTO t SELECT value, 'x' FROM n;
                 PRAGMA journal_mode = WAL;",
            )
            .expect("filled");
        connection.close().expect("closed");
        for number in 0..transactions {
            let connection = open_for_writing(&database).expect("opened");
            connection.execute("UPDATE t SET b = ?1 WHERE a % 1000 = 1", [format!("edit {number}")]).expect("written");
            connection.execute("INSERT INTO t VALUES (?1, 'new')", [10_000 + number]).expect("written");
            connection.close().expect("closed");
        }
        database
    }

    fn say(database: &Path) -> String {
        let connection = open_for_reading(database).expect("opened");
        let sum = "SELECT count(*) || ' ' || group_concat(DISTINCT b) FROM t";
        connection.query_row(sum, [], |row| row.get(0)).expect("read")
    }

    #[test]
    fn an_overlay_is_read_over_a_database_that_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = overlaid(folder.path(), 0);
        let whole = fs::read(&database).expect("read");
        assert_eq!(say(&database), "5000 x");
        let database = {
            fs::remove_file(&database).expect("removed");
            overlaid(folder.path(), 2)
        };
        assert_eq!(say(&database), "5002 edit 1,x,new");
        assert_eq!(fs::read(&database).expect("read").len(), whole.len());
        let names = || fs::read_dir(folder.path()).expect("listed").count();
        let reader = open_for_reading(&database).expect("opened");
        assert_eq!(reader.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).expect("read"), 5002);
        assert_eq!(say(&database), "5002 edit 1,x,new", "beside another reader");
        assert_eq!(names(), 2, "the database and the overlay, nothing else");
        drop(reader);
        assert_eq!(names(), 2);
        fs::remove_file(beside(&database)).expect("removed");
        assert_eq!(say(&database), "5000 x", "the database itself was never written to");
    }

    #[test]
    fn whoever_opens_it_by_hand_reads_and_writes_nothing() {
        for transactions in [0, 2] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let database = overlaid(folder.path(), transactions);
            fs::create_dir(guard(&database)).expect("a folder");
            let content = || (fs::read(&database).expect("read"), fs::read(beside(&database)).unwrap_or_default());
            let (before, said) = (content(), say(&database));
            let by_hand = Connection::open(&database).expect("opened");
            let sum = "SELECT count(*) || ' ' || group_concat(DISTINCT b) FROM t";
            assert_eq!(by_hand.query_row(sum, [], |row| row.get::<_, String>(0)).expect("read"), said);
            for writing in
                ["INSERT INTO t VALUES (9, '')", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode = DELETE", "VACUUM"]
            {
                // Some say so, some do nothing.
                let _ = by_hand.execute_batch(writing);
                assert!(content() == before, "{writing}");
            }
            drop(by_hand);
            assert!(content() == before, "closing");
            assert_eq!(say(&database), said);
        }
    }

    #[test]
    fn a_thinned_overlay_says_the_same() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = overlaid(folder.path(), 9);
        let before = say(&database);
        let log = fs::read(beside(&database)).expect("read");
        let thinned = thin(&log, 2).expect("most frames do not count any more");
        assert!(thinned.len() * 2 < log.len(), "{} of {}", thinned.len(), log.len());
        assert_eq!(thin(&thinned, 1), None);
        fs::write(beside(&database), &thinned).expect("written");
        assert_eq!(say(&database), before);
        let connection = open_for_writing(&database).expect("opened");
        connection.execute("INSERT INTO t VALUES (20000, 'later')", []).expect("written");
        connection.close().expect("closed");
        assert_eq!(say(&database), "5010 edit 8,x,new,later");
    }

    #[test]
    fn what_is_no_log_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = fs::read(beside(&overlaid(folder.path(), 9))).expect("read");
        for cut in [0, 1, 31, 32, 33, log.len() - 1] {
            assert_eq!(thin(&log[..cut], 1), None, "cut at {cut}");
        }
    }
}
