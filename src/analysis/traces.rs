//! Every question that was asked to resolve the repository, the digest of its answer, and what its query asked in turn.
//!
//! Must not answer anything itself. Invariant: all of it speaks of one state of the repository, in words that mean the same in every
//! process, so that another one can tell from it which files a change reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::RepoPath;

use super::edges::rebindings;
use super::inputs::LanguageIndex;
use super::inputs::{Content, Db, SourceFile};
use super::modules::{Module, component, export_sources, key_of};
use super::question::{AnswerDigest, Kind, Question, Subject, answer};
use super::remembered::{member_hashes, name_hash};

/// Number of a question.
pub(super) type NodeId = u32;
/// Number of a text.
pub(super) type TextId = u32;

/// One question.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub subject: Subject<TextId>,
    pub answer: AnswerDigest,
    /// What its query asked, in order; `None` where no query ran.
    pub trace: Option<Box<[NodeId]>>,
}

/// What a file contributes to questions about all files.
#[derive(Clone, Debug, Default)]
pub(super) struct Contribution {
    /// Hashes of the members it declares, sorted.
    pub members: Box<[u32]>,
    /// What it rebinds: a file, and a name in it.
    pub rebound: Box<[(TextId, Option<TextId>)]>,
}

/// What changed since a state.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Files with another content, new and gone ones included.
    pub contents: BTreeSet<RepoPath>,
    /// Whether a path came or went.
    pub paths: bool,
}

/// The questions of one state.
#[derive(Debug, Default)]
pub(super) struct Traces {
    texts: Vec<Arc<str>>,
    text_ids: FxHashMap<Arc<str>, TextId>,
    nodes: Vec<Node>,
    node_ids: FxHashMap<Subject<TextId>, NodeId>,
    /// Those of this process.
    own: FxHashMap<Question, NodeId>,
    contributions: FxHashMap<TextId, Contribution>,
}

impl Traces {
    /// Puts together what was read; `None` when a number leads nowhere.
    pub(super) fn from_parts(texts: Vec<Arc<str>>, nodes: Vec<Node>, contributions: Vec<(TextId, Contribution)>) -> Option<Self> {
        let is_text = |text: TextId| (text as usize) < texts.len();
        let count = nodes.len();
        let is_sound = |node: &Node| {
            is_text(node.subject.text)
                && is_text(node.subject.inner)
                && node.trace.iter().flat_map(|trace| trace.iter()).all(|asked| (*asked as usize) < count)
        };
        let are_texts = |(file, contribution): &(TextId, Contribution)| {
            let rebound = |(file, name): &(TextId, Option<TextId>)| is_text(*file) && name.is_none_or(is_text);
            is_text(*file) && contribution.rebound.iter().all(rebound)
        };
        if !nodes.iter().all(is_sound) || !contributions.iter().all(are_texts) {
            return None;
        }
        Some(Self {
            text_ids: texts.iter().cloned().zip(0..).collect(),
            node_ids: nodes.iter().map(|node| node.subject).zip(0..).collect(),
            own: FxHashMap::default(),
            contributions: contributions.into_iter().collect(),
            texts,
            nodes,
        })
    }

    pub(super) fn text(&self, text: TextId) -> &Arc<str> {
        &self.texts[text as usize]
    }

    pub(super) fn text_id(&self, text: &str) -> Option<TextId> {
        self.text_ids.get(text).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node as usize]
    }

    /// Returns what a question is in words.
    pub(super) fn subject(&self, node: NodeId) -> Subject<&str> {
        let Subject { kind, language, text, inner } = self.nodes[node as usize].subject;
        Subject { kind, language, text: self.text(text), inner: self.text(inner) }
    }

    /// Returns the question of a kind about a source file.
    pub(super) fn of_file(&self, kind: Kind, file: TextId) -> Option<NodeId> {
        self.node_ids.get(&Subject { kind, language: 0, text: file, inner: file }).copied()
    }

    pub(super) fn contribution(&self, file: TextId) -> Option<&Contribution> {
        self.contributions.get(&file)
    }

    fn intern(&mut self, text: &str) -> TextId {
        if let Some(id) = self.text_ids.get(text) {
            return *id;
        }
        let id = TextId::try_from(self.texts.len()).expect("far fewer texts than bytes");
        let text: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&text));
        self.text_ids.insert(text, id);
        id
    }

    /// Returns the hashes of the names whose members may be other ones now, where the files that changed declare what `declared` says.
    pub(super) fn changed_members(&self, declared: &Declared) -> FxHashSet<u32> {
        let before = |path: &RepoPath| self.text_id(path.as_str()).and_then(|file| self.contribution(file));
        let before = declared.keys().filter_map(before).flat_map(|before| before.members.iter());
        before.chain(declared.values().flatten().flatten()).copied().collect()
    }
}

/// The hashes of the members that files declare; `None` for files that are gone.
pub(super) type Declared = BTreeMap<RepoPath, Option<Box<[u32]>>>;

/// Returns what the files that changed declare.
pub(super) fn declared(db: &dyn Db, changes: &Changes) -> Declared {
    let source = |path: &RepoPath| db.source_file(path.as_str()).filter(|file| file.content(db) != Content::Absent);
    changes.contents.iter().map(|path| (path.clone(), source(path).map(|file| member_hashes(db, file)))).collect()
}

/// Brings traces from the state they speak of to that of the database.
pub(super) struct Advance<'a> {
    db: &'a dyn Db,
    traces: &'a mut Traces,
    /// Questions to be answered.
    open: Vec<NodeId>,
    answered: FxHashSet<NodeId>,
}

impl<'a> Advance<'a> {
    pub(super) fn new(db: &'a dyn Db, traces: &'a mut Traces) -> Self {
        Self { db, traces, open: Vec::new(), answered: FxHashSet::default() }
    }

    /// Queries that did not run since, and whose answers these changes do not decide, are as they were.
    pub(super) fn run(mut self, changes: &Changes) {
        let declared = declared(self.db, changes);
        let members = self.traces.changed_members(&declared);
        for (path, declared) in declared {
            let file = self.traces.intern(path.as_str());
            let kinds = [Kind::ParseStatus, Kind::Surface, Kind::Text];
            self.open.extend(kinds.iter().filter_map(|kind| self.traces.of_file(*kind, file)));
            match declared {
                Some(members) => self.traces.contributions.entry(file).or_default().members = members,
                None => drop(self.traces.contributions.remove(&file)),
            }
        }
        let mut rebound = changes.paths;
        for id in (0..).take(self.traces.len()) {
            let subject = self.traces.subject(id);
            let is_open = match subject.kind {
                Kind::Members => members.contains(&name_hash(subject.text)),
                kind => changes.paths && kind.is_of_paths(),
            };
            if is_open {
                self.open.push(id);
            }
        }
        loop {
            for execution in self.db.take_executions() {
                rebound |= execution.question.kind == Kind::Rebindings;
                let node = self.node(execution.question);
                let trace = execution.asked.iter().map(|asked| self.node(*asked)).collect();
                self.traces.nodes[node as usize].trace = Some(trace);
                self.open.push(node);
            }
            if let Some(node) = self.open.pop() {
                if self.answered.insert(node) {
                    self.answer(node);
                }
            } else if std::mem::take(&mut rebound) {
                let of_rebound = |id: &NodeId| self.traces.node(*id).subject.kind == Kind::Rebound;
                let found: Vec<_> = (0..).take(self.traces.len()).filter(of_rebound).collect();
                self.open.extend(found);
            } else {
                return;
            }
        }
    }

    fn answer(&mut self, node: NodeId) {
        let subject = self.traces.subject(node);
        let digest = answer(self.db, subject);
        match subject.kind {
            Kind::Component => {
                let trace = self.trace_of_component(node);
                self.traces.nodes[node as usize].trace = Some(trace);
            }
            Kind::Rebindings => {
                if let Some(file) = self.db.source_file(subject.text) {
                    self.keep_rebindings(node, file);
                }
            }
            _ => {}
        }
        self.traces.nodes[node as usize].answer = digest;
    }

    fn keep_rebindings(&mut self, node: NodeId, file: SourceFile) {
        let of = self.traces.node(node).subject.text;
        let targets = rebindings(self.db, file);
        let rebound = targets.iter().map(|target| {
            let name = target.definition.as_ref().map(|definition| self.traces.intern(&definition.qualified));
            (self.traces.intern(target.file.as_str()), name)
        });
        let rebound = rebound.collect();
        // A file that is gone has no contribution.
        if let Some(contribution) = self.traces.contributions.get_mut(&of) {
            contribution.rebound = rebound;
        }
    }

    /// Returns what decides about a component: what its members feed on, and the components of those others that they feed on directly.
    /// While all these are the same no further module can have joined, as it would have to be in the component of one of those others.
    fn trace_of_component(&mut self, node: NodeId) -> Box<[NodeId]> {
        let db = self.db;
        let Subject { language, text, .. } = self.traces.subject(node);
        let language = LanguageIndex(language);
        let members = component(db, Module::new(db, language, key_of(text))).members(db);
        let mut asked = BTreeSet::new();
        for member in members.iter() {
            let member = Module::new(db, language, member);
            asked.insert(Question::new(Kind::Sources, member));
            for source in export_sources(db, member).iter().filter(|source| members.binary_search(source).is_err()) {
                asked.insert(Question::new(Kind::Component, Module::new(db, language, source)));
            }
        }
        asked.into_iter().map(|asked| self.node(asked)).collect()
    }

    /// Returns the number of a question; a new one is answered later.
    fn node(&mut self, question: Question) -> NodeId {
        if let Some(node) = self.traces.own.get(&question) {
            return *node;
        }
        let Subject { kind, language, text, inner } = question.subject(self.db);
        let text = self.traces.intern(text);
        let inner = if kind == Kind::Module { self.traces.intern(inner) } else { text };
        let subject = Subject { kind, language, text, inner };
        let next = NodeId::try_from(self.traces.nodes.len()).expect("far fewer questions than bytes");
        let node = *self.traces.node_ids.entry(subject).or_insert(next);
        if node == next {
            self.traces.nodes.push(Node { subject, answer: [0; 16], trace: None });
            self.open.push(node);
        }
        self.traces.own.insert(question, node);
        node
    }
}
