//! The pointer of a binding: which generations are kept, and which one serves.
//!
//! Must not open generations. Invariant: it is replaced in one step and carries its own digest, so it is whole or known not to be.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::model::{Canonical, ContentHash, Fingerprint, GenerationId};

use super::content::Identity;
use super::durable::Part;
use super::error::{Result, damaged, io};
use super::files;

const TITLE: &str = "sextant pointer 1";

/// A generation as the pointer names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub id: GenerationId,
    /// Digest of its seal.
    pub seal: ContentHash,
    pub fingerprint: Fingerprint,
    /// Stands for its (branch, HEAD).
    pub head: ContentHash,
    /// When it was built, in microseconds since 1970; 0 where a pointer of an earlier build does not say.
    pub built: i64,
}

/// What a generation is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It serves.
    Current,
    /// The one before.
    Previous,
    /// The first one at the current branch and HEAD.
    First,
}

/// The generations of a binding that are kept whether read or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    pub current: Named,
    pub previous: Option<Named>,
    /// The first one at the current branch and HEAD.
    pub first: Named,
}

#[derive(Serialize, Deserialize)]
struct NamedRecord {
    id: String,
    seal: String,
    fingerprint: String,
    head: String,
    #[serde(default)]
    built: i64,
}

#[derive(Serialize, Deserialize)]
struct PointerRecord {
    current: NamedRecord,
    previous: Option<NamedRecord>,
    first: NamedRecord,
}

impl Named {
    pub fn new(id: GenerationId, seal: ContentHash, identity: &Identity) -> Self {
        let mut head = Canonical::new("head");
        for part in [&identity.branch, &identity.commit] {
            head.number(u64::from(part.is_some())).field(part.as_deref().unwrap_or_default().as_bytes());
        }
        let built = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        Self { id, seal, fingerprint: identity.fingerprint, head: ContentHash(head.finish()), built }
    }

    fn record(&self) -> NamedRecord {
        NamedRecord {
            id: self.id.hex(),
            seal: self.seal.hex(),
            fingerprint: self.fingerprint.hex(),
            head: self.head.hex(),
            built: self.built,
        }
    }

    fn from_record(record: &NamedRecord) -> Option<Self> {
        Some(Self {
            id: GenerationId::parse(&record.id)?,
            seal: ContentHash::parse(&record.seal)?,
            fingerprint: Fingerprint::parse(&record.fingerprint)?,
            head: ContentHash::parse(&record.head)?,
            built: record.built,
        })
    }
}

impl Pointer {
    /// Returns the pointer after `new` was published over what stood before.
    pub fn after(before: Option<&Self>, new: Named) -> Self {
        let Some(before) = before else { return Self { current: new, previous: None, first: new } };
        let same = before.current.fingerprint == new.fingerprint;
        // Building the same again must not make the baseline of `changes` the same as what it is compared with.
        let previous = if same { before.previous } else { Some(before.current) };
        let stays = before.current.head == new.head && !(same && before.first.id == before.current.id);
        Self { current: new, previous, first: if stays { before.first } else { new } }
    }

    /// Returns the pointer after `new` was published when the one that served is damaged: the baselines before it are kept.
    pub fn in_place_of_damaged(before: &Self, new: Named) -> Self {
        let stays = before.current.head == new.head && before.first.id != before.current.id;
        let previous = before.previous.filter(|previous| previous.fingerprint != new.fingerprint);
        Self { current: new, previous, first: if stays { before.first } else { new } }
    }

    /// Returns the generations named, the current one first, each once.
    pub fn kept(&self) -> Vec<Named> {
        let mut kept = vec![self.current];
        for named in self.previous.into_iter().chain([self.first]) {
            if !kept.contains(&named) {
                kept.push(named);
            }
        }
        kept
    }

    /// Returns the pointer without those older generations that `is_whole` refuses.
    pub fn without_history_unless(self, mut is_whole: impl FnMut(&Named) -> bool) -> Self {
        let mut keeps = |named: &Named| *named == self.current || is_whole(named);
        let first = if keeps(&self.first) { self.first } else { self.current };
        Self { previous: self.previous.filter(|named| keeps(named)), first, ..self }
    }

    /// Returns what each generation is kept for, each once: what is both the previous and the first one is kept as the previous one.
    pub fn roles(&self) -> Vec<(Named, Role)> {
        let role = |named: &Named| match named {
            named if *named == self.current => Role::Current,
            named if Some(*named) == self.previous => Role::Previous,
            _ => Role::First,
        };
        self.kept().into_iter().map(|named| (named, role(&named))).collect()
    }

    /// Reads the pointer at `path`; `None` when there is none.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let Some(bytes) = files::read_small(path, 1 << 16, "pointer")? else { return Ok(None) };
        let pointer =
            files::disclose(TITLE, &bytes).and_then(|body| serde_json::from_str::<PointerRecord>(body).ok()).and_then(|record| {
                Some(Self {
                    current: Named::from_record(&record.current)?,
                    previous: match &record.previous {
                        Some(previous) => Some(Named::from_record(previous)?),
                        None => None,
                    },
                    first: Named::from_record(&record.first)?,
                })
            });
        pointer.map(Some).ok_or_else(|| damaged("pointer"))
    }

    /// Puts this pointer in place of the one at `path`.
    pub fn write(&self, path: &Path) -> Result<()> {
        let record = PointerRecord {
            current: self.current.record(),
            previous: self.previous.as_ref().map(Named::record),
            first: self.first.record(),
        };
        let body = serde_json::to_string(&record).expect("a pointer holds plain values");
        files::replace(Part::Pointer, path, files::enclose(TITLE, &body).as_bytes()).map_err(io("replace the pointer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `id fingerprint head`, each a digit.
    fn named(text: &str) -> Named {
        let digits: Vec<u8> = text.split(' ').map(|part| part.parse().expect("a digit")).collect();
        Named {
            id: GenerationId([digits[0]; 16]),
            seal: ContentHash([digits[0]; 32]),
            fingerprint: Fingerprint([digits[1]; 32]),
            head: ContentHash([digits[2]; 32]),
            built: i64::from(digits[0]),
        }
    }

    #[test]
    fn what_is_kept_follows_fingerprint_and_head() {
        // Each line: the generation published, and the ids of current, previous and first after it.
        let script = [
            ("1 1 1", "1 - 1"),
            ("2 2 1", "2 1 1"),
            ("3 3 1", "3 2 1"),
            // The same once more.
            ("4 3 1", "4 2 1"),
            // A commit.
            ("5 5 2", "5 4 5"),
            ("6 5 2", "6 4 6"),
            ("7 7 2", "7 6 6"),
            // Back on the first branch.
            ("8 3 1", "8 7 8"),
        ];
        let mut pointer: Option<Pointer> = None;
        for (new, expected) in script {
            let next = Pointer::after(pointer.as_ref(), named(new));
            let digit = |named: &Named| named.id.0[0].to_string();
            let previous = next.previous.as_ref().map_or("-".to_owned(), digit);
            assert_eq!(format!("{} {previous} {}", digit(&next.current), digit(&next.first)), expected, "after {new}");
            pointer = Some(next);
        }
    }

    #[test]
    fn each_kept_generation_has_one_role() {
        let roles = |previous: Option<Named>, first: Named| {
            let pointer = Pointer { current: named("1 1 1"), previous, first };
            pointer.roles().iter().map(|(named, role)| format!("{} {role:?}", named.id.0[0])).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(roles(None, named("1 1 1")), "1 Current");
        assert_eq!(roles(Some(named("2 2 1")), named("2 2 1")), "1 Current, 2 Previous");
        assert_eq!(roles(Some(named("2 2 1")), named("3 3 1")), "1 Current, 2 Previous, 3 First");
        assert_eq!(roles(Some(named("2 2 2")), named("1 1 1")), "1 Current, 2 Previous");
    }

    #[test]
    fn a_pointer_of_an_earlier_build_is_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("current");
        let pointer = Pointer { current: named("1 1 1"), previous: None, first: named("1 1 1") };
        pointer.write(&path).expect("written");
        let bytes = std::fs::read(&path).expect("written");
        let body = files::disclose(TITLE, &bytes).expect("whole").replace(",\"built\":1", "");
        std::fs::write(&path, files::enclose(TITLE, &body)).expect("written");
        assert_eq!(Pointer::read(&path).expect("read").map(|pointer| pointer.current.built), Some(0));
    }

    #[test]
    fn a_pointer_comes_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("current");
        assert_eq!(Pointer::read(&path).expect("nothing there"), None);
        for previous in [None, Some(named("2 2 2"))] {
            let pointer = Pointer { current: named("1 1 1"), previous, first: named("3 3 1") };
            pointer.write(&path).expect("written");
            assert_eq!(Pointer::read(&path).expect("read"), Some(pointer));
        }
    }
}
