//! Which files a change reaches, told from the traces of the state before: without the facts of any other file.
//!
//! Must not resolve a file. Invariant: a file that is left out asks nothing that is answered otherwise than before, so that its
//! references come to the same.

use rustc_hash::FxHashSet;

use super::blindness::is_blind;
use super::edges::rebindings;
use super::inputs::{Db, SourceFile};
use super::question::{Kind, answer};
use super::remembered::{Remembered, name_hash};
use super::traces::{Changes, Declared, NodeId, TextId, Traces, declared};
use crate::model::RepoPath;

/// What is known of a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Unknown,
    Same,
    Other,
}

struct Revisit<'a> {
    db: &'a dyn Db,
    traces: &'a Traces,
    changes: &'a Changes,
    verdicts: Vec<Verdict>,
    contents: FxHashSet<TextId>,
    members: FxHashSet<u32>,
}

/// Returns which of `files`, the source files there are, must be resolved again. On the way the database comes to know what all files
/// rebind and declare.
pub(super) fn revisit(db: &dyn Db, traces: &Traces, changes: &Changes, files: &[SourceFile]) -> Vec<SourceFile> {
    let declared = declared(db, changes);
    let mut revisit = Revisit {
        db,
        traces,
        changes,
        verdicts: vec![Verdict::Unknown; traces.len()],
        contents: changes.contents.iter().filter_map(|path| traces.text_id(path.as_str())).collect(),
        members: traces.changed_members(&declared),
    };
    let remembered = revisit.remember(files, &declared);
    db.remember(remembered);
    files.iter().copied().filter(|file| !revisit.stays(*file)).collect()
}

impl Revisit<'_> {
    /// Gathers what all files contribute; those that the change may reach are asked, the others are remembered.
    fn remember(&mut self, files: &[SourceFile], declared: &Declared) -> Remembered {
        let (db, traces) = (self.db, self.traces);
        let mut rebound = Vec::new();
        let mut declaring = Vec::with_capacity(files.len());
        for &file in files {
            let path = file.path(db);
            let text = traces.text_id(path.as_str());
            let known = text.and_then(|text| traces.contribution(text));
            let members = match declared.get(path) {
                Some(now) => now.clone(),
                None => known.map(|known| known.members.clone()),
            };
            declaring.push((file, members));
            let node = text.and_then(|text| traces.of_file(Kind::Rebindings, text));
            match known.zip(node).filter(|(_, node)| self.is_same(*node)) {
                Some((known, _)) => {
                    rebound.extend(known.rebound.iter().filter_map(|(file, name)| {
                        let file = RepoPath::parse(traces.text(*file)).ok()?;
                        Some((file, name.map(|name| traces.text(name).clone())))
                    }));
                }
                None => {
                    rebound.extend(rebindings(db, file).iter().map(|target| {
                        let name = target.definition.as_ref().map(|definition| definition.qualified.clone());
                        (target.file.clone(), name)
                    }));
                }
            }
        }
        Remembered::new(rebound, declaring)
    }

    /// Returns whether a file's references come to what they did, and its module has the name it had.
    fn stays(&mut self, file: SourceFile) -> bool {
        let path = file.path(self.db);
        if self.changes.contents.contains(path) {
            return false;
        }
        let Some(text) = self.traces.text_id(path.as_str()) else { return false };
        let of = |kind| self.traces.of_file(kind, text);
        let (Some(name), Some(edges)) = (of(Kind::ModuleName), of(Kind::Edges)) else { return false };
        let Some(trace) = &self.traces.node(edges).trace else { return false };
        trace.iter().all(|asked| self.is_same(*asked)) && self.is_same(name)
    }

    /// Returns whether a question is answered as before. It is asked only where something its query asked is answered otherwise.
    fn is_same(&mut self, node: NodeId) -> bool {
        match self.verdicts[node as usize] {
            Verdict::Unknown => {}
            known => return known == Verdict::Same,
        }
        let traces = self.traces;
        let found = traces.node(node);
        let subject = traces.subject(node);
        let cannot_change = match found.subject.kind {
            kind if is_blind(kind) => true,
            kind if kind.is_of_paths() => !self.changes.paths,
            kind if kind.is_of_content() => !self.contents.contains(&found.subject.text),
            Kind::Members => !self.members.contains(&name_hash(subject.text)),
            // Asked when it is known what all files rebind; that is quick to look up.
            Kind::Rebound => false,
            _ => found.trace.as_ref().is_some_and(|trace| trace.iter().all(|asked| self.is_same(*asked))),
        };
        let same = cannot_change || answer(self.db, subject) == found.answer;
        self.verdicts[node as usize] = if same { Verdict::Same } else { Verdict::Other };
        same
    }
}
