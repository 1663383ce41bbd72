//! The graph: kinds of nodes and edges, how sure an edge is, and why a reference has none.
//!
//! Invariant: an edge of one file names its target by file and [`DefinitionKey`]; symbol ids hold byte positions and are made only when
//! a generation is written.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::DefinitionKey;
use super::hash::{Canonical, ContentHash};
use super::path::RepoPath;
use super::span::Place;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the word of the wire contract.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Returns the value that `word` stands for.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// What a node is.
    SymbolKind {
        File = "file",
        Class = "class",
        Struct = "struct",
        Interface = "interface",
        Trait = "trait",
        Type = "type",
        Enum = "enum",
        Function = "function",
        Method = "method",
        Variable = "variable",
        Constant = "constant",
        Namespace = "namespace",
    }
}

words! {
    /// What an edge says.
    EdgeKind {
        /// From the enclosing definition or file; made from [`super::facts::Definition::parent`] when a generation is written.
        Contains = "contains",
        /// An import or re-export, of a module's file or of a definition.
        Imports = "imports",
        /// The name is the callee of a call, `new`, decorator application or JSX element.
        Calls = "calls",
        /// A base of a class, `extends`, `implements`, an embedded type.
        Inherits = "inherits",
        /// Any other use.
        References = "references",
    }
}

words! {
    /// How sure an edge is. Ordered: the surer first.
    Resolution {
        /// Uniquely bound under a declared static rule.
        ResolvedStatic = "resolved_static",
        /// Explicit evidence, not proof.
        Candidate = "candidate",
    }
}

words! {
    /// Why a reference has no `resolved_static` edge, or, of a whole file, why nothing in it is known.
    Reason {
        ExternalImport = "external_import",
        UnresolvedImport = "unresolved_import",
        UnresolvedExport = "unresolved_export",
        UnresolvedName = "unresolved_name",
        UnresolvedMember = "unresolved_member",
        AmbiguousBinding = "ambiguous_binding",
        AmbiguousModule = "ambiguous_module",
        AmbiguousMember = "ambiguous_member",
        DynamicReceiver = "dynamic_receiver",
        WildcardImport = "wildcard_import",
        ConditionalBinding = "conditional_binding",
        AttributeRebinding = "attribute_rebinding",
        CyclicBinding = "cyclic_binding",
        LocalBinding = "local_binding",
        PartialParse = "partial_parse",
        /// Of a file: its parser took too long, crashed, or took too much memory.
        ParseTimeout = "parse_timeout",
        ParserCrashed = "parser_crashed",
        ParserMemory = "parser_memory",
    }
}

/// The identity of a node on the wire (contract §4); only meaningful together with a fingerprint.
pub type SymbolId = ContentHash;

/// Returns the symbol id of a definition, or of a file (`kind` file, its path as name, offset 0).
pub fn symbol_id(path: &RepoPath, kind: SymbolKind, qualified_name: &str, start_byte: u32) -> SymbolId {
    let mut record = Canonical::new("symbol");
    record.field(path.as_str().as_bytes());
    record.field(kind.as_str().as_bytes());
    record.field(qualified_name.as_bytes());
    record.number(u64::from(start_byte));
    ContentHash(record.finish())
}

/// Where an edge points: a definition of a file, or the file itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    pub file: RepoPath,
    pub definition: Option<DefinitionKey>,
}

/// A reference with a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub kind: EdgeKind,
    /// Index of the innermost enclosing definition in the own file's facts, or `None` for the file.
    pub source: Option<u32>,
    pub target: Target,
    pub resolution: Resolution,
    /// The declared rule that drew it, a stable word: `lexical_binding`, `explicit_import` …
    pub rule: &'static str,
    /// The referenced name token, and its text.
    pub place: Place,
    pub name: Arc<str>,
}

/// A reference without a `resolved_static` edge, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub kind: EdgeKind,
    /// As [`Edge::source`].
    pub source: Option<u32>,
    pub reason: Reason,
    pub place: Place,
    pub name: Arc<str>,
    /// How many `candidate` edges the same reference has.
    pub candidates: u32,
}

/// What one file refers to. Sorted by place, then kind, then target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileEdges {
    pub edges: Vec<Edge>,
    pub diagnostics: Vec<Diagnostic>,
    /// Uses of local names and parameters: counted, not stored.
    pub local_uses: u32,
}

impl FileEdges {
    /// Brings what the references of a file came to into its order; an edge that several found is one.
    pub fn new(mut edges: Vec<Edge>, mut diagnostics: Vec<Diagnostic>, local_uses: u32) -> Self {
        edges.sort_by(|left, right| (left.place, left.kind, &left.target).cmp(&(right.place, right.kind, &right.target)));
        edges.dedup_by(|left, right| left.place == right.place && left.kind == right.kind && left.target == right.target);
        diagnostics.sort_by_key(|diagnostic| (diagnostic.place, diagnostic.kind, diagnostic.reason));
        edges.shrink_to_fit();
        diagnostics.shrink_to_fit();
        Self { edges, diagnostics, local_uses }
    }

    /// Returns a digest of all of it, by which equal ones are known without the other at hand.
    pub fn digest(&self) -> ContentHash {
        let mut encoded: Vec<u8> = Vec::with_capacity((self.edges.len() + self.diagnostics.len()) * 96);
        let place = |encoded: &mut Vec<u8>, place: Place, source: Option<u32>| {
            for number in [place.line, place.column, place.start, source.map_or(0, |source| source + 1)] {
                encoded.extend_from_slice(&number.to_le_bytes());
            }
        };
        let text = |encoded: &mut Vec<u8>, text: &str| {
            encoded.extend_from_slice(&(text.len() as u64).to_le_bytes());
            encoded.extend_from_slice(text.as_bytes());
        };
        encoded.extend_from_slice(&(self.edges.len() as u64).to_le_bytes());
        for edge in &self.edges {
            place(&mut encoded, edge.place, edge.source);
            encoded.extend_from_slice(&[edge.kind as u8, edge.resolution as u8, u8::from(edge.target.definition.is_some())]);
            text(&mut encoded, edge.target.file.as_str());
            if let Some(DefinitionKey { qualified, ordinal }) = &edge.target.definition {
                text(&mut encoded, qualified);
                encoded.extend_from_slice(&ordinal.to_le_bytes());
            }
            text(&mut encoded, edge.rule);
            text(&mut encoded, &edge.name);
        }
        for diagnostic in &self.diagnostics {
            place(&mut encoded, diagnostic.place, diagnostic.source);
            encoded.extend_from_slice(&[diagnostic.kind as u8, diagnostic.reason as u8]);
            encoded.extend_from_slice(&diagnostic.candidates.to_le_bytes());
            text(&mut encoded, &diagnostic.name);
        }
        ContentHash::of(&encoded)
    }
}
