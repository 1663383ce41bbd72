//! Traces as bytes.
//!
//! Must not know where the bytes go. Invariant: equal traces of a state have equal bytes, in whatever order they were made; bytes that were
//! written otherwise are no traces, or such as number only what is there.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::question::{AnswerDigest, Kind, Subject};
use super::traces::{Contribution, Node, NodeId, TextId, Traces};

/// The text that declares the form, for whoever keeps the bytes.
pub const DECLARATIONS: [&str; 4] =
    [include_str!("image.rs"), include_str!("question.rs"), include_str!("traces.rs"), include_str!("remembered.rs")];

/// Writes what matters for the resolution of `files`, which are sorted: what nobody asks any more is left out.
pub(super) fn encode<'a>(traces: &Traces, files: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let files: Vec<TextId> = files.filter_map(|file| traces.text_id(file)).collect();
    let mut reached = vec![false; traces.len()];
    let mut open: Vec<NodeId> = Vec::new();
    for file in &files {
        open.extend([Kind::Rebindings, Kind::ModuleName, Kind::Edges].iter().filter_map(|kind| traces.of_file(*kind, *file)));
    }
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut reached[node as usize], true) {
            open.extend(traces.node(node).trace.iter().flat_map(|trace| trace.iter().copied()));
        }
    }
    let reached: Vec<NodeId> = (0..).zip(&reached).filter(|(_, reached)| **reached).map(|(node, _)| node).collect();
    let mut texts: Vec<TextId> =
        reached.iter().map(|node| traces.node(*node).subject).flat_map(|of| [of.text, of.inner]).collect();
    texts.extend(&files);
    for file in &files {
        let rebound = traces.contribution(*file).into_iter().flat_map(|contribution| contribution.rebound.iter());
        texts.extend(rebound.flat_map(|(file, name)| std::iter::once(*file).chain(*name)));
    }
    texts.sort_unstable();
    texts.dedup();
    texts.sort_unstable_by_key(|text| traces.text(*text));
    let mut out = Writer { out: Vec::with_capacity(1 << 20), digests: FxHashMap::default() };
    out.number(texts.len());
    let mut before = "";
    for text in &texts {
        let text = traces.text(*text);
        let shared = before.bytes().zip(text.bytes()).take_while(|(left, right)| left == right).count();
        out.number(shared);
        out.bytes(&text.as_bytes()[shared..]);
        before = text;
    }
    let text_numbers = numbered(texts.iter().copied());
    let renumbered = |subject: Subject<TextId>| Subject {
        text: text_numbers[subject.text as usize],
        inner: text_numbers[subject.inner as usize],
        ..subject
    };
    let mut nodes: Vec<(Subject<u32>, NodeId)> =
        reached.into_iter().map(|node| (renumbered(traces.node(node).subject), node)).collect();
    nodes.sort_unstable();
    let numbers = numbered(nodes.iter().map(|(_, node)| *node));
    for kind in Kind::ALL {
        let start = nodes.partition_point(|(subject, _)| subject.kind < kind);
        let end = nodes.partition_point(|(subject, _)| subject.kind <= kind);
        out.number(end - start);
        let mut last = 0;
        for (subject, node) in &nodes[start..end] {
            let node = traces.node(*node);
            // The language goes before the text in the order.
            out.number(subject.language as usize);
            out.number(subject.text.wrapping_sub(last) as usize);
            last = subject.text;
            if kind == Kind::Module {
                out.number(subject.inner as usize);
            }
            if kind != Kind::Edges {
                out.digest(&node.answer);
            }
            if kind.has_trace() {
                let mut trace: Vec<u32> =
                    node.trace.iter().flat_map(|trace| trace.iter()).map(|asked| numbers[*asked as usize]).collect();
                trace.sort_unstable();
                out.number(node.trace.as_ref().map_or(0, |_| trace.len() + 1));
                out.ascending(&trace);
            }
        }
    }
    out.number(files.len());
    let mut last = 0;
    for file in &files {
        let number = text_numbers[*file as usize];
        out.number(number.wrapping_sub(last) as usize);
        last = number;
        let Some(contribution) = traces.contribution(*file) else {
            out.number(0);
            continue;
        };
        out.number(contribution.members.len() + 1);
        for hash in &contribution.members {
            out.out.extend_from_slice(&hash.to_le_bytes());
        }
        let mut rebound: Vec<_> = contribution
            .rebound
            .iter()
            .map(|(file, name)| (text_numbers[*file as usize], name.map_or(0, |name| text_numbers[name as usize] + 1)))
            .collect();
        rebound.sort_unstable();
        out.number(rebound.len());
        for (file, name) in rebound {
            out.number(file as usize);
            out.number(name as usize);
        }
    }
    out.out
}

/// Returns for each number which one of these it is; what it says of others means nothing.
fn numbered(order: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
    let mut numbers = vec![0; order.clone().max().map_or(0, |most| most as usize + 1)];
    for (number, place) in order.zip(0..) {
        numbers[number as usize] = place;
    }
    numbers
}

/// Reads what [`encode`] wrote, all of it.
pub(super) fn decode(bytes: &[u8]) -> Option<Traces> {
    let mut input = Reader { rest: bytes, digests: Vec::new() };
    let count = input.number()?;
    let mut texts: Vec<Arc<str>> = Vec::with_capacity(input.at_most(count)?);
    let mut text = Vec::new();
    for _ in 0..count {
        let shared = input.number()?;
        text.truncate(shared);
        if text.len() != shared {
            return None;
        }
        let length = input.number()?;
        text.extend_from_slice(input.take(length)?);
        texts.push(Arc::from(std::str::from_utf8(&text).ok()?));
    }
    let mut nodes = Vec::new();
    for kind in Kind::ALL {
        let count = input.number()?;
        nodes.reserve(input.at_most(count)?);
        let mut last: u32 = 0;
        for _ in 0..count {
            let language = u16::try_from(input.number()?).ok()?;
            let text = last.wrapping_add(input.short()?);
            last = text;
            let inner = if kind == Kind::Module { input.short()? } else { text };
            let answer = if kind == Kind::Edges { [0; 16] } else { input.digest()? };
            let trace = if kind.has_trace() { input.counted()? } else { None };
            nodes.push(Node { subject: Subject { kind, language, text, inner }, answer, trace });
        }
    }
    let count = input.number()?;
    let mut contributions = Vec::with_capacity(input.at_most(count)?);
    let mut last: u32 = 0;
    for _ in 0..count {
        let file = last.wrapping_add(input.short()?);
        last = file;
        let Some(members) = input.number()?.checked_sub(1) else { continue };
        let bytes = input.take(members.checked_mul(4)?)?;
        let members = bytes.as_chunks().0.iter().map(|hash| u32::from_le_bytes(*hash)).collect();
        let count = input.number()?;
        let mut rebound = Vec::with_capacity(input.at_most(count)?);
        for _ in 0..count {
            rebound.push((input.short()?, input.short()?.checked_sub(1)));
        }
        contributions.push((file, Contribution { members, rebound: rebound.into() }));
    }
    if input.rest.is_empty() { Traces::from_parts(texts, nodes, contributions) } else { None }
}

/// Numbers in as few bytes as they need, seven bits a byte; a digest that was written before as its number.
struct Writer {
    out: Vec<u8>,
    digests: FxHashMap<AnswerDigest, usize>,
}

impl Writer {
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    fn ascending(&mut self, numbers: &[u32]) {
        let mut last = 0;
        for number in numbers {
            self.number((number - last) as usize);
            last = *number;
        }
    }

    fn digest(&mut self, digest: &AnswerDigest) {
        let next = self.digests.len();
        match self.digests.entry(*digest) {
            std::collections::hash_map::Entry::Occupied(known) => {
                let known = *known.get() + 1;
                self.number(known);
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(next);
                self.number(0);
                self.out.extend_from_slice(digest);
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    digests: Vec<AnswerDigest>,
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// Returns a count of things that take a byte each or more, if there can be so many.
    fn at_most(&self, count: usize) -> Option<usize> {
        (count <= self.rest.len()).then_some(count)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn digest(&mut self) -> Option<AnswerDigest> {
        match self.number()?.checked_sub(1) {
            Some(known) => self.digests.get(known).copied(),
            None => {
                let digest = *self.take(16)?.first_chunk()?;
                self.digests.push(digest);
                Some(digest)
            }
        }
    }

    /// Returns ascending numbers behind their count and one more; `None` within for the count 0.
    #[expect(clippy::option_option, reason = "the outer one says whether there was anything to read")]
    fn counted(&mut self) -> Option<Option<Box<[u32]>>> {
        let Some(count) = self.number()?.checked_sub(1) else { return Some(None) };
        let mut numbers = Vec::with_capacity(self.at_most(count)?);
        let mut last: u32 = 0;
        for _ in 0..count {
            last = last.checked_add(self.short()?)?;
            numbers.push(last);
        }
        Some(Some(numbers.into()))
    }
}
