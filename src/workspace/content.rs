//! What the bytes of a file say about it: text or not, a pointer to somewhere else, and their Git blob id.
//!
//! Must not know paths or the disk. Invariant: a function of the bytes alone, so that equal hashes are always classified alike.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::Omission;

/// Git's hash function in a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Returns Git's name of the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// Parses Git's name of a format.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "sha1" => Some(Self::Sha1),
            "sha256" => Some(Self::Sha256),
            _ => None,
        }
    }
}

/// Returns the Git blob id of a content, as raw bytes. Plain SHA-1, without Git's collision detection: the id is only ever compared with
/// an id of the index, and what identifies a content here is its SHA-256.
pub fn blob_id(format: ObjectFormat, bytes: &[u8]) -> Vec<u8> {
    let header = format!("blob {}\0", bytes.len());
    match format {
        ObjectFormat::Sha1 => Sha1::new().chain_update(&header).chain_update(bytes).finalize().to_vec(),
        ObjectFormat::Sha256 => Sha256::new().chain_update(&header).chain_update(bytes).finalize().to_vec(),
    }
}

/// Returns why a content is not indexed, `None` when it is text.
pub(super) fn classify(bytes: &[u8]) -> Option<Omission> {
    // One pass that the compiler turns into vector instructions answers for nearly every source file: ASCII without NUL.
    let (mut any, mut zero) = (0u8, 0u8);
    for chunk in bytes.chunks(4096) {
        for &byte in chunk {
            any |= byte;
            zero |= u8::from(byte == 0);
        }
        if zero != 0 {
            return Some(Omission::Binary);
        }
    }
    if any >= 0x80 && std::str::from_utf8(bytes).is_err() {
        return Some(Omission::NotUtf8);
    }
    is_lfs_pointer(bytes).then_some(Omission::LfsPointer)
}

/// Returns whether the content stands for one that Git LFS keeps elsewhere.
fn is_lfs_pointer(bytes: &[u8]) -> bool {
    const VERSION: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
    if bytes.len() > 1024 || !bytes.starts_with(VERSION) {
        return false;
    }
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let oid = |line: &[u8]| {
        line.strip_prefix(b"oid sha256:").is_some_and(|hex| hex.len() == 64 && hex.iter().all(u8::is_ascii_hexdigit))
    };
    let size = |line: &[u8]| {
        line.strip_prefix(b"size ").is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
    };
    lines.clone().any(oid) && lines.any(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let pointer =
            format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12\n", "0123456789abcdef".repeat(4))
                .into_bytes();
        let late_zero = [vec![b'a'; 5000], vec![0]].concat();
        for (bytes, expected) in [
            (&b""[..], None),
            (b"plain\r\n", None),
            ("caf\u{e9} \u{2192}".as_bytes(), None),
            (b"\xef\xbb\xbfbom", None),
            (b"caf\xe9", Some(Omission::NotUtf8)),
            (b"a\0b", Some(Omission::Binary)),
            (b"\xff\xfea\0", Some(Omission::Binary)),
            (&late_zero, Some(Omission::Binary)),
            (&pointer, Some(Omission::LfsPointer)),
            (b"version https://git-lfs.github.com/spec/v1\nis documented here\n", None),
        ] {
            assert_eq!(classify(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn blob_ids_are_those_of_git() {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(blob_id(ObjectFormat::Sha1, b"")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(hex(blob_id(ObjectFormat::Sha256, b"")), "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
    }
}
